"""Which shifts are refined by phase ramps: those that the fit to 3 x 3 values of the plane may be off by.

How far it is off is told by what two more values on each side change: where that is more than a user would see, and
more than noise explains, the peak is no polynomial of second order (a fine texture, speckle, clean images).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.match import Match
from xcorr_app.registration.measuring.phase_ramp import refine
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

_WORTH = 0.003
"""Pixels by which two more values change a shift: below, no user sees it."""
_NOISE = 3.0
"""Standard errors of the shift, by noise, that such a change is at least: two more values bring their own noise."""
_SHARP = 0.7
"""Mean of the values on both sides, over the top: below, the peak is as narrow as that of a texture blurred by less
than a pixel, which passes for noise, so that standard errors by noise say nothing."""

_SURE, _STEADY = 12.0, 20.0
"""Standard deviations of the plane by which a narrow peak stands out, and any other: below, its shape is noise's."""


def with_phase_ramps(match: Match, shapes: PeakShapes, images: Array, frames: Array) -> tuple[Match, PeakShapes]:
    """Refine where it is worth it; by reference images (1 or n, h, w) and frames (n, h, w)."""
    rows = np.flatnonzero(_is_off(match, shapes))
    if not rows.size:
        return match, shapes
    every = rows.size == len(frames)
    found = refine(
        images if every or images.shape[0] == 1 else images[rows], frames if every else frames[rows], match.shift[rows]
    )
    shift, refined = match.shift.copy(), shapes.refined.copy()
    shift[rows], refined[rows] = found
    return replace(match, shift=shift), replace(shapes, refined=refined)


def _is_off(match: Match, shapes: PeakShapes) -> NDArray[np.bool_]:
    """(n,) whether fits to 3 x 3 values may be off by more than noise, of peaks to which noise leaves their shape."""
    lines = np.stack([match.around[:, :, 2], match.around[:, 2]], axis=1).astype(np.float64)
    off = _changes(lines, match.shift - match.peak)
    with np.errstate(invalid="ignore"):
        sharp = (lines[..., 1] + lines[..., 3]) / 2 < _SHARP * lines[..., 2]
        by_shape = sharp & ~(match.significance < _SURE)[:, None]
        by_noise = (off > _NOISE * shapes.by_noise()) & ~(match.significance < _STEADY)[:, None]
        is_off = ((off > _WORTH) & (by_shape | by_noise)).any(axis=1)
    return np.asarray(is_off)


def _changes(lines: NDArray[np.float64], top: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how many pixels the top (...) of a fit is away from that of a quartic through five values (..., 5)."""
    a, b, c, d, e = np.moveaxis(lines, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (a - 8 * b + 8 * d - e) / 12, (-a + 16 * b - 30 * c + 16 * d - e) / 12
        third, fourth = (-a + 2 * b - 2 * d + e) / 2, a - 4 * b + 6 * c - 4 * d + e
        slope = first + top * (second + top * (third / 2 + top * fourth / 6))
        bend = second + top * (third + top * fourth / 2)
        # Where the quartic has no top near by, the fit is surely off.
        change: NDArray[np.float64] = np.where(bend < 0, np.minimum(np.abs(slope / bend), 0.5), 0.5)
    return change
