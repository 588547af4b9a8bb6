"""What registration says of a series, beside the truth: a row of figures for each case and way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xcorr_app as xc
from benchmarks.board.scenes import Array, Series
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk
from xcorr_app.registration.stack.prefilter import Contrast
from xcorr_app.registration.stack_measurement import StackMeasurement

GROSS, GOOD = 2.0, 0.1
"""Pixels along either axis: errors beyond `GROSS` are counted, not averaged; a frame within `GOOD` should not be
flagged. One should that is off by more than the standard error from which frames are flagged by default: half a pixel,
or what a stack that moves farther allows."""
_IN_PAIRS = (1, 7, 13)
"""Frames of a series that are compared with the first, each in a stack of two."""


@dataclass(frozen=True)
class Found:
    """What was found of some frames: one entry a frame, the one that is zero aside."""

    error: Array
    """(n, 2) of `shifts`; NaN where there is none, or no truth."""
    applied: Array
    """(n, 2) of what is applied."""
    sigma: Array
    flagged: NDArray[np.bool_]
    foreign: NDArray[np.bool_]
    limit: Array
    """Error from which a frame should be flagged."""

    @classmethod
    def pooled(cls, parts: list[Found]) -> Found:
        """Join them."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


def measure(way: str, many: list[Series]) -> dict[str, Any]:
    """Measure the series of one seed in one way: what was `found`, `bound`, `passes`, `cpu` and `base` seconds.

    What cannot be measured is counted as `raised`, and as unmoved without a flag.
    """
    if way == "pair":
        many = [_some_frames(series, [0, t]) for series in many for t in _IN_PAIRS]
    reference = "first" if way == "pair" else way
    parts, raised, cpu, base, read = list[Found](), list[str](), 0.0, 0.0, 0
    for series in many:
        result, began = None, time.process_time()
        with frames_read() as counted:
            try:
                result = xc.estimate_shifts(series.frames, reference, **series.options)
            except Exception as error:  # noqa: BLE001 - a row must not end the board
                raised.append(repr(error))
        cpu += time.process_time() - began
        read += sum(counted)
        parts.append(judged(series, result))
        if result is not None and way == "first" and "mask" not in series.options:
            base += seconds_of(base_alone, series, reference)
    bound = float(np.sqrt(np.mean([series.bound**2 for series in many])))
    return {
        "found": Found.pooled(parts),
        "raised": raised,
        "bound": bound,
        "passes": read / sum(len(series.frames) for series in many),
        "cpu": cpu,
        "base": base or np.nan,
    }


def _some_frames(series: Series, numbers: list[int]) -> Series:
    foreign = None if series.foreign is None else series.foreign[numbers]
    return replace(
        series,
        frames=series.frames[numbers],
        shifts=series.shifts[numbers] - series.shifts[numbers[0]],
        foreign=foreign,
    )


def judged(series: Series, result: xc.ShiftResult | None) -> Found:
    """Compare a result, or that nothing was moved, with the truth."""
    count = len(series.frames)
    foreign = np.zeros(count, bool) if series.foreign is None else series.foreign
    shifts = applied = np.zeros((count, 2))
    sigma, flagged = np.full((count, 2), np.nan), np.zeros(count, bool)
    if result is not None:
        shifts, applied = result.shifts, result.applied()
        sigma, flagged = np.asarray(result.sigma, dtype=float), ~result.trusted
    surest = int(np.where(foreign[:, None], np.inf, np.nan_to_num(sigma, nan=np.inf)).max(axis=1).argmin())
    zero = surest if series.zero is None else series.zero
    errors = [each - series.shifts - (each - series.shifts)[zero] for each in (shifts, applied)]
    moves, others = series.shifts[np.isfinite(series.shifts).all(axis=1)], np.arange(count) != zero
    columns = *errors, sigma, flagged, foreign, np.full(count, Settings().sigma_limit(moves))
    return Found(*(each[others] for each in columns))


def figures(found: Found) -> dict[str, float]:
    """Return the figures of a row; NaN where there is nothing to count.

    rms, median, largest: of the errors of shifts per axis, pixels; gross ones take part in the last alone. applied,
    applied_largest: of what is applied, all of them. within_1, within_2: shares of the errors of frames without a flag
    within so many standard errors; z: rms of their ratio. right: flagged, and off by more than the limit or foreign;
    needless: flagged, and off by less than 0.1; missed: not flagged, and off by more than the limit or foreign.
    """
    error, applied = np.abs(found.error), np.abs(found.applied)
    known = np.isfinite(found.applied).all(axis=1) & ~found.foreign
    worst = np.where(np.isfinite(error).all(axis=1), error.max(axis=1), np.inf)
    sound, bad = known & (worst <= GROSS), (known & (worst > found.limit)) | found.foreign
    sure = known & ~found.flagged & np.isfinite(worst) & np.isfinite(found.sigma).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(error[sure] / found.sigma[sure], nan=0.0, posinf=1e6)
    finite = error[known & np.isfinite(worst)]

    def of(values: Array, how: Callable[[Array], Any]) -> float:
        return float(how(values)) if values.size else np.nan

    def rms(values: Array) -> Any:
        return np.sqrt(np.mean(values**2))

    return {
        "frames": int(known.sum()),
        "rms": of(error[sound], rms),
        "median": of(finite, np.median),
        "largest": of(finite, np.max),
        "gross": int((known & (worst > GROSS)).sum()),
        "applied": of(applied[known], rms),
        "applied_largest": of(applied[known], np.max),
        "sigma": of(found.sigma[sure], np.median),
        "within_1": of(ratio <= 1, np.mean),
        "within_2": of(ratio <= 2, np.mean),
        "z": of(ratio, rms),
        "flagged": int(found.flagged.sum()),
        "right": int((found.flagged & bad).sum()),
        "needless": int((found.flagged & known & (worst < GOOD)).sum()),
        "missed": int((bad & ~found.flagged).sum()),
    }


def seconds_of(work: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds of processor time that a call takes."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def base_alone(series: Series, reference: str) -> Any:
    """Measure by correlation, sub-pixel fit and standard error alone, and look for nothing else."""
    frames, settings = ArrayFrames(series.frames), Settings(**series.options | {"contrast": Contrast()})
    return StackMeasurement.of(frames, settings, np, "none", None).trial(
        frames, reference, settings, whole=True, tiles=False
    )


@contextmanager
def frames_read() -> Iterator[list[int]]:
    """Count the frames of arrays that are read within."""
    counted, read = list[int](), ArrayFrames.read

    def counting(self: ArrayFrames, start: int, stop: int) -> Chunk:
        counted.append(min(stop, self.count) - start)
        return read(self, start, stop)

    ArrayFrames.read = counting  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        ArrayFrames.read = read  # type: ignore[method-assign]
