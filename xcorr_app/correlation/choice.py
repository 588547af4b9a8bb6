"""The one choice of correlation: what computes planes, or finds peaks, on a device of given limits, and why.

Pure functions of the problem: no device is asked, no array looked at. The product asks them, and so do ``--explain``,
``run.json``, the report and the benchmarks; nothing overrides what they answer.

What is expected is the time of a call among many: that of the device, or where it is longer that of the host to start
the work, as it is for the dozen calls of an FFT of small matrices. (Both enter as the fourth root of the sum of their
fourth powers: close to the longer one, and the device's time still decides between two that the host bounds.)

Tensor cores are taken unasked where that is as exact as the float32 kernels. Planes then stand in split fp16, whose
error is below 1e-6 of the product of both matrices' norms, inside the bound of 64 roundings of float32 (7.6e-6 of it)
that every engine of float32 is held to; and of float32 matrices alone, as float32 kernels sum integers exactly up to
2^24. Peaks are searched among fp16 sums, but their values are recomputed in float32, and what fp16 does not decide is
left to other means. All constants are of a device with wgmma, so others keep to float32 unless asked.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.direct.costs import fft_cost, host_cost
from xcorr_app.gpu.direct.kernels import KERNELS as DIRECT
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.costs import fft_search_cost, search_cost
from xcorr_app.gpu.peaks.kernels import KERNELS as PEAKS
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.costs import (
    beside_peaks,
    beside_planes,
    small_planes_cost,
    split_hankel_cost,
    tables_of_peaks,
)
from xcorr_app.gpu.tensor.kernels import FP16_SUMS
from xcorr_app.gpu.tensor.kernels import KERNELS as TENSOR

__all__ = ["FUSED", "decide_peaks", "decide_planes"]

FUSED = "combined-peak"
"""Kernel of engine ``direct`` that finds peaks as it sums; every other makes planes, whose peaks are then searched."""

_HOST_OF_FFT, _HOST_OF_TENSOR, _HOST_OF_SMALL = 380.0, 60.0, 7.0
"""Microseconds that the host takes to start a call: of the FFT, of planes by tensor cores, of those in one launch.

Of the FFT 263 to 602 were measured in two runs of `python -m benchmarks auto` (medians 300 and 441).
"""
_HOST_OF_SEARCH, _HOST_OF_FUSED, _HOST_OF_TABLES = 6.0, 14.0, 10.0
"""The same of searching planes, of sums and search in one launch, and of tables with the memory for records."""
_HOST_OF_TENSOR_PEAKS = 32.0
"""The same of peaks by tensor cores, tables included."""
_GAPS_OF_FFT = 15.0
"""Microseconds that the FFT's kernels wait for one another in a stream; its model is of replays, where they do not."""
_SECOND_LAUNCH = 3.0
"""Microseconds that the device takes for one launch more."""

_FLOAT = ("float32", "float32")
_SHARE_OF_TABLES = 0.4
"""Of the time of summed-area tables that the models of engine direct do not hold."""
_NOTHING = KernelOptions()


@functools.lru_cache(maxsize=512)
def decide_planes(
    problem: Problem,
    *,
    dtypes: tuple[str, str] = _FLOAT,
    engine: str = "auto",
    options: KernelOptions | None = None,
    limits: DeviceLimits | None,
) -> Decision:
    """Decide what makes planes of plain sums of matrices of these types; `limits` None is the CPU.

    An engine or options that were asked for leave only the choice of their kernel.
    """
    options = options or _NOTHING
    asked = options.engine or engine
    if asked in ("definition", "fft"):
        return Decision(asked, reason="asked for")
    if limits is None:
        return Decision("fft" if asked == "auto" else asked, reason="no GPU is used")
    if asked == "auto" and "float64" in dtypes:
        return Decision("fft", reason="the kernels sum in float32, and these need float64")
    if options.precision == "int8":
        return Decision("tensor", "hankel-bytes", "exact sums of bytes were asked for")
    if options.variant != "auto":
        return Decision("direct", options.variant, "asked for")
    if options.sum_type == "double":
        return Decision("direct", _in_double(problem, dtypes), "sums of float64 were asked for, not timed yet")
    candidates: list[Candidate] = []
    if asked == "auto":
        candidates.append(_candidate("fft", "", fft_cost(problem, limits) + _GAPS_OF_FFT, _HOST_OF_FFT))
    if asked in ("auto", "direct"):
        candidates += _direct(problem, limits)
    if asked == "tensor" or (asked == "auto" and limits.has_wgmma and dtypes == _FLOAT):
        candidates += _tensor_planes(problem, limits, split=1 if options.precision == "fp16" else 2)
    return _least(candidates, asked)


