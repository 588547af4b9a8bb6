"""How a frame enters a mean of frames: moved by its shift, at a common level, only where it was seen.

A moved frame does not cover the whole mean; beyond its edges there is nothing to add, and a value made up there would
pull the frames that are compared with it. So every pixel of a mean is divided by the weights of the frames that cover
it. Where coverage changes, a difference in gain or offset between frames would be an edge that is not in the scene:
each frame ``f`` is brought to the level of the mean ``g`` by the line ``f = gain g + offset`` fitted where both are
known, and counts by the square of its correlation with it, which is the best weight where noise prevails.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.interpolation import inside_each, snap_each

_MARGIN = 1
"""Pixels inside a frame's edge whose cubic interpolation needs pixels from beyond it."""
_MIN_SHARE = 0.7
"""Share of either axis that is measured at least, known or not."""
_ROW_STEP = 4
"""Every so many rows are enough for two numbers a frame."""


@dataclass(frozen=True)
class Placement(Columns):
    """Where and at which level frames enter a mean; one entry a frame."""

    shifts: NDArray[np.float64]
    """(T, 2) pixels each is moved by; finite."""
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    """(T,) what is taken off a frame before it is divided by its gain (T,)."""
    weight: NDArray[np.float64]
    """(T,) share of each in the mean; zero takes no part."""

    @classmethod
    def in_place(cls, frames: Array, takes_part: NDArray[np.bool_]) -> Placement:
        """Frames (n, h, w) as they lie, each of zero mean and unit deviation."""
        mean, deviation = levels(frames)
        takes_part = takes_part & ((deviation / 2).astype(working_dtype(frames)) > 0)
        gain = np.where(takes_part, deviation, 1.0)
        return cls(np.zeros((mean.size, 2)), gain, np.where(takes_part, mean, 0.0), takes_part.astype(np.float64))


