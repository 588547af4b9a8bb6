"""How good a registration is where only some pixels count: sums over those that do.

As :mod:`xcorr_app.registration.assessment_sums`, with the number n of frames that count at a pixel in place of their
number throughout. With S and Q the sums of standardised frames z and of their squares at a pixel, the mean of the
others there is (S - z) / (n - 1), and over the frames that count at it

    sum z (S - z) = S^2 - Q,    sum (S - z)^2 = (n - 2) S^2 + Q.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.masked.planes import standardised
from xcorr_app.registration.masked.rules import Masks

_KEPT = 4
"""Frames spread over the stack that are registered again."""
_FEWEST = 64
"""Pixels below which nothing is said."""


class MaskedFrames:
    """Makes NaN of pixels that do not count, of frames as they were and as they are moved.

    Parameters
    ----------
    masks : Masks
    shifts : (T, 2) array
        By which the frames of a stack are moved.
    """

    def __init__(self, masks: Masks, shifts: NDArray[np.float64]) -> None:
        self._masks, self._shifts = masks, shifts

    def of(self, numbers: list[int], before: Array, after: Array) -> tuple[Array, Array]:
        """Frames (n, Y, X) of these numbers, before and after, in float32."""
        xp = array_namespace(before)
        pairs = []
        for number, was, is_now in zip(numbers, before, after, strict=True):
            shift = self._shifts[number]
            if self._masks.moves:
                there = self._masks.of_frames(is_now[None], number, reference=True)[0]
                here = moved(there, -shift)
            else:
                here = self._masks.of_frames(was[None], number)[0]
                there = moved(here, shift)
            pairs.append([xp.where(counts, image, np.nan) for counts, image in ((here, was), (there, is_now))])
        first, second = (xp.stack(side).astype(np.float32) for side in zip(*pairs, strict=True))
        return first, second


def moved(counts: Array, shift: NDArray[np.float64]) -> Array:
    """Which pixels (Y, X) count once an image is moved: those between pixels that all do."""
    xp, found = array_namespace(counts), counts
    for axis, by in enumerate(shift.tolist()):
        lowest, highest = math.floor(by), math.ceil(by)
        found = _shifted(xp, found, lowest, axis) & _shifted(xp, found, highest, axis)
    return found


def _shifted(xp: Any, counts: Array, by: int, axis: int) -> Array:
    size, found = counts.shape[axis], xp.zeros_like(counts)
    if abs(by) < size:
        to, from_ = slice(max(by, 0), size + min(by, 0)), slice(max(-by, 0), size + min(-by, 0))
        found[(slice(None),) * axis + (to,)] = counts[(slice(None),) * axis + (from_,)]
    return found


def _deviations(values: Array, counts: Array) -> NDArray[np.float64]:
    """Standard deviations (n,) of the pixels that count."""
    number = array_namespace(counts).maximum(counts.sum(axis=(1, 2)), 1)
    mean = values.sum(axis=(1, 2), dtype=np.float64) / number
    rest = (values - mean[:, None, None].astype(np.float32)) * counts
    found: NDArray[np.float64] = to_host((rest.astype(np.float64) ** 2).sum(axis=(1, 2)) / number) ** 0.5
    return found


class _Side:
    """Sums of one side: of all frames by their own deviation, of even and odd ones by that before."""

    def __init__(self) -> None:
        self.number: Any = None
        self.total: Any = None
        self.squares: Any = None
        self.numbers: Any = None
        self.sums: Any = None
        self.kept: list[Array] = []

    def add(self, values: Array, counts: Array, scale: NDArray[np.float64], first: int) -> None:
        """Take in standardised frames (n, Y, X) from number `first` on, to be multiplied by `scale` (n,)."""
        xp = array_namespace(values)
        if self.total is None:
            shape = values.shape[1:]
            self.number, self.total, self.squares = (xp.zeros(shape, np.float32) for _ in range(3))
            self.numbers, self.sums = (xp.zeros((2, *shape), np.float32) for _ in range(2))
        for i in range(len(values)):
            parity = (first + i) % 2
            self.number += counts[i]
            self.total += values[i]
            self.squares += values[i] * values[i]
            self.numbers[parity] += counts[i]
            self.sums[parity] += values[i] * np.float32(scale[i])

    def converted(self, convert: Any) -> None:
        """Go on where `convert` puts arrays."""
        for name in ("number", "total", "squares", "numbers", "sums"):
            if (value := getattr(self, name)) is not None:
                setattr(self, name, convert(value))
        self.kept = [convert(frame) for frame in self.kept]

    def join(self, other: _Side) -> None:
        """Take in the sums of frames that follow these."""
        for name in ("number", "total", "squares", "numbers", "sums"):
            own, new = getattr(self, name), getattr(other, name)
            setattr(self, name, new if own is None else own if new is None else own + new)
        self.kept += other.kept

    def correlation(self) -> float:
        """Correlation of the frames with the mean of the others, over all pixels at which two or more count."""
        if self.number is None:
            return math.nan
        xp = array_namespace(self.number)
        several = self.number > 1
        if int(several.sum()) < _FEWEST:
            return math.nan
        number, total, squares = (
            xp.where(several, sums, 0.0).astype(np.float64) for sums in (self.number, self.total, self.squares)
        )
        others = xp.where(several, number - 1, 1.0)
        shared = float(((total**2 - squares) / others).sum())
        of_others = float((((number - 2) * total**2 + squares) / others**2).sum())
        norm = math.sqrt(max(float(squares.sum()) * of_others, 0.0))
        return shared / norm if norm > 0 else math.nan

    def crispness(self) -> float:
        """Root of the mean squared gradient of the mean, of the products of even and odd frames."""
        if self.numbers is None:
            return math.nan
        xp = array_namespace(self.numbers)
        means = xp.where(self.numbers > 0, self.sums / xp.maximum(self.numbers, 1), np.nan)
        even, odd = (xp.gradient(mean) for mean in means)
        energy = sum(even[axis] * odd[axis] for axis in range(2))
        known = xp.isfinite(energy)
        if int(known.sum()) < _FEWEST:
            return math.nan
        return math.sqrt(max(float(xp.where(known, energy, 0.0).sum(dtype=np.float64)) / float(known.sum()), 0.0))


class MaskedSums:
    """Takes in the frames of a stack in order, chunk by chunk, NaN where they do not count.

    Parameters
    ----------
    count : int
        Frames of the stack.
    """

    def __init__(self, count: int) -> None:
        even = np.arange(0, count, 2)
        self.kept = even[np.unique(np.linspace(0, even.size - 1, min(_KEPT, even.size)).round().astype(int))]
        """Numbers of the frames that are kept."""
        self.masks = Masks("finite")
        """What counts of the frames that are kept."""
        self._seen = 0
        self._sides = _Side(), _Side()

    def add(self, before: Array, after: Array) -> None:
        """Take in the next frames (n, Y, X), before and after they are moved."""
        xp, start = array_namespace(before), self._seen
        self._seen += len(before)
        deviations = []
        for side, frames in zip(self._sides, (before, after), strict=True):
            counts = xp.isfinite(frames)
            values = xp.where(counts, frames, np.float32(0))
            deviations.append(_deviations(values, counts))
            scale = deviations[-1] / np.where(deviations[0] > 0, deviations[0], np.inf)
            side.add(standardised(values, counts), counts, scale, start)
            side.kept += [frames[i].copy() for i in range(len(frames)) if start + i in self.kept]

    def begun_at(self, first: int) -> MaskedSums:
        """Sums of the frames from that number on alone, for `join`."""
        other = copy(self)
        other._seen, other._sides = first, (_Side(), _Side())
        return other

    def copied(self) -> MaskedSums:
        """Sums as they are now, though more is added."""
        other = self.begun_at(self._seen)
        for side, own in zip(other._sides, self._sides, strict=True):
            side.join(own)
            side.converted(lambda value: value.copy())
        return other

    def join(self, other: MaskedSums) -> None:
        """Take in the sums of the frames that follow these, on the host."""
        for sums in (self, other):
            sums.to_host()
        for side, new in zip(self._sides, other._sides, strict=True):
            side.join(new)
        self._seen = other._seen

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        for side in self._sides:
            side.converted(to_host)

    def to_device(self, xp: Any) -> None:
        """Go on with arrays of a module."""
        for side in self._sides:
            side.converted(xp.asarray)

    def correlation(self) -> tuple[float, float]:
        """Correlation of the frames with the mean of the others, before and after."""
        return self._sides[0].correlation(), self._sides[1].correlation()

    def crispness(self) -> tuple[float, float]:
        """Root of the mean squared gradient of the mean of all frames, before and after."""
        return self._sides[0].crispness(), self._sides[1].crispness()

    def to_register(self) -> tuple[Array, Array, Array] | None:
        """Kept frames before (k, Y, X), after, and the mean of the odd frames after, in which these have no part."""
        before, after = self._sides
        if after.numbers is None or not after.kept:
            return None
        xp = array_namespace(after.numbers)
        known = after.numbers[1] > 0
        mean = xp.where(known, after.sums[1] / xp.maximum(after.numbers[1], 1), np.nan)
        return (xp.stack(before.kept), xp.stack(after.kept), mean) if int(known.sum()) >= _FEWEST else None
