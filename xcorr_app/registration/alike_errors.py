"""Are the errors of neighbouring parts of a picture alike? Then shifts are less sure than its tiles say one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import array_namespace
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.turned_frames import edges
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.reference.strategies import Estimation
from xcorr_app.registration.standard_error.alike_tiles import CommonTiles, Contributions, excess_variance

_LOOKED_AT, _WITH_PARTS, _AT_ONCE, _FEWEST = 16, 8, 4, 4
"""Frames, and those of which parts are left out: each with a reference of its own, that takes three times as long."""
_SAME = 2.0
"""Standard errors by which a part that was left out moves the shift of a frame at most, as a rule."""
_FARTHEST = 0.75
"""Pixels by which the edges of frames that turn may move: tiles are compared where they are but for the shift."""


def same_shifts(one: Measured, other: Measured) -> bool:
    """Whether shifts of most frames of which `one` left a part out are those of `other`, as far as `one` is sure.

    The other's own errors do not count: a part with a motion of its own makes them as large as what it changes.
    """
    known = one.partial & np.isfinite(one.shifts + other.shifts).all(axis=1)
    errors = np.hypot(one.sigma, 0.0 if one.shared is None else one.shared)[known]
    off = np.abs(one.shifts - other.shifts)[known] / errors
    return bool(known.any() and np.median(off.max(axis=1)) < _SAME)


def excess(
    estimation: Estimation, reference: str | int | np.integer[Any], measured: Measured, *, in_parts: bool = True
) -> NDArray[np.float64]:
    """Pixels (T, 2) that standard errors lack, to be added in squares; zero where there is no reference frame.

    A frame of the stack is the reference, and is sure of itself. Parts that move otherwise are left out, unless not
    `in_parts`.
    """
    nothing, count = np.zeros_like(measured.sigma), len(measured.sigma)
    number = frame_number(reference, count)
    if number is None:
        return nothing
    trusted = measured.trusted(estimation.settings)
    looked_at = trusted & (np.arange(count) != number)
    if measured.linear is not None:
        linear = np.where(np.isfinite(measured.linear), measured.linear, np.eye(2))
        looked_at &= edges(linear - np.eye(2), estimation.settings.measured_shape(estimation.frames.shape)) < _FARTHEST
    others = np.flatnonzero(looked_at)
    if others.size < _FEWEST or not trusted[number]:
        return nothing
    differ = in_parts and masks.some_differ(measured.tiles)
    few, measurement = spread(others, _WITH_PARTS if differ else _LOOKED_AT), estimation.measurement
    (images,) = measurement.prepared.usable((number,))
    shape, shifts = (int(images.shape[1]), int(images.shape[2])), measured.shifts
    tiles = CommonTiles(shape, measurement.kernel_for(images[0]), shifts[few])
    if tiles.are_few:
        return nothing
    # What moves otherwise is no error of the rest.
    out = None
    if differ:
        chosen = np.isin(np.arange(count), few)
        out = masks.Parts(masks.left_out(measurement.tiles_of(shifts, images[0], chosen)), shifts)
    for start in range(0, few.size, _AT_ONCE):
        some = few[start : start + _AT_ONCE]
        frames = array_namespace(images).concatenate(measurement.prepared.usable(tuple(some.tolist())))
        pair = (images, frames) if out is None else out.leave_out(images, frames, some, noisy=False)
        tiles.add(*pair, shifts[some])
    found = tiles.contributions()
    if found is None:
        return nothing
    of_all = _variance(found, measured)
    by = np.broadcast_to(np.where((np.arange(count) != number)[:, None], of_all, 0.0), nothing.shape).copy()
    squares = (found.errors**2).sum(axis=(1, 2))
    alone = int(squares.argmax())
    if of_all.any() and 2 * squares[alone] > squares.sum():
        # What one frame alone shows is no scatter of all: it lies elsewhere.
        by = np.where(by > 0, _variance(replace(found, errors=np.delete(found.errors, alone, axis=0)), measured), 0.0)
        by[few[alone]] = np.maximum(by[few[alone]], len(few) * of_all)
    missing: NDArray[np.float64] = np.sqrt(by)
    return missing


def _variance(found: Contributions, measured: Measured) -> NDArray[np.float64]:
    by = excess_variance(found, linear=True)
    if measured.linear is None:
        # Frames that grow or turn a little have tiles that are off alike, and a middle that is not.
        by = np.minimum(by, excess_variance(found))
    return by
