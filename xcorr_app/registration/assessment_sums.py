"""Running sums over frames before and after they are moved, from which the quality of a registration follows.

Every frame is seen once. With S the sum of M standardised frames z (less their mean, over their standard deviation, so
that each counts alike whatever its brightness) over N pixels, and q = |S|^2 / N, the mean of the others at frame t is
(S - z_t) / (M - 1), and over all t

    sum <z_t, S - z_t> = N (q - M),    sum |S - z_t|^2 = N ((M - 2) q + M),    sum |z_t|^2 = N M.

So the correlation of the frames with the mean of the others, over all pixels of all frames, needs no second look at
any of them. For the crispness of the mean, frames are taken over their standard deviation *before* on both sides, so
that the noise which interpolation smooths away does not pass for contrast, and even and odd frames are summed apart:
their noise is independent, so the product of the gradients of the two means is free of it.

Where only some pixels count, M is a number for each pixel, Q the sum of squares there, and

    sum z (S - z) = S^2 - Q,    sum (S - z)^2 = (M - 2) S^2 + Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.measured import spread
from xcorr_app.registration.moving.interpolation import inside_each
from xcorr_app.registration.moving.translation import working_type

_LEFT_OUT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of the frames at each extreme that are left out, tried in turn, until the rest have enough in common."""
_ENOUGH_PIXELS = 0.25
"""Share of the frame's rows times columns that is enough."""
_FLAT = 1e-14
"""Variance over squared mean below which there is nothing but rounding in a frame of float32."""
_KEPT = 4
"""Even frames spread over the stack that are kept, to be registered again: what their shifts are like needs no more."""
_KEPT_SIDE = 768
"""Rows and columns of their middle that are kept at most."""
_EVERY = 16
"""Rows and columns between those that a frame's mean is first estimated from."""
_MIN_PIXELS = 64
"""Pixels below which nothing is said where only some count."""
_FAINTEST = 1e-70
"""Variance below which frames over their deviation are not float32."""

Area = tuple[slice, slice]


@dataclass(frozen=True)
class SharedArea:
    """The part of the picture that is looked at, and the frames (T,) that have data in all of it after moving."""

    area: Area
    members: NDArray[np.bool_]


def extents_of(shape: tuple[int, int], shifts: NDArray[np.float64]) -> NDArray[np.int64]:
    """(T, 4) first row, stop, first column, stop of what each frame covers once it is moved by shifts (T, 2).

    Nothing where the shift is NaN: such a frame is left out.
    """
    known = np.isfinite(shifts).all(axis=1)
    sides = [inside_each(size, along) for size, along in zip(shape, np.where(known, shifts.T, 0.0), strict=True)]
    ends = np.stack([np.where(known & (first < stop), (first, stop), 0) for first, stop in sides])
    return ends.reshape(4, -1).T.astype(np.int64)


def shared_area(shape: tuple[int, int], extents: NDArray[np.int64]) -> SharedArea | None:
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
        if min(height, width) > 1 and height * width >= _ENOUGH_PIXELS * shape[0] * shape[1]:
            inside_all = (extents <= (top, shape[0], left, shape[1])) & (extents >= (0, bottom, 0, right))
            members = np.array(inside_all.all(axis=1))
            return SharedArea((slice(top, bottom), slice(left, right)), members) if members.sum() > 1 else None
    return None


