"""Running sums over frames before and after they are moved, from which the quality of a registration follows.

Every frame is seen once. With S the sum of M standardised frames z (less their mean, over their standard deviation, so
that each counts alike whatever its brightness) over N pixels, and q = |S|^2 / N, the mean of the others at frame t is
(S - z_t) / (M - 1), and over all t

    sum <z_t, S - z_t> = N (q - M),    sum |S - z_t|^2 = N ((M - 2) q + M),    sum |z_t|^2 = N M.

So the correlation of the frames with the mean of the others, over all pixels of all frames, needs no second look at
any of them. For the crispness of the mean, frames are taken over their standard deviation *before* on both sides, so
that the noise which interpolation smooths away does not pass for contrast, and even and odd frames are summed apart:
their noise is independent, so the product of the gradients of the two means is free of it.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.moving.interpolation import inside
from xcorr_app.registration.moving.translation import working_type

_LEFT_OUT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of the frames at each extreme that are left out, tried in turn, until the rest have enough in common."""
_ENOUGH = 0.25
"""Share of the frame's rows times columns that is enough."""
_FLAT = 1e-12
"""Variance over squared mean below which there is nothing but rounding in a frame."""
_KEPT = 4
"""Even frames spread over the stack that are kept, to be registered again: what their shifts are like needs no more."""
_KEPT_SIDE = 768
"""Rows and columns of their middle that are kept at most."""
_EVERY = 16
"""Rows and columns between those that a frame's mean is first estimated from."""
_FAINTEST = 1e-70
"""Variance below which frames over their deviation are not float32."""

Area = tuple[slice, slice]


@dataclass(frozen=True)
class Shared:
    """The part of the picture that is looked at, and the frames (T,) that have data in all of it after moving."""

    area: Area
    members: NDArray[np.bool_]


def extents_of(shape: tuple[int, int], shifts: NDArray[np.float64]) -> NDArray[np.int64]:
    """(T, 4) first row, stop, first column, stop of what each frame covers once it is moved by shifts (T, 2).

    Nothing where the shift is NaN: such a frame is left out.
    """
    covered = [
        (*inside(shape[0], dy), *inside(shape[1], dx)) if math.isfinite(dy + dx) else (0, 0, 0, 0)
        for dy, dx in shifts.tolist()
    ]
    return np.array(covered, dtype=np.int64).reshape(-1, 4)


def shared_area(shape: tuple[int, int], extents: NDArray[np.int64]) -> Shared | None:
    """Largest part that all frames cover, or where that is less than a quarter of the frame, most; None if even not so.

    Where a stack drifts by more than its frames are long, no pixel is seen throughout.
    """
    if len(extents) == 0:
        return None
    for share in _LEFT_OUT:
        rank = min(len(extents) - 1, math.floor(share * len(extents)))
        ordered = np.sort(extents, axis=0)
        top, left = ordered[-1 - rank, [0, 2]].tolist()
        bottom, right = ordered[rank, [1, 3]].tolist()
        height, width = bottom - top, right - left
        if min(height, width) > 1 and height * width >= _ENOUGH * shape[0] * shape[1]:
            inside_all = extents <= (top, shape[0], left, shape[1])
            inside_all &= extents >= (0, bottom, 0, right)
            members = np.array(inside_all.all(axis=1))
            return Shared((slice(top, bottom), slice(left, right)), members) if members.sum() > 1 else None
    return None


