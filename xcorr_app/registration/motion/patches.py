"""Motion that differs from place to place: patches of a frame matched one by one, then one smooth field through all.

Every frame starts from its rigid shift. Its patches are compared with those of the reference in one batch, within the
largest deviation from that shift. Patches whose peak chance may have made, that lie on the edge of the search or do not
belong to their neighbours take no part: the start of the field is there the Gaussian-weighted local-linear regression
of the others, each weighted by its score. Then the field is fitted to all pixels at once (`field_fit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.apply import apply_shifts
from xcorr_app.registration.contrast import Contrast
from xcorr_app.registration.doubt import applied_shifts
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.measurement import Measurement
from xcorr_app.registration.motion.field import Field
from xcorr_app.registration.motion.field_fit import FieldFit, FieldReference, Nodes, fitted
from xcorr_app.registration.motion.grid import Grid, with_edges
from xcorr_app.registration.motion.halved_frames import HalvedFrames, halved_image
from xcorr_app.registration.motion.models import PATCHES
from xcorr_app.registration.motion.ndimage import ndimage_of
from xcorr_app.registration.motion.patch_match import Matched, PatchMatcher, PatchSearch
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.window_match import Windows
from xcorr_app.registration.passes import Pass, Progress
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack_statistics import Statistics
from xcorr_app.registration.strategies import Estimation

DEFAULT_PATCH, DEFAULT_OVERLAP, DEFAULT_DEVIATION = 128, 0.5, 6.0

_SMALLEST = 16
"""Pixels a side of a patch at least."""
_HALVED_FROM = 64
"""Pixels a side from which patches are matched at half their size: the fit to all pixels follows."""
_SMOOTHING = ((0.97, 0.7), (0.7, 1.0), (0.35, 1.5), (0.0, 2.0))
"""Share of the variance that is no noise, and the sigma in pixels of the Gaussian that noisier images lie under."""
_AS_LONG_AS, _AS_LONG_AS_ON_DEVICE = 2, 4
"""Patches of a frame take as much memory as the shifts of so many."""
_FEWEST_TRUSTED = 1 / 3
"""Share of trusted patches below which a frame is uncertain."""
_NO_MATTER = {quality.INCONSISTENT, quality.LOW_SCORE, quality.UNCERTAIN, quality.AMBIGUOUS}
"""What a frame whose parts move otherwise is flagged with when it is measured as one."""
_LEFT_OUT = ("mean", "median", "template")
REFERENCES = ("first", "last", *_LEFT_OUT)


@dataclass(frozen=True)
class PatchOptions:
    """How frames are cut, checked once."""

    patch: int = DEFAULT_PATCH
    overlap: float = DEFAULT_OVERLAP
    max_deviation: float = DEFAULT_DEVIATION

    def __post_init__(self) -> None:
        if not isinstance(self.patch, (int, np.integer)) or self.patch < _SMALLEST:
            raise ArgumentError(f"patch is {self.patch!r}: give {_SMALLEST} pixels or more")
        if not 0 <= self.overlap < 1:
            raise ArgumentError(f"patch_overlap is {self.overlap!r}: it is a fraction from 0 to less than 1")
        if not 0 < self.max_deviation <= self.patch:
            raise ArgumentError(f"max_deviation is {self.max_deviation!r}: give pixels, at most a patch")

    @property
    def half(self) -> int:
        """Factor by which images are made smaller for matching."""
        return 2 if self.patch >= _HALVED_FROM else 1


def patches_of(
    frames: Frames,
    reference: str | int | Array,
    options: PatchOptions,
    *,
    max_sigma: float,
    max_shift: float | tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> MotionResult:
    """Measure the motion of the patches of frames that are read as needed.

    `max_shift` in pixels is that of whole frames, by default a quarter of them.
    """
    if min(frames.shape) < options.patch:
        raise ShapeError(
            f"patches of {options.patch} pixels do not fit into frames of {frames.shape[0]} x {frames.shape[1]}: "
            "give a smaller patch"
        )
    if isinstance(reference, str) and reference not in REFERENCES:
        raise ArgumentError(f"unknown reference {reference!r}: use {', '.join(REFERENCES)}, a frame number or an image")
    xp = array_namespace(frames.read(0, 1).frames)
    rigid = _rigid(frames, reference, max_shift, options.half, xp, progress)
    grid = Grid.of(frames.shape, options.patch, options.patch * (1 - options.overlap))
    against = _Against(grid, frames, _references(frames, reference, rigid, xp), options, xp)

    def measure(start: int, stop: int) -> list[_Found | None]:
        return against.measured(frames.read(start, stop).frames, start, rigid.shifts[start:stop])

    as_long_as = _AS_LONG_AS if xp is np else _AS_LONG_AS_ON_DEVICE
    walk = Pass(frames.count, as_long_as * frames.shape[0] * frames.shape[1], xp is not np, progress)
    found = [one for some in walk.over("patches", measure, small=True) for one in some]
    return _result(found, rigid, against, max_sigma)


@dataclass(frozen=True)
class _Rigid:
    """Shifts of whole frames."""

    shifts: NDArray[np.float64]
    flags: tuple[tuple[str, ...], ...]
    reference: str
    notes: tuple[str, ...]
    unreadable: dict[int, str]


def _rigid(
    frames: Frames,
    reference: str | int | Array,
    max_shift: float | tuple[float, float] | None,
    half: int,
    xp: Any,
    progress: Progress | None,
) -> _Rigid:
    """Shifts as `estimate_shifts` finds them, but of frames as a whole: parts that move otherwise are expected.

    Where patches are matched at half their size, so are the frames.
    """
    if half == 2:
        frames = HalvedFrames(frames)
        reference = halved_image(reference) if not isinstance(reference, (str, int, np.integer)) else reference
    reach = None if max_shift is None else np.broadcast_to(np.asarray(max_shift, np.float64) / half, 2)
    settings = Settings(contrast=Contrast(), max_shift=None if reach is None else (float(reach[0]), float(reach[1])))
    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np, progress)
    measurement = Measurement(frames, walk, settings, xp, whole=True)
    estimation = Estimation(frames, settings, measurement, Statistics(frames, walk, settings, xp), xp)
    measured, described, notes = estimation.run(reference, np.zeros(frames.count, dtype=bool))
    return _Rigid(half * measured.shifts, measured.flags(settings), described, notes, measured.reasons)


@dataclass(frozen=True)
class _Found:
    """The field of one frame, and its patches."""

    fit: FieldFit
    match: Matched


class _References:
    """The image that each frame is compared with: one for all, or the mean of all aligned frames but itself."""

    def __init__(self, image: Array, others: tuple[Array, Array] | None = None, moved: Any = None) -> None:
        self.image, self._others, self._moved = image, others, moved

    def of(self, t: int) -> Array | None:
        """The image for frame t, None where it is that of all."""
        if self._others is None:
            return None
        xp = array_namespace(self.image)
        total, count = self._others
        values, seen = self._moved(t)
        count = count - seen
        return xp.where(count > 0, (total - values) / xp.maximum(count, 1), self.image)


@dataclass(frozen=True)
class _Prepared:
    """A reference as frames are compared with it."""

    sigma: float
    """Pixels of the Gaussian that its noise calls for."""
    levels: list[FieldReference]
    """At full size and perhaps at half."""
    windows: Windows
    """Its patches at the smallest size."""


class _Against:
    """Measures frames against a reference."""

    def __init__(self, grid: Grid, frames: Frames, references: _References, options: PatchOptions, xp: Any) -> None:
        self.grid, self._half = grid, options.half
        self.nodes = Nodes(with_edges(grid.rows), with_edges(grid.columns), frames.shape, xp)
        self._levels = [self.nodes, self.nodes.halved(xp)][: self._half]
        self._matcher = PatchMatcher(grid, options.patch, options.max_deviation, self._half)
        places = np.meshgrid(self.nodes.rows, self.nodes.columns, indexing="ij")
        self._places = np.stack([values.ravel() for values in places], axis=1)
        self._shared = self.prepared(references.image)
        self._references = references

    def prepared(self, image: Array, like: _Prepared | None = None) -> _Prepared:
        """A reference as frames are compared with it; `like` another that differs by little, to save time."""
        values = _finite(image)
        sigma = self._smoothing(values) if like is None else like.sigma
        sizes = self._sizes(smoothed(values, sigma))
        known = [None] * len(sizes) if like is None else like.levels
        levels = [FieldReference(*each) for each in zip(sizes, self._levels, known, strict=True)]
        return _Prepared(sigma, levels, self._matcher.windows(sizes[-1]))

    @staticmethod
    def _smoothing(values: Array) -> float:
        clean = float(quality.clean_fraction(values[None])[0])
        return next(sigma for above, sigma in _SMOOTHING if clean >= above)

    def measured(self, frames: Array, first: int, shifts: NDArray[np.float64]) -> list[_Found | None]:
        """Measure consecutive frames (T, Y, X), which rigid shifts (T, 2) bring near; None where there is no shift."""
        known = np.flatnonzero(np.isfinite(shifts).all(axis=1)).tolist()
        found: list[_Found | None] = [None] * len(frames)
        if not known:
            return found
        references, sizes = [], []
        for t in known:
            own = self._references.of(first + t)
            references.append(self._shared if own is None else self.prepared(own, self._shared))
            sizes.append(self._sizes(smoothed(_finite(frames[t]), references[-1].sigma)))
        searches = [
            PatchSearch(reference.windows, each[-1], reference.sigma, -shifts[t])
            for reference, each, t in zip(references, sizes, known, strict=True)
        ]
        for t, reference, each, match in zip(known, references, sizes, self._matcher.matched(searches), strict=True):
            start = self._matcher.field_through(match, self._places, -shifts[t])
            start = start.T.reshape(2, self.nodes.rows.size, self.nodes.columns.size)
            found[t] = _Found(fitted(reference.levels, each, start), match)
        return found

    def _sizes(self, image: Array) -> list[Array]:
        return [image, halved_image(image)] if self._half == 2 else [image]


def smoothed(image: Array, sigma: float) -> Array:
    """An image (float32) under a Gaussian."""
    xp = array_namespace(image)
    if xp is np:
        import cv2

        return cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return ndimage_of(xp).gaussian_filter(image, sigma, mode="nearest")


def _finite(image: Array) -> Array:
    """An image as float32 without its mean, which takes the place of NaN and infinity."""
    xp = array_namespace(image)
    if image.dtype.kind != "f" and image.dtype.itemsize <= 2:  # which float32 holds as they are
        values = image.astype(np.float32)
        values -= np.float32(values.mean(dtype=np.float64))
        return values
    if image.dtype.kind != "f":
        return (image - xp.mean(image, dtype=np.float64)).astype(np.float32)
    mean = float(image.mean(dtype=np.float64))
    if np.isfinite(mean):
        return (image - image.dtype.type(mean)).astype(np.float32, copy=False)
    finite = xp.isfinite(image)
    mean = float(xp.where(finite, image, 0.0).sum(dtype=np.float64)) / max(int(finite.sum()), 1)
    return xp.where(finite, image - mean, 0.0).astype(np.float32)


def _references(frames: Frames, reference: str | int | Array, rigid: _Rigid, xp: Any) -> _References:
    if not isinstance(reference, (str, int, np.integer)):
        return _References(reference)
    if reference not in _LEFT_OUT:
        number = (
            {"first": 0, "last": frames.count - 1}.get(reference, reference)
            if isinstance(reference, str)
            else reference
        )
        return _References(frames.read(int(number) % frames.count, int(number) % frames.count + 1).frames[0])
    usable = np.array([not set(flags) - _NO_MATTER for flags in rigid.flags]) & np.isfinite(rigid.shifts).all(axis=1)
    shifts = applied_shifts(rigid.shifts, usable)

    def moved(t: int) -> tuple[Array, Array]:
        if not usable[t]:
            return xp.zeros(frames.shape, np.float32), xp.zeros(frames.shape, np.float32)
        frame = _finite(frames.read(t, t + 1).frames[0])
        values = apply_shifts(frame[None], shifts[t : t + 1], order=3, cval=np.nan)[0]
        seen = xp.isfinite(values)
        return xp.where(seen, values, 0.0), seen.astype(np.float32)

    def of_range(start: int, stop: int) -> tuple[Array, Array]:
        total, count = moved(start)
        for t in range(start + 1, stop):
            values, seen = moved(t)
            total, count = total + values, count + seen
        return total, count

    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np)
    total, count = walk.total("template", of_range, _added)
    whole = xp.where(count > 0, total / xp.maximum(count, 1), 0.0)
    return _References(whole, (total, count), moved)


def _added(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return one[0] + other[0], one[1] + other[1]


def _result(found: list[_Found | None], rigid: _Rigid, against: _Against, max_sigma: float) -> MotionResult:
    nodes, count = against.nodes, len(found)
    size = nodes.rows.size, nodes.columns.size
    field, sigma = (np.full((count, *size, 2), np.nan) for _ in range(2))
    trusted, significance = np.zeros((count, *size), dtype=bool), np.full((count, *size), np.nan)
    score, flags = np.full(count, np.nan), []
    spread = [
        np.abs(with_edges(axis)[:, None] - axis.middles).argmin(axis=1)
        for axis in (against.grid.rows, against.grid.columns)
    ]
    matrices = np.tile(np.eye(3), (count, 1, 1))
    for t, one in enumerate(found):
        words = [word for word in rigid.flags[t] if word not in _NO_MATTER]
        if one is None:
            matrices[t] = np.nan
        else:
            field[t], sigma[t] = -np.moveaxis(one.fit.field, 0, 2), np.moveaxis(one.fit.sigma, 0, 2)
            trusted[t] = one.match.trusted.reshape(against.grid.shape)[np.ix_(*spread)]
            significance[t] = one.match.significance.reshape(against.grid.shape)[np.ix_(*spread)]
            score[t] = one.fit.score
            matrices[t, :2, 2] = one.fit.field.reshape(2, -1).mean(axis=1)
            if not np.median(sigma[t]) <= max_sigma or one.match.trusted.mean() < _FEWEST_TRUSTED:
                words.append(quality.UNCERTAIN)
        flags.append(tuple(words))
    shift = matrices[:, :2, 2]
    overlap = np.prod(np.clip(1 - np.abs(shift) / np.array(nodes.shape), 0, 1), axis=1)
    return MotionResult(
        model=PATCHES,
        matrices=matrices,
        score=score,
        sigma=np.median(sigma.reshape(count, -1, 2), axis=1),
        sigma_angle=np.zeros(count),
        overlap=np.nan_to_num(overlap),
        flags=tuple(flags),
        shape=nodes.shape,
        reference=rigid.reference,
        unreadable=rigid.unreadable,
        notes=rigid.notes,
        field=Field(nodes.rows, nodes.columns, field, sigma, trusted, significance),
    )