@functools.lru_cache(maxsize=512)
def decide_peaks(
    problem: Problem,
    *,
    dtypes: tuple[str, str] = _FLOAT,
    engine: str = "auto",
    options: KernelOptions | None = None,
    normalize: bool = True,
    limits: DeviceLimits | None,
) -> Decision:
    """Decide what finds the peak of every pair, of normalised scores or of plain sums, without handing out planes.

    As `decide_planes`. Kernel `FUSED` finds peaks as it sums; of the other kernels of engine ``direct`` the planes are
    searched. Peaks of plain sums on tensor cores are those of small matrices, by a kernel that marks what fp16 does not
    decide, unless engine ``tensor`` is asked for.
    """
    options = options or _NOTHING
    asked = options.engine or engine
    by_planes = asked in ("definition", "fft") or options.sum_type == "double"
    if limits is None or by_planes or (asked == "auto" and "float64" in dtypes):
        return decide_planes(problem, dtypes=dtypes, engine=engine, options=options, limits=limits)
    if options.variant != "auto":
        return Decision("direct", options.variant, "asked for")
    tables = _HOST_OF_TABLES if normalize else 0.0
    summed = tables_of_peaks(problem, limits) if normalize else 0.0
    in_model = _SHARE_OF_TABLES * summed
    candidates: list[Candidate] = []
    if asked == "auto":
        time = fft_cost(problem, limits) + _GAPS_OF_FFT + fft_search_cost(problem, limits, normalize=normalize)
        candidates.append(_candidate("fft", "", time, _HOST_OF_FFT))
    if asked in ("auto", "direct"):
        searched = search_cost(problem, limits) + _SECOND_LAUNCH + in_model
        candidates += _direct(problem, limits, beside=searched, host=tables + _HOST_OF_SEARCH)
        candidates += _table(PEAKS, (FUSED,), "direct", problem, limits, tables + _HOST_OF_FUSED, beside=in_model)
    if asked == "tensor" or (asked == "auto" and limits.has_wgmma):
        if not normalize:
            candidates += _table(TENSOR, ("small-peaks",), "tensor", problem, limits, _HOST_OF_SMALL)
        if normalize or (asked == "tensor" and not candidates):
            beside = beside_peaks(problem, limits) + summed
            candidates += _table(TENSOR, FP16_SUMS, "tensor", problem, limits, _HOST_OF_TENSOR_PEAKS, beside=beside)
    return _least(candidates, asked)


def _in_double(problem: Problem, dtypes: tuple[str, str]) -> str:
    """Kernel for sums in float64: the one of most reuse that reads such elements."""
    if "float64" not in dtypes:
        return "combined"
    if problem.lefts > 1 and problem.shared_rights and problem.rights > 1:
        return "multi-left-right"
    return "multi-right" if problem.rights_per_left > 1 else "multi-row"


def _tensor_planes(problem: Problem, limits: DeviceLimits, *, split: int) -> list[Candidate]:
    if not limits.has_tensor_cores:
        return []
    found = [_candidate("tensor", "small-planes", small_planes_cost(problem, limits, split), _HOST_OF_SMALL)]
    beside = beside_planes(problem, limits)
    if split == 1:
        return found + _table(TENSOR, FP16_SUMS, "tensor", problem, limits, _HOST_OF_TENSOR, beside=beside)
    return [*found, _candidate("tensor", "hankel", split_hankel_cost(problem, limits) + beside, _HOST_OF_TENSOR)]


def _direct(problem: Problem, limits: DeviceLimits, *, beside: float = 0.0, host: float = 0.0) -> list[Candidate]:
    """Candidates among the kernels that correlate by the definition; `beside`, `host`: what else is done, by which."""
    able = [entry for entry in DIRECT.values() if entry.cost is not None and entry.accepts(problem, limits) is None]
    times = {entry.name: entry.cost(problem, limits) + beside for entry in able if entry.cost}
    return [
        _candidate("direct", name, time, host + host_cost(name, problem, limits))
        for name, time in times.items()
        if time != math.inf
    ]


def _table(
    table: Mapping[str, KernelEntry[Problem]],
    names: Iterable[str],
    engine: str,
    problem: Problem,
    limits: DeviceLimits,
    host: float,
    *,
    beside: float = 0.0,
) -> list[Candidate]:
    """Candidates among the kernels of a table that take the problem; `beside` is what the device does besides."""
    entries = [table[name] for name in names]
    able = [entry for entry in entries if entry.cost is not None and entry.accepts(problem, limits) is None]
    return [_candidate(engine, entry.name, entry.cost(problem, limits) + beside, host) for entry in able if entry.cost]


def _candidate(engine: str, kernel: str, device_time: float, host_time: float) -> Candidate:
    return Candidate(engine, kernel, (device_time**4 + host_time**4) ** 0.25)


def _least(candidates: Sequence[Candidate], asked: str) -> Decision:
    known = sorted((c for c in candidates if c.microseconds != math.inf), key=lambda c: c.microseconds or 0.0)
    if not known:
        return Decision(asked, reason="asked for, and no kernel of it takes such a problem on this device")
    first, *others = known
    reason = f"the least expected time, {first.microseconds:.0f} us"
    if others:
        reason += f", where {others[0].name} takes {others[0].microseconds:.0f} us"
    return Decision(first.engine, first.kernel, reason, tuple(known))