@dataclass
class Side:
    """Sums of one side, before or after, over frames less their mean."""

    total: Any = None
    """(N,) sum of the frames over their own standard deviation."""
    sums: Any = None
    """(2, N) sum of the even and of the odd frames over their standard deviation before."""
    numbers: Any = 0.0
    """(2,) how many there are."""
    kept: list[Array] = field(default_factory=list)

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        if self.sums is not None:
            self.sums, self.numbers = to_host(self.sums), to_host(self.numbers)
            self.total = None if self.total is None else to_host(self.total)
        self.kept = [to_host(frame) for frame in self.kept]

    def to_device(self, xp: Any) -> None:
        """Go on with arrays of a module."""
        if self.sums is not None:
            self.sums, self.numbers = xp.asarray(self.sums), xp.asarray(self.numbers)
            self.total = None if self.total is None else xp.asarray(self.total)
        self.kept = [xp.asarray(frame) for frame in self.kept]

    def correlation(self) -> float:
        """Correlation of the frames with the mean of the others."""
        count = float(self.numbers.sum())
        if count < 2:
            return math.nan
        total = self.sums[0] + self.sums[1] if self.total is None else self.total
        total = total.astype(np.float64)
        total -= total.mean()
        # Not by BLAS, whose other threads would then wait busily.
        q = float(array_namespace(total).einsum("i,i->", total, total)) / total.size
        rest = (count - 2) * q + count
        return (q - count) / math.sqrt(count * rest) if rest > 0 else math.nan

    def begin(self, xp: Any, size: int, dtype: Any, *, has_own: bool) -> None:
        """Make room for sums of frames of so many pixels, if there is none; `has_own`: they have weights too."""
        if self.sums is None:
            self.sums, self.numbers = xp.zeros((2, size), dtype=dtype), xp.zeros(2)
            self.total = xp.zeros(size, dtype=dtype) if has_own else None

    def add(self, values: Array, weights: Array, own: Array | None) -> None:
        """Take in frames (n, N) with `weights` (2, n) of even and odd ones, and with their `own` (n,) if other."""
        xp = array_namespace(values)
        self.begin(xp, values.shape[1], values.dtype, has_own=own is not None)
        targets = [(self.sums[0], weights[0]), (self.sums[1], weights[1])]
        for target, part in targets if own is None else [*targets, (self.total, own)]:
            target += xp.einsum("n,np->p", part.astype(values.dtype), values)
        self.numbers = self.numbers + (weights > 0).sum(axis=1)

    def add_one(self, values: NDArray[np.floating], parity: int, weight: float, own: float | None) -> None:
        """Take in one frame (N,) on the host, even (0) or odd (1), with its weight, and with its `own` if other."""
        cv2.scaleAdd(values, weight, self.sums[parity], dst=self.sums[parity])
        if own is not None:
            cv2.scaleAdd(values, own, self.total, dst=self.total)
        self.numbers[parity] += 1

    def join(self, other: Side) -> None:
        """Take in the sums of frames that follow these, all on the host."""
        if self.sums is None:
            self.total, self.sums = other.total, other.sums
        elif other.sums is not None:
            self.sums += other.sums
            if self.total is not None:
                self.total += other.total
        self.numbers = self.numbers + other.numbers
        self.kept += other.kept

    def crispness(self, shape: tuple[int, int]) -> float:
        """Root of the gradient energy of the mean of all frames, a pixel, without what noise adds."""
        numbers = [float(number) for number in self.numbers]
        if min(numbers) < 1:
            return math.nan
        xp = array_namespace(self.sums)
        even, odd = (xp.gradient((self.sums[i] / numbers[i]).reshape(shape)) for i in range(2))
        energy = sum(float((even[axis] * odd[axis]).mean()) for axis in range(2))
        return math.sqrt(max(energy, 0.0))