@dataclass
class Side:
    """Sums of one side, before or after, over the N pixels of frames less their mean.

    How many frames there are is a number, or one for each pixel where only some of them count.
    """

    is_before: bool
    total: Any = None
    """(N,) sum of the frames over their own standard deviation, after."""
    squares: Any = None
    """(1,) or (N,) sum of the squares of these."""
    sums: Any = None
    """(2, N) sum of the even and of the odd frames over their standard deviation before."""
    numbers: Any = None
    """(2, 1) or (2, N) how many there are."""
    kept: list[Array] = field(default_factory=list)

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        for name in ("total", "squares", "sums", "numbers"):
            if (values := getattr(self, name)) is not None:
                setattr(self, name, to_host(values))
        self.kept = [to_host(frame) for frame in self.kept]

    def add(
        self,
        values: Array,
        counts: Array | None,
        own: NDArray[np.float64],
        before: NDArray[np.float64],
        first: int,
    ) -> None:
        """Take in frames (n, N), zero where they do not count, the first of which is even where `first` is.

        They are multiplied by what is one over their deviations (n,), and that `before`, both on the host. Where all
        pixels count, `counts` (n, N) is None.
        """
        xp = array_namespace(values)
        if self.sums is None:
            size = values.shape[1]
            self.total, self.sums = xp.zeros(size, values.dtype), xp.zeros((2, size), values.dtype)
            if counts is None:
                self.squares, self.numbers = np.zeros(1), np.zeros((2, 1))
            else:
                self.squares, self.numbers = xp.zeros(size), xp.zeros((2, size))
        there = xp.asarray(before.astype(values.dtype))
        for parity in range(min(2, len(values))):
            part, which = slice(parity, None, 2), (first + parity) % 2
            self.sums[which] += xp.einsum("n,np->p", there[part], values[part])
            some = own[part] > 0
            self.numbers[which] += (
                some.sum() if counts is None else (xp.asarray(some)[:, None] & counts[part]).sum(axis=0)
            )
        if own is not before:
            self.total += xp.einsum("n,np->p", xp.asarray(own.astype(values.dtype)), values)
        if counts is not None:
            self.squares += xp.einsum("n,np,np->p", xp.asarray(own**2), values, values)

    def correlation(self) -> float:
        """Correlation of the frames with the mean of the others, over all pixels at which two or more count."""
        if self.sums is None:
            return math.nan
        number = self.numbers.sum(axis=0)
        # Before, frames are over their own deviations either way.
        total = (self.sums.sum(axis=0) if self.is_before else self.total).astype(np.float64)
        power, squares = total**2, self.squares
        if number.size == 1:  # all pixels together; of frames that count everywhere the squares are their number
            power = np.array([float(power.sum()) - float(total.sum()) ** 2 / total.size])
            squares = number * total.size
        xp, several = array_namespace(power), number > 1
        if int(several.sum()) < min(_MIN_PIXELS, number.size):
            return math.nan
        others = xp.where(several, number - 1, np.inf)
        shared = float(((power - squares) / others).sum())
        of_others = float((((number - 2) * power + squares) / others**2).sum())
        of_frames = float(xp.where(several, squares, 0.0).sum())
        norm = math.sqrt(max(of_frames * of_others, 0.0))
        return shared / norm if norm > 0 else math.nan

    def means(self) -> Array:
        """(2, N) of the even and of the odd frames; NaN where there are none."""
        xp = array_namespace(self.numbers)
        share = xp.where(self.numbers > 0, 1 / xp.maximum(self.numbers, 1), np.nan).astype(self.sums.dtype)
        return self.sums * array_namespace(self.sums).asarray(share)

    def crispness(self, shape: tuple[int, int]) -> float:
        """Root of the gradient energy of the mean of all frames, a pixel, without what noise adds."""
        if self.sums is None or min(shape) < 2:  # a line has no gradient across
            return math.nan
        xp = array_namespace(self.sums)
        energy = sum(even * odd for even, odd in zip(*map(xp.gradient, self.means().reshape(2, *shape)), strict=True))
        known = xp.isfinite(energy)
        # Column by column: for a sum of everything a device's library compiles seconds of templates.
        number = int(to_host(known.sum(axis=0)).sum())
        if number < min(_MIN_PIXELS, self.numbers[0].size):
            return math.nan
        whole = to_host(xp.where(known, energy, 0.0).sum(axis=0, dtype=np.float64))
        return math.sqrt(max(float(whole.sum()) / number, 0.0))