def levels(frames: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (n,) of frames (n, h, w) of finite values, of any magnitude."""
    xp = array_namespace(frames)
    largest = xp.maximum(
        abs(frames.max(axis=(1, 2)).astype(np.float64)), abs(frames.min(axis=(1, 2)).astype(np.float64))
    )
    largest = xp.where(largest > 0, largest, 1.0)
    values = frames / largest[:, None, None]
    mean = values.mean(axis=(1, 2))
    values -= mean[:, None, None]
    deviation = xp.sqrt(xp.einsum("ijk,ijk->i", values, values) / (values.shape[1] * values.shape[2]))
    return to_host(mean * largest), to_host(deviation * largest)


def at_level(frames: Array, offset: NDArray[np.float64], gain: NDArray[np.float64]) -> Array:
    """Frames (n, h, w) less their offsets and over their gains (n,), as floats; the same bits whenever it is done."""
    xp, dtype = array_namespace(frames), working_dtype(frames)
    values = frames.astype(dtype)
    # Halves, since the difference of the largest numbers of a type overflows.
    values *= dtype.type(0.5)
    values -= xp.asarray((offset / 2).astype(dtype))[:, None, None]
    values /= xp.asarray((gain / 2).astype(dtype))[:, None, None]
    return values


def moved(frames: Array, shifts: NDArray[np.float64]) -> Array:
    """Frames (n, h, w) moved by (n, 2) pixels, as floats; beyond a frame's edge its edge pixels go on."""
    values = frames.astype(working_dtype(frames), copy=False)
    return values if not shifts.any() else shift_frames(values, shifts, order=3, mode="nearest", workers=1)[0]


def coverage(placement: Placement, shape: tuple[int, int], xp: Any = np) -> tuple[Array, Array]:
    """Rows (n, h), which hold the weights, and columns (n, w) of the mean that moved frames cover; else zero."""
    sides = []
    for length, (first, stop) in zip(shape, _limits(placement, shape), strict=True):
        index = xp.arange(length)
        covered = (index >= xp.asarray(first)[:, None]) & (index < xp.asarray(stop)[:, None])
        sides.append(covered.astype(np.float64))
    return sides[0] * xp.asarray(placement.weight)[:, None], sides[1]


def _limits(placement: Placement, shape: tuple[int, int]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """First row (n,) of the mean that each moved frame covers, and the one after the last; the same of columns."""
    limits = []
    for axis, length in enumerate(shape):
        shifts = placement.shifts[:, axis]
        first, stop = inside_each(length, shifts)
        # The margin is the frame's, not that of the mean, which may end inside it.
        between = snap_each(shifts) != np.rint(shifts)
        first = np.where(between, np.maximum(first, np.ceil(shifts) + _MARGIN), first)
        stop = np.where(between, np.minimum(stop, length + np.floor(shifts) - _MARGIN), stop)
        limits.append((first, stop))
    return limits


def covered_part(
    placement: Placement, shape: tuple[int, int], count: int, least: tuple[int, int]
) -> tuple[slice, slice] | None:
    """Rows, and columns, that at least `count` frames cover; None where that is all.

    Whatever stands where nothing is known pulls shifts aside, so that such a rim is better not measured; but of each
    axis `least` pixels and most of it are kept.
    """
    there, part = placement.weight > 0, []
    for ends, size, kept in zip(_limits(placement, shape), shape, least, strict=True):
        first, stop = (np.sort(end[there]) for end in ends)
        begin, end = first[:count].max(initial=0), stop[-count:].min(initial=size)
        is_enough = end - begin >= max(kept, _MIN_SHARE * size)
        part.append(slice(int(begin), int(end)) if is_enough else slice(0, size))
    rows, columns = part
    return None if (rows, columns) == (slice(0, shape[0]), slice(0, shape[1])) else (rows, columns)


def entering(frames: Array, placement: Placement) -> Array:
    """What frames (n, h, w) add to the sum: moved, at the common level, times their weights where they are known."""
    return _entering(moved(frames, placement.shifts), placement)


def _entering(there: Array, placement: Placement) -> Array:
    xp = array_namespace(there)
    sides = coverage(placement, there.shape[1:], xp)
    if is_device_array(there):
        return entered(there, placement, *sides)
    rows, columns = (side.astype(there.dtype) for side in sides)
    values = at_level(there, placement.offset, placement.gain)
    values *= rows[:, :, None]
    values *= columns[:, None, :]
    return values


def fitted(frames: Array, shifts: NDArray[np.float64], target: Array, known: Array) -> tuple[Placement, Array]:
    """Bring frames (n, h, w) to the level of an image (h, w), where that is `known`; also return what they add."""
    xp = array_namespace(frames)
    count = frames.shape[0]
    ones = np.ones(count)
    there = moved(frames, shifts)
    rows, columns = coverage(Placement(shifts, ones, ones, ones), there.shape[1:], xp)
    step = slice(None, None, _ROW_STEP)
    mask = (rows[:, step] > 0)[:, :, None] & (columns > 0)[:, None, :] & known[None, step]
    number = xp.maximum(mask.sum(axis=(1, 2)), 1).astype(np.float64)

    def centred(values: Array) -> tuple[Array, Array]:
        values = xp.where(mask, values, 0)
        largest = xp.maximum(abs(values).max(axis=(1, 2)).astype(np.float64), np.finfo(np.float64).tiny)
        values = values / largest[:, None, None]
        mean = values.sum(axis=(1, 2)) / number
        return xp.where(mask, values - mean[:, None, None], 0.0), xp.stack([mean, largest])

    f, level_f = centred(there[:, step])
    g, level_g = centred(xp.broadcast_to(target[None, step].astype(np.float64), mask.shape))
    sums = [xp.einsum("ijk,ijk->i", *pair) for pair in ((f, g), (g, g), (f, f))]
    fg, gg, ff, mean_f, largest_f, mean_g, largest_g = to_host(xp.stack([*sums, *level_f, *level_g]))
    good = (fg > 0) & (gg > 0)
    slope = np.where(good, fg / np.where(good, gg, 1.0), 1.0)
    gain = slope * largest_f / largest_g
    good &= (gain / 2).astype(there.dtype) > 0
    gain = np.where(good, gain, 1.0)
    offset = largest_f * (mean_f - slope * mean_g)
    weight = np.where(good, fg * fg / np.where(good, gg * ff, 1.0), 0.0)
    placement = Placement(shifts, gain, np.where(good, offset, 0.0), weight)
    return placement, _entering(there, placement)


_VALUE = """
R value = frame * R(0.5);
value -= offset;
value /= gain;
value *= R(row);
value *= R(column);
"""
"""As array operations compute it, each rounded: products with 0.5 and with `column`, 0 or 1, are exact."""
_OF_FRAME = "R frame, R offset, R gain, float64 row, float64 column"


def entered(there: Array, placement: Placement, rows: Array, columns: Array) -> Array:
    """Moved float frames (n, h, w) at a common level, times `rows` (n, h), which hold weights, and `columns` (n, w)."""
    return _entered()(there, *_of_frames(there, placement, rows, columns))


def means_without_each(
    there: Array, placement: Placement, rows: Array, columns: Array, sums: tuple[Array, Array], least: float
) -> tuple[Array, Array]:
    """Means (n, h, w) without each of such frames, zero where no weight above `least` is left; and where there is one.

    `sums` (h, w) are those over all frames, and those of their weights.
    """
    mean, known = _mean()(there, *_of_frames(there, placement, rows, columns), *sums, least)
    return mean, known


def _of_frames(there: Array, placement: Placement, rows: Array, columns: Array) -> tuple[Array, ...]:
    xp, kind = array_namespace(there), there.dtype.type
    offset, gain = (xp.asarray((side / 2).astype(kind))[:, None, None] for side in (placement.offset, placement.gain))
    return offset, gain, rows[:, :, None], columns[:, None, :]


@functools.cache
def _entered() -> Any:
    code = _VALUE + "out = value;"
    return importlib.import_module("cupy").ElementwiseKernel(_OF_FRAME, "R out", code, "xcorr_entered")


@functools.cache
def _mean() -> Any:
    code = f"""{_VALUE}
const double rest = weight - row * column;
known = rest > least;
mean = known ? (total - double(value)) / rest : 0.0;
"""
    parameters = f"{_OF_FRAME}, float64 total, float64 weight, float64 least"
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel(parameters, "float64 mean, bool known", code, "xcorr_means_without_each")