class AssessmentSums:
    """Takes in the frames of a stack in order, chunk by chunk, NumPy or CuPy, as they were and as they are moved.

    Parameters
    ----------
    shared : Shared
        What is looked at: see `shared_area`.
    roi : (slice, slice), optional
        Part of the frame that the kept frames are cut to.
    defects : (n, 2) array, optional
        Row and column of hot and dead pixels. They are filled with what is around them on both sides: where they are
        moved with their frames they are no scene, and where they stand still no sign of a good registration.
    shifts : (T, 2) array, optional
        By which these frames are moved, where there are defects.
    """

    def __init__(
        self,
        shared: Shared,
        roi: Area | None = None,
        defects: NDArray[np.intp] | None = None,
        shifts: NDArray[np.float64] | None = None,
    ) -> None:
        self._shared, self._seen = shared, 0
        self._defects, self._shifts = defects, shifts
        self._before, self._after = Side(), Side()
        members = np.flatnonzero(shared.members)
        members = members[members % 2 == 0]
        picks = np.linspace(0, members.size - 1, min(_KEPT, members.size)).round().astype(int)
        self.kept = members[np.unique(picks)]
        """Numbers of the frames that are kept."""
        self._crop = tuple(_middle(*sides) for sides in zip(shared.area, roi or (None, None), strict=True))

    def add(self, before: Array, after: Array) -> None:
        """Take in the next frames (n, Y, X), before and after they are moved."""
        start, stop = self._seen, self._seen + int(before.shape[0])
        self._seen = stop
        if self._defects is not None and self._shifts is not None:
            shifts = self._shifts[start:stop]
            before = _without(before, self._defects + 0 * shifts[:, None], 0)
            # Moved by fractions of a pixel, each lies on those beside it as well.
            after = _without(after, self._defects + shifts[:, None], 1)
        sides = self._before, self._after
        parts = [frames[(slice(None), *self._shared.area)] for frames in (before, after)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if array_namespace(before) is np:
                self._take_in_turn(start, *parts)
            else:
                self._take_in(start, *parts)
        kept = self.kept[(self.kept >= start) & (self.kept < stop)] - start
        for side, frames in zip(sides, (before, after), strict=True):
            side.kept += [frames[(int(i), *self._crop)].copy() for i in kept]

    def begun_at(self, first: int) -> AssessmentSums:
        """Sums of the frames from that number on alone, for `join`."""
        other = copy(self)
        other._seen, other._before, other._after = first, Side(), Side()
        return other

    def join(self, other: AssessmentSums) -> None:
        """Take in the sums of the frames that follow these, on the host."""
        for sums in (self, other):
            sums.to_host()
        with np.errstate(over="ignore", invalid="ignore"):
            self._before.join(other._before)
            self._after.join(other._after)
        self._seen = other._seen

    def _take_in(self, start: int, before: Array, after: Array) -> None:
        """Take in the shared part of frames (n, y, x) from number `start` on."""
        (values, variance), (values_after, variance_after) = map(_centred, (before, after))
        xp = array_namespace(values)
        stop = start + int(before.shape[0])
        counted = (variance > 0) & (variance_after > 0) & xp.asarray(self._shared.members[start:stop])
        own, own_after = (xp.where(counted, 1 / xp.sqrt(power), 0.0) for power in (variance, variance_after))
        even = xp.arange(start, stop) % 2 == 0
        weights = xp.where(xp.stack([even, ~even]), own, 0.0)
        self._before.add(values, weights, None)
        self._after.add(values_after, weights, own_after)

    def _take_in_turn(self, start: int, before: NDArray[Any], after: NDArray[Any]) -> None:
        """The same on a host: one frame after the other, in memory that stays in the cache."""
        values = [np.empty(frames[0].size, working_type(frames.dtype)) for frames in (before, after)]
        for side, here in zip((self._before, self._after), values, strict=True):
            side.begin(np, here.size, here.dtype, has_own=side is self._after)
        means = [_means(frames) for frames in (before, after)]
        members = self._shared.members[start : start + len(before)]
        for i in np.flatnonzero(members).tolist():
            variances = [
                _centred_into(here, frames[i], mean[i])
                for here, frames, mean in zip(values, (before, after), means, strict=True)
            ]
            if min(variances) > 0:
                weight, own = (1 / math.sqrt(variance) for variance in variances)
                self._before.add_one(values[0], (start + i) % 2, weight, None)
                self._after.add_one(values[1], (start + i) % 2, weight, own)

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        for side in (self._before, self._after):
            side.to_host()

    def to_device(self, xp: Any) -> None:
        """Go on with arrays of a module."""
        for side in (self._before, self._after):
            side.to_device(xp)

    def correlation(self) -> tuple[float, float]:
        """Correlation of the frames with the mean of the others, before and after."""
        with np.errstate(over="ignore", invalid="ignore"):  # frames at the limits of their type
            return self._before.correlation(), self._after.correlation()

    def crispness(self) -> tuple[float, float]:
        """Root of the mean squared gradient of the mean of all frames, before and after."""
        rows, columns = self._shared.area
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        return self._before.crispness(shape), self._after.crispness(shape)

    def to_register(self) -> tuple[Array, Array, Array] | None:
        """Kept frames before (k, y, x), after, and the mean of the odd frames after, in which these have no part."""
        if not self.kept.size or float(self._after.numbers[1]) < 1:
            return None
        xp = array_namespace(self._after.sums)
        rows, columns = self._shared.area
        mean = self._after.sums[1].reshape(rows.stop - rows.start, columns.stop - columns.start)
        inner = tuple(
            slice(crop.start - part.start, crop.stop - part.start)
            for crop, part in zip(self._crop, self._shared.area, strict=True)
        )
        return xp.stack(self._before.kept), xp.stack(self._after.kept), mean[inner]


def _without(frames: Array, places: NDArray[np.float64], reach: int) -> Array:
    """Frames (n, h, w) with squares about places (n, k, 2) filled with the mean of what is beyond their four sides."""
    xp = array_namespace(frames)
    last = np.array(frames.shape[1:]) - 1
    middle = np.rint(places).astype(np.intp)
    number = xp.arange(len(frames))[:, None]

    def at(down: int, across: int) -> tuple[Array, Array, Array]:
        y, x = np.moveaxis(np.clip(middle + np.array([down, across]), 0, last), 2, 0)
        return number, xp.asarray(y), xp.asarray(x)

    beyond = reach + 1
    sides = ((-beyond, 0), (beyond, 0), (0, -beyond), (0, beyond))
    mean = sum(frames[at(*side)].astype(np.float64) / 4 for side in sides)
    mean = mean if frames.dtype.kind == "f" else xp.rint(mean)
    filled = frames.copy()
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            filled[at(down, across)] = mean
    return filled


def _centred(frames: Array) -> tuple[Array, Array]:
    """Frames (n, N) on a device less about their mean, and their variance (n,), 0 where they have no contrast."""
    xp = array_namespace(frames)
    kind = working_type(np.dtype(frames.dtype))
    mean = _means(frames)
    if frames.dtype.kind == "f":
        values = xp.where(xp.isfinite(frames), frames - mean[:, None, None].astype(kind), 0)
    else:
        values = xp.subtract(frames, mean[:, None, None].astype(kind), dtype=kind)
    values = values.reshape(values.shape[0], -1)
    squares = xp.einsum("np,np->n", values, values).astype(np.float64)
    rest = xp.einsum("np->n", values).astype(np.float64) / values.shape[1]
    variance = squares / values.shape[1] - rest**2
    has_contrast = (variance > xp.maximum(_FLAT * (mean + rest) ** 2, _FAINTEST)) & xp.isfinite(variance)
    return values, xp.where(has_contrast, variance, 0.0)


def _centred_into(values: NDArray[np.floating], frame: NDArray[Any], mean: np.float64) -> float:
    """The same of one frame (y, x) on the host: write its values (N,), return its variance."""
    of_frame = values.reshape(frame.shape)
    # What is converted and subtracted in turn takes less time than both at once, and has the same bits.
    np.copyto(of_frame, frame)
    of_frame -= mean.astype(values.dtype)
    if frame.dtype.kind == "f" and not np.isfinite(frame).all():
        of_frame[~np.isfinite(frame)] = 0
    rest = cv2.sumElems(values)[0] / values.size
    variance = cv2.norm(values, cv2.NORM_L2SQR) / values.size - rest * rest
    level = float(mean) + rest
    has_contrast = variance > max(_FLAT * level * level, _FAINTEST) and math.isfinite(variance)
    return variance if has_contrast else 0.0


def _means(frames: Array) -> Array:
    """About the mean of each frame (n, y, x), of what is finite of it."""
    xp = array_namespace(frames)
    some = frames[:, ::_EVERY, ::_EVERY].astype(np.float64)
    if frames.dtype.kind != "f":
        return some.mean(axis=(1, 2))
    known = xp.isfinite(some)
    return xp.where(known, some, 0).sum(axis=(1, 2)) / xp.maximum(known.sum(axis=(1, 2)), 1)


def _middle(part: slice, roi: slice | None) -> slice:
    """Middle of `part`, and of what `roi` has in common with it, if that is anything."""
    start, stop = part.start, part.stop
    if roi is not None:
        first, last = max(start, roi.start or 0), min(stop, stop if roi.stop is None else roi.stop)
        start, stop = (first, last) if last - first > 1 else (start, stop)
    surplus = max(0, stop - start - _KEPT_SIDE)
    return slice(start + surplus // 2, stop - (surplus - surplus // 2))
