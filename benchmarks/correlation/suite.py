"""The suite of ``python -m benchmarks correlation``: every variant of the kernels, the engines, and FFTs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.correlation.cases import CASES, Case
from benchmarks.correlation.check import Expected
from benchmarks.correlation.data import Data, random_data
from benchmarks.correlation.padded_fft import cupy_fft, torch_fft
from benchmarks.correlation.registration_fft import torch_registration
from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Attempt, Contender, index_at, plane_at
from benchmarks.harness.suite import Suite
from xcorr_app.correlation.choice import decide_peaks, decide_planes
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


def own_contenders(case: Case) -> Iterator[Contender]:
    """Yield what the product can do a case with: kernels first, then the FFT engine."""
    if case.task == "plane":
        limits = device_limits(current_device())
        for variant in (name for name, entry in KERNELS.items() if entry.accepts(case.problem, limits) is None):
            yield Contender(variant, partial(_variant, variant=variant), choice=variant)
        yield Contender("engine fft", _fft_planes, choice="fft")
        if limits.has_tensor_cores:
            yield Contender("tensor fp16x2", _tensor_planes, choice="tensor")
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


def _variant(case: Case, data: Data, variant: str) -> Iterator[Attempt]:
    yield timed_variant(case, data, variant)


def _tensor_planes(case: Case, data: Data) -> Iterator[Attempt]:
    problem, tables = case.problem, SummedAreaTables(case.problem)
    out = importlib.import_module("cupy").empty((problem.pairs, *problem.plane_shape), np.float32)
    options = KernelOptions(precision="fp16x2")
    kernel = decide_planes(problem, options=options, limits=device_limits(current_device())).kernel
    sums = partial(plain_sums, problem, data.lefts, data.rights, tables, kernel, split=2, out=out)
    yield Attempt(sums, plane_at, note=kernel)


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

        yield Attempt(run, read)

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


def _of_cupy(case: Case) -> Iterator[Contender]:
    if case.task != "zncc-peak":
        yield Contender("FFT + argmax, CuPy" if case.task == "peak" else "FFT, CuPy", cupy_fft)


def _of_torch(case: Case) -> Iterator[Contender]:
    if case.task == "zncc-peak":
        yield Contender("FFT + ZNCC, PyTorch", torch_registration)
    else:
        yield Contender("FFT + argmax, PyTorch" if case.task == "peak" else "FFT, PyTorch", torch_fft)


def _auto(case: Case) -> str:
    """Return what engine ``auto`` takes for a case, under the contenders' name for it."""
    limits, dtypes = device_limits(current_device()), (case.left_type, case.right_type)
    if case.task == "plane":
        decided = decide_planes(case.problem, dtypes=dtypes, limits=limits)
        return decided.kernel if decided.engine == "direct" else decided.engine
    return decide_peaks(case.problem, dtypes=dtypes, normalize=case.task == "zncc-peak", limits=limits).engine


CORRELATION = Suite(
    "correlation",
    """Time every correlation kernel, the FFT engine, and FFTs through CuPy and PyTorch.

    Every answer is checked against float64 before it is timed; each case says who wins and what engine auto takes.
    Peaks are also searched on tensor cores, where the device has them.
    """,
    CASES,
    lambda case, xp, _copies: random_data(case, xp),
    Expected,
    lambda case: chain(own_contenders(case), _of_cupy(case)),
    _of_torch,
    clock=Clock(),
    auto=_auto,
)