class AssessmentSums:
    """Takes in the frames of a stack in order, chunk by chunk, NumPy or CuPy, as they were and as they are moved.

    Parameters
    ----------
    shared : SharedArea
        What is looked at: see `shared_area`.
    roi : (slice, slice), optional
        Part of the frame that the kept frames are cut to.
    defects : (n, 2) array, optional
        Row and column of hot and dead pixels. They are filled with what is around them on both sides: where they are
        moved with their frames they are no scene, and where they stand still no sign of a good registration.
    shifts : (T, 2) array, optional
        By which these frames are moved, where there are defects.
    masked : bool
        NaN and infinite pixels do not count; else they do as their frame's mean.
    """

    def __init__(
        self,
        shared: SharedArea,
        roi: Area | None = None,
        defects: NDArray[np.intp] | None = None,
        shifts: NDArray[np.float64] | None = None,
        *,
        masked: bool = False,
    ) -> None:
        self._shared, self._done, self.masked = shared, 0, masked
        self._defects, self._shifts = defects, shifts
        self._before, self._after = Side(is_before=True), Side(is_before=False)
        members = np.flatnonzero(shared.members)
        members = members[members % 2 == 0]
        self.kept = spread(members, _KEPT)
        """Numbers of the frames that are kept."""
        sides = zip(shared.area, roi or (None, None), strict=True)
        self._crop = shared.area if masked else tuple(_middle(*each) for each in sides)

    def add(self, before: Array, after: Array) -> None:
        """Take in the next frames (n, Y, X), before and after they are moved."""
        start, stop = self._done, self._done + int(before.shape[0])
        self._done = stop
        if self._defects is not None and self._shifts is not None:
            shifts = self._shifts[start:stop]
            before = _without(before, self._defects + 0 * shifts[:, None], 0)
            # Moved by fractions of a pixel, each lies on those beside it as well.
            after = _without(after, self._defects + shifts[:, None], 1)
        parts = [frames[(slice(None), *self._shared.area)] for frames in (before, after)]
        # On a host one frame after the other, in memory that stays in the cache.
        at_once = 1 if array_namespace(before) is np else stop - start
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for first in range(start, stop, at_once):
                self._take_in(first, *(part[first - start : first - start + at_once] for part in parts))
        kept = self.kept[(self.kept >= start) & (self.kept < stop)] - start
        for side, frames in zip((self._before, self._after), (before, after), strict=True):
            side.kept += [frames[(int(i), *self._crop)].copy() for i in kept]

    def _take_in(self, start: int, before: Array, after: Array) -> None:
        """Take in the shared part of frames (n, y, x) from number `start` on."""
        members = self._shared.members[start : start + int(before.shape[0])]
        if not members.any():
            return
        of_sides = [_centred(frames, masked=self.masked) for frames in (before, after)]
        counted = (of_sides[0][2] > 0) & (of_sides[1][2] > 0) & members
        own = [np.where(counted, 1 / np.sqrt(variance), 0.0) for _, _, variance in of_sides]
        for side, (values, counts, _), mine in zip((self._before, self._after), of_sides, own, strict=True):
            side.add(values, counts, mine, own[0], start)

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        for side in (self._before, self._after):
            side.to_host()

    def correlation(self) -> tuple[float, float]:
        """Correlation of the frames with the mean of the others, before and after."""
        with np.errstate(over="ignore", invalid="ignore"):  # frames at the limits of their type
            return self._before.correlation(), self._after.correlation()

    def crispness(self) -> tuple[float, float]:
        """Root of the mean squared gradient of the mean of all frames, before and after."""
        return self._before.crispness(self._shape), self._after.crispness(self._shape)

    @property
    def _shape(self) -> tuple[int, int]:
        rows, columns = self._shared.area
        return rows.stop - rows.start, columns.stop - columns.start

    def to_register(self) -> tuple[Array, Array, Array] | None:
        """Kept frames before (k, y, x), after, and the mean of the odd frames after, in which these have no part."""
        numbers = self._after.numbers
        if not self._after.kept or numbers is None or int((numbers[1] > 0).sum()) < min(_MIN_PIXELS, numbers[1].size):
            return None
        xp = array_namespace(self._after.sums)
        inner = tuple(
            slice(crop.start - part.start, crop.stop - part.start)
            for crop, part in zip(self._crop, self._shared.area, strict=True)
        )
        mean = self._after.means()[1].reshape(self._shape)[inner]
        return xp.stack(self._before.kept), xp.stack(self._after.kept), mean


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


def _centred(frames: Array, *, masked: bool) -> tuple[Array, Array | None, NDArray[np.float64]]:
    """Frames (n, N) less about their mean, which pixels count, and variances (n,), 0 where they have no contrast.

    What is one value a frame is computed on the host: on a device each step of that would be a kernel to compile.
    """
    xp = array_namespace(frames)
    kind = working_type(np.dtype(frames.dtype))
    mean = _means(frames)
    values = xp.subtract(frames, xp.asarray(mean.astype(kind))[:, None, None], dtype=kind).reshape(len(frames), -1)
    counts = None
    if frames.dtype.kind == "f":
        counts = xp.isfinite(values)
        values = xp.where(counts, values, 0)
    number: Any = values.shape[1]
    if masked and counts is not None:
        number = np.maximum(to_host(counts.sum(axis=1)), 1)
    squares = to_host(xp.einsum("np,np->n", values, values)).astype(np.float64)
    rest = to_host(xp.einsum("np->n", values)).astype(np.float64) / number
    variance = squares / number - rest**2
    has_contrast = (variance > np.maximum(_FLAT * (mean + rest) ** 2, _FAINTEST)) & np.isfinite(variance)
    if masked and counts is not None:
        values = xp.where(counts, values - xp.asarray(rest.astype(kind))[:, None], 0)
    return values, counts if masked else None, np.where(has_contrast, variance, 0.0)


def _means(frames: Array) -> NDArray[np.float64]:
    """About the mean of each frame (n, y, x), of what is finite of it."""
    some = to_host(frames[:, ::_EVERY, ::_EVERY]).astype(np.float64)
    known = np.isfinite(some)
    means: NDArray[np.float64] = np.where(known, some, 0).sum(axis=(1, 2)) / np.maximum(known.sum(axis=(1, 2)), 1)
    return means


def _middle(part: slice, roi: slice | None) -> slice:
    """Middle of `part`, and of what `roi` has in common with it, if that is anything: seven eighths of it at least."""
    start, stop = part.start, part.stop
    if roi is not None:
        first, last = max(start, roi.start or 0), min(stop, stop if roi.stop is None else roi.stop)
        start, stop = (first, last) if last - first > 1 else (start, stop)
    kept = min(stop - start, _KEPT_SIDE)
    # Few sizes for all stacks: transforms and tables of each are prepared once.
    surplus = stop - start - kept + kept % (1 << max(0, kept.bit_length() - 4))
    return slice(start + surplus // 2, stop - (surplus - surplus // 2))
