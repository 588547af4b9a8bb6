"""Frames in which a second shift fits almost as well: whether a part of the picture tells the two apart.

A few things that differ decide where most of a scene repeats itself: a scratch on a chip, the edge of a crystal, which
of a handful of stars are bright. Their share of the correlation is small, and yet they cannot be chance. The rival is
out where several tiles are fitted far worse by it (``parts/tile_votes.py``) and next to none better: of a perfect
lattice none is.

What tells may stand still while the lattice moves, as dust on a camera does. Then it is the smallest shift everywhere,
and shifts jump by a period where the lattice has moved by half of one (:func:`stand_still`). Where nothing tells, a
lattice is followed from frame to frame (:func:`followed`), and its frames stay flagged.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import SAME_PEAK
from xcorr_app.registration.parts.tile_votes import MIN_VOTES, moved_by, smoothed, votes
from xcorr_app.registration.quality import AMBIGUOUS_RATIO

_OTHERS = 0.1
"""Share of the number of tiles that prefer a shift, that may prefer its rival."""
_MAX_RIVALS = 6
"""Rivals that are looked at, the highest by the polynomial through 3 x 3 values."""
CANDIDATES = 1 + _MAX_RIVALS
"""Shifts of a frame that are compared."""
_FOLLOWS, _JUMP = 0.25, 0.5
"""Of the way to the nearest rival, as a rule: up to which a frame follows another, and beyond which it jumps."""
_MARGIN = 1.05
"""Further below a peak, since peaks lie between whole shifts."""


def disambiguated(
    images: Array, frames: Array, shifts: NDArray[np.float64], window: ShiftWindow, min_overlap: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, 2) the one shift of frames (n, h, w) against images (1 or n, h, w) that stands against all others.

    It is that measured, of `shifts` (n, 2), or one of its rivals, since samples at whole pixels may have preferred a
    wrong period; NaN where the picture does not tell, or there is no rival. And (n, `CANDIDATES`, 2) all of these, NaN
    where there are fewer.
    """
    found, all_alike = np.full(shifts.shape, np.nan), np.full((len(shifts), CANDIDATES, 2), np.nan)
    for n, (image, frame, shift) in enumerate(_each(images, frames, shifts)):
        alike = np.array([shift, *_rivals(image, frame, shift, window, min_overlap)])
        all_alike[n, : len(alike)], moved, best = alike, moved_by(frame, alike), 0
        for other in range(1, len(alike)):
            best = other if _prefers(image, moved[[other, best]], alike[[other, best]]) else best
        pairs = [[best, other] for other in range(len(alike)) if other != best]
        if pairs and all(_prefers(image, moved[pair], alike[pair]) for pair in pairs):
            found[n] = alike[best]
    return found, all_alike


def alike_peaks(
    images: Array, frames: Array, shifts: NDArray[np.float64], window: ShiftWindow, min_overlap: float
) -> list[NDArray[np.float64]]:
    """Of each frame (n, h, w) all shifts (m, 2) that fit almost as well as those measured (n, 2), which are first."""
    return [
        np.array([shift, *_rivals(image, frame, shift, window, min_overlap, None)])
        for image, frame, shift in _each(images, frames, shifts)
    ]


def followed(known: NDArray[np.float64], alike: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Shifts (T, 2) of a lattice: those known, of others the first `alike` (m, 2), or one that is a far lesser step.

    What moves on by little of a period from frame to frame is found, from the first that is known to either end.
    """
    found, first = known.copy(), int(np.isfinite(known[:, 0]).argmax())
    for order in (range(first, len(known)), range(first, -1, -1)):
        place = np.nan_to_num(known[first])
        for i in order:
            if i in alike:
                far = np.hypot(*(alike[i] - place).T)
                found[i] = alike[i][far.argmin() if far.min() < _JUMP * far[0] else 0]
            place = found[i] if np.isfinite(found[i, 0]) else place
    return found


def _each(
    images: Array, frames: Array, shifts: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]]:
    """Image, frame and shift of each, smoothed; one by one: of a device's frames the host is not to hold more."""
    one = smoothed(images)[0] if len(images) == 1 else None
    for n, shift in enumerate(shifts):
        yield smoothed(images[n : n + 1])[0] if one is None else one, smoothed(frames[n : n + 1])[0], shift


def stand_still(found: NDArray[np.float64], alike: NDArray[np.float64]) -> bool:
    """Whether what tells the shifts of T frames apart may be standing still while the scene moves.

    Of `found` (T, 2) each is the smallest of its frame's `alike` (T, `CANDIDATES`, 2) then, or of a frame without any
    within a period, and somewhere they jump by more than half of one. Frames of which nothing is told, `found` NaN, are
    followed where one of their shifts lies near.
    """
    is_told, has_rivals = np.isfinite(found[:, 0]), np.isfinite(alike[:, 1, 0])
    if not (is_told & has_rivals).any():
        return False
    away = np.hypot(*np.moveaxis(alike - found[:, None], -1, 0))
    period = np.median(np.where(away > SAME_PEAK, away, np.inf).min(axis=1)[is_told & has_rivals])
    smallest = np.where(np.isfinite(alike), alike, np.inf)
    limit = np.where(has_rivals, np.hypot(*np.moveaxis(smallest, -1, 0)).min(axis=1) + SAME_PEAK, period)
    if (np.hypot(*found.T) > limit).any():
        return False
    place = None
    for shift, others, told in zip(found, alike, is_told, strict=True):
        if told:
            if place is not None and np.hypot(*(shift - place)) > _JUMP * period:
                return True
            place = shift
        elif place is not None and np.isfinite(others[0, 0]):
            far = np.hypot(*(others - place).T)
            place = others[np.nanargmin(far)] if np.nanmin(far) < _FOLLOWS * period else place
    return False


def _prefers(image: NDArray[np.float32], moved: NDArray[np.float32], both: NDArray[np.float64]) -> bool:
    """Whether tiles of an image are fitted far better by a frame moved by the first of two shifts."""
    better, worse = votes(image, moved, both)
    return better >= MIN_VOTES and worse <= _OTHERS * better


def _rivals(
    image: NDArray[np.float32],
    frame: NDArray[np.float32],
    shift: NDArray[np.float64],
    window: ShiftWindow,
    min_overlap: float,
    most: int | None = _MAX_RIVALS,
) -> NDArray[np.float64]:
    """Other shifts (m, 2) at which the plane is almost as high, by fractions of pixels; its next peaks if none is."""
    plane = cross_correlate(image, frame, max_shift=window, min_overlap=min_overlap, check_finite=False)
    near = np.lib.stride_tricks.sliding_window_view(np.pad(plane, 1, constant_values=np.nan), (3, 3))
    known = np.nan_to_num(plane, nan=-1.0)
    is_peak = (cv2.dilate(known, np.ones((3, 3), np.uint8)) <= known) & np.isfinite(plane)
    y, x = np.nonzero(is_peak)
    places = np.stack([y + window.dy_min, x + window.dx_min], axis=1).astype(np.float64)
    other = np.abs(places - shift).max(axis=1) > 1.5
    y, x, places = y[other], x[other], places[other]
    alike = known[y, x] * AMBIGUOUS_RATIO * _MARGIN > float(known.max())
    if alike.any():
        y, x, places = y[alike], x[alike], places[alike]
    offset, height = refine(near[y, x], "gaussian", 1)
    return np.asarray((places + offset)[np.argsort(-height, kind="stable")[:most]])
