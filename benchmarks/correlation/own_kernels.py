"""The product's own contenders: every variant of the kernels, the FFT engine, and the peak-only path."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.harness.contender import Attempt, Contender, index_at, plane_at
from benchmarks.harness.result import WHEN_ASKED
from xcorr_app.correlation.choice import decide_planes
from xcorr_app.correlation.engines import ENGINES
from xcorr_app.correlation.normalize import zncc_for
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.problem import window_of
from xcorr_app.correlation.standardize import standardize
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.tensor.planes import plain_sums

TENSOR_PLANES = {"tensor fp16": (1, 2e-4), "tensor fp16x2": (2, 2e-6)}
"""Planes on tensor cores, those in fp16 never taken unasked: by their name, the numbers of fp16 that stand for a value,
and the largest relative error of a plane of matrices in [0, 1). (A score from single fp16 may be off by 1e-3, but
rounding errors of 4096 products cancel for the most part.)"""


def own_contenders(case: Case) -> Iterator[Contender]:
    """Yield what the product can do a case with: kernels first, then the FFT engine."""
    if case.task == "plane":
        limits = device_limits(current_device())
        for variant in (name for name, entry in KERNELS.items() if entry.accepts(case.problem, limits) is None):
            yield Contender(variant, _variant(variant), choice=variant)
        yield Contender("engine fft", _fft_planes, choice="fft")
        if limits.has_tensor_cores:
            for name, (split, tolerance) in TENSOR_PLANES.items():
                if split == 2 or case.by_fp16:
                    choice = "tensor" if split == 2 else WHEN_ASKED
                    yield Contender(name, _tensor_planes(split), choice=choice, tolerance=tolerance)
        return
    yield Contender("kernels, peak only", _peak_finder("direct"), choice="direct")
    if device_limits(current_device()).has_tensor_cores:
        yield Contender("tensor, peak only", _peak_finder("tensor"), choice="tensor")
    yield Contender("engine fft, then its peak", _fft_peaks, choice="fft")


def timed_variant(case: Case, data: Data, variant: str, tuning: dict[str, int] | None = None) -> Attempt:
    """Make one variant of the kernels ready, with the table's tuning or another.

    Parameters
    ----------
    case : Case
        Any.
    data : Data
        On the device.
    variant : str
        One of `KERNELS`.
    tuning : dict, optional
        Macro values that replace the table's.

    Returns
    -------
    Attempt
        Which writes into one array over and over.
    """
    cupy = importlib.import_module("cupy")
    problem = case.problem
    out = cupy.empty((problem.pairs, *problem.plane_shape), np.float32)
    launch = KERNELS[variant].launch(
        problem,
        tuning=tuning,
        left_type=case.left_type,
        right_type=case.right_type,
        device=device_limits(current_device()),
    )
    kernel = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    return Attempt(
        lambda: correlate_on_device(data.lefts, data.rights, problem, variant, tuning=tuning, out=out),
        plane_at,
        registers=kernel.num_regs,
        local_bytes=kernel.local_size_bytes,
    )


def _variant(variant: str) -> Callable[[Case, Data], Iterator[Attempt]]:
    def attempts(case: Case, data: Data) -> Iterator[Attempt]:
        yield timed_variant(case, data, variant)

    return attempts


def _tensor_planes(split: int) -> Callable[[Case, Data], Iterator[Attempt]]:
    def attempts(case: Case, data: Data) -> Iterator[Attempt]:
        cupy = importlib.import_module("cupy")
        problem, tables = case.problem, SummedAreaTables(case.problem)
        out = cupy.empty((problem.pairs, *problem.plane_shape), np.float32)
        options = KernelOptions(precision="fp16" if split == 1 else "fp16x2")
        kernel = decide_planes(problem, options=options, limits=device_limits(current_device())).kernel
        yield Attempt(
            lambda: plain_sums(problem, data.lefts, data.rights, tables, kernel, split=split, out=out),
            plane_at,
            note=f"{kernel}, values of {split} fp16",
        )

    return attempts


def _peak_finder(engine: str) -> Callable[[Case, Data], Iterator[Attempt]]:
    """Sum, score and search, on tensor cores or not; the reference's sums are made once."""

    def attempts(case: Case, data: Data) -> Iterator[Attempt]:
        scored = case.task == "zncc-peak"
        finder = PeakFinder(case.problem, normalize=scored, engine=engine)
        tables = finder.left_tables(data.lefts) if data.lefts.shape[0] == 1 and (scored or engine == "tensor") else None
        width = case.problem.plane_shape[1]

        def run() -> Any:
            return finder.find(data.lefts, data.rights, case.problem.rights_per_left, tables)[0]

        def read(records: Any, pair: int) -> int:
            row, column = (int(value) for value in records[pair, :2].get())
            return (row if row >= 0 else -1 - row) * width + column

        def undecided() -> str:
            count = int((run()[:, 0] < 0).sum())
            return f"{count} of {case.problem.pairs} peaks left undecided" if count else ""

        yield Attempt(run, read, remark=undecided if engine == "tensor" else None)

    return attempts


def _fft_planes(case: Case, data: Data) -> Iterator[Attempt]:
    sums = _fft_sums(case, data)
    yield Attempt(lambda: sums(data.lefts, data.rights), plane_at)


def _fft_peaks(case: Case, data: Data) -> Iterator[Attempt]:
    """The FFT engine and the exact normalisation, then a search by array operations."""
    cupy = importlib.import_module("cupy")
    problem, window = case.problem, window_of(case.problem)
    sums = _fft_sums(case, data)
    if case.task == "peak":

        def peaks() -> Any:
            planes = sums(data.lefts, data.rights.astype(np.float32, copy=False))
            return planes.reshape(problem.pairs, -1).argmax(1)

        yield Attempt(peaks, index_at)
        return
    zncc = zncc_for(problem.left_shape, problem.right_shape, window, 0.0, cupy)
    reference = zncc.left(data.lefts)

    def scores() -> Any:
        frames = standardize(data.rights, np.float32).values
        planes = zncc(sums(data.lefts, frames), reference, zncc.right(frames))
        return cupy.nan_to_num(planes, nan=-2.0).reshape(problem.pairs, -1).argmax(1)

    yield Attempt(scores, index_at)


def _fft_sums(case: Case, data: Data) -> Callable[[Any, Any], Any]:
    cupy = importlib.import_module("cupy")
    problem = case.problem
    correlator = ENGINES["fft"].bind(problem.left_shape, problem.right_shape, window_of(case.problem), cupy)
    sets = 1 if problem.shared_rights else problem.lefts
    of_left = correlator.left(data.lefts[:, None]) if problem.lefts == 1 else None

    def sums(lefts: Any, rights: Any) -> Any:
        left = correlator.left(lefts[:, None]) if of_left is None else of_left
        right = correlator.right(rights.reshape(sets, problem.rights_per_left, *problem.right_shape))
        return correlator.sums(left, right).reshape(problem.pairs, *problem.plane_shape)

    return sums
