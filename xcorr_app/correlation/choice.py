"""The one choice of correlation: what computes planes, or finds peaks, on a device of given limits, and why.

Pure functions of the problem: no device is asked, no array looked at. The product asks them, and so do ``--explain``,
``run.json``, the report and the benchmarks; nothing overrides what they answer.

What is expected is the time of a call among many: that of the device, or where it is longer that of the host to start
the work, as it is for the dozen calls of an FFT of small matrices. (Both enter as the fourth root of the sum of their
fourth powers: close to the longer one, and the device's time still decides between two that the host bounds.)

Tensor cores are taken unasked for peaks alone: these are searched among fp16 sums, but their values are recomputed in
float32, and what fp16 does not decide is left to other means. All constants are of one H200, so devices without wgmma
keep to float32 unless asked.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.direct.costs import fft_cost
from xcorr_app.gpu.direct.kernels import KERNELS as DIRECT
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.costs import combined_peak_cost, fft_search_cost, search_cost
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.costs import beside_peaks, tables_of_peaks
from xcorr_app.gpu.tensor.kernels import KERNELS as TENSOR

FUSED = "combined-peak"
"""Kernel of engine ``direct`` that finds peaks as it sums; every other makes planes, whose peaks are then searched."""

_HOST = {"fft": 380.0, "direct": 22.0, "tensor": 34.0}
"""Microseconds that the host takes to start a call, by engine; of the FFT, 263 to 602 were measured."""
_HOST_OF_SEARCH = 8.0
"""The same of the search of planes, where that is a launch of its own."""
_FLOAT = ("float32", "float32")
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
    if options.variant != "auto":
        return Decision("direct", options.variant, "asked for")
    if asked == "tensor" and options.precision != "fp16":
        refusal = TENSOR["hankel"].accepts(problem, limits)
        return Decision("tensor", "" if refusal else "hankel", refusal or "asked for")
    if asked == "tensor":
        return _least(_table(TENSOR, "tensor", problem, limits), asked)
    candidates = _table(DIRECT, "direct", problem, limits) if asked in ("auto", "direct") else []
    if asked == "auto":
        candidates.append(_candidate("fft", "", fft_cost(problem, limits)))
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
    searched. Of plain sums tensor cores make planes, as fp16 does not say which it cannot tell apart.
    """
    options = options or _NOTHING
    asked = options.engine or engine
    by_planes = asked in ("definition", "fft") or (asked == "tensor" and not normalize)
    if limits is None or by_planes or (asked == "auto" and "float64" in dtypes):
        return decide_planes(problem, dtypes=dtypes, engine=engine, options=options, limits=limits)
    if options.variant != "auto":
        return Decision("direct", options.variant, "asked for")
    candidates: list[Candidate] = []
    if asked == "auto":
        time = fft_cost(problem, limits) + fft_search_cost(problem, limits, normalize=normalize)
        candidates.append(_candidate("fft", "", time))
    if asked in ("auto", "direct"):
        searched = search_cost(problem, limits)
        candidates += _table(DIRECT, "direct", problem, limits, beside=searched, host=_HOST_OF_SEARCH)
        candidates.append(_candidate("direct", FUSED, combined_peak_cost(problem, limits)))
    if asked == "tensor" or (asked == "auto" and limits.has_wgmma and normalize):
        beside = beside_peaks(problem, limits) + (tables_of_peaks(problem, limits) if normalize else 0.0)
        candidates += _table(TENSOR, "tensor", problem, limits, beside=beside)
    return _least(candidates, asked)


def _table(
    table: Mapping[str, KernelEntry[Problem]],
    engine: str,
    problem: Problem,
    limits: DeviceLimits,
    *,
    beside: float = 0.0,
    host: float = 0.0,
) -> list[Candidate]:
    """Candidates among the kernels of a table that take the problem; `beside`, `host`: what else is done, by which."""
    return [
        _candidate(engine, entry.name, entry.cost(problem, limits) + beside, host)
        for entry in table.values()
        if entry.cost is not None and entry.accepts(problem, limits) is None
    ]


def _candidate(engine: str, kernel: str, device_time: float, more_of_host: float = 0.0) -> Candidate:
    return Candidate(engine, kernel, (device_time**4 + (_HOST[engine] + more_of_host) ** 4) ** 0.25)


def _least(candidates: Sequence[Candidate], asked: str) -> Decision:
    known = sorted((c for c in candidates if c.microseconds != math.inf), key=lambda c: c.microseconds or 0.0)
    if not known:
        return Decision(asked, reason="asked for, and no kernel of it takes such a problem on this device")
    first, *others = known
    reason = f"the least expected time, {first.microseconds:.0f} us"
    if others:
        reason += f", where {others[0].name} takes {others[0].microseconds:.0f} us"
    return Decision(first.engine, first.kernel, reason, tuple(known))
