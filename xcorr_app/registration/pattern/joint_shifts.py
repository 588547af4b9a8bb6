"""A scene that hardly moves over a fixed pattern: when that is so, and the shifts of both layers fitted together.

Where a pattern of the scene's own contrast stands still and the scene moves by less than the width of its peak, frames
are matched by a compromise of both. That the scene moves farther than measured is seen by what changes from frame to
frame: of one layer it is the slope of all that the frames show; of two it is that of the scene alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import ShiftColumns
from xcorr_app.registration.model.two_layers import TwoLayers as WholeFrames
from xcorr_app.registration.pattern.two_layers import TwoLayers

_MAX_MOTION, _OF_SIZE = 16.0, 1 / 15
"""Pixels of motion, and share of the longer side, beyond which what enters at the rim counts too much."""
_MIN_MOTION = 0.05
_MIN_SHARE, _MAX_SHARE = 0.1, 12.0
"""Of the power that frames share, which a pattern has: less bends nothing by much, of more no scene is left."""
FIRST_SIGN, DOUBTED, SURE = 1.0, 3.0, 5.0
"""Deviations from which frames are looked at more closely, from which their shifts are in doubt, and from which there
is a pattern: of 20 plain series at an SNR of 0.2 none came to 1.5."""
_UNEXPLAINED, _BY_CHANCE = 0.1, 5.0
"""Share of the changes that both layers leave at most, or so many times what chance leaves."""
_BY_RIM, _BETTER = 0.015, 0.5
"""Share of the changes that the rim leaves at most; beyond it something else changes, and the shifts fitted must leave
less than those measured by this share of that, so that they explain more than they leave: light that turns, or a
charge that builds up beside bright things, is explained by neither, and bends the fit."""
_UNKNOWN_SCALE = 0.2
"""Relative standard error of the length of all shifts beyond which nothing is known of them."""
_MAX_CHANGE = 20.0
"""Times the shifts measured beyond which it is no scene that moves."""
_SURELY_OFF = 5.0
"""Standard errors of the joint fit by which shifts measured must be off: what the rim adds looks like a pattern too."""
_PERHAPS_OFF, _LARGE = 3.0, 0.5
"""Standard errors, and pixels, by which shifts measured may be off: then they are in doubt."""
_BEYOND, _MAX_BEYOND, _FEW_BEYOND = 0.3, 0.25, 3
"""Pixels, beyond what standard errors explain, that shifts measured may go past those of the scene, and share and
number of the frames in which they may: a still layer holds them back, and drives none of them."""
_ROUNDING = 1e-4
"""Pixels that the shift of the reference itself may be off zero."""
_AT_ONCE = 16
_FAR, _NEAR = 3.0, 0.5
"""Pixels of motion from which rims tell more than they confuse, and by which shifts then change at most."""

Taken = Callable[[NDArray[np.intp]], Array]


@dataclass(frozen=True)
class JointShifts:
    """Shifts (T, 2) and their standard errors, of a scene over a pattern; NaN where a frame has none."""

    shifts: NDArray[np.float64]
    sigma: NDArray[np.float64]
    strength: float
    """Standard deviation of the pattern over that of the scene."""

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "A fixed pattern, which stands still while the scene moves by a few pixels (camera or illumination; "
            f"{100 * self.strength:.0f} % of the scene's contrast), was fitted together with the shifts."
        )

    def is_near(self, others: NDArray[np.float64]) -> bool:
        """Whether shifts, of which none is open, are next to others."""
        return not np.isinf(self.sigma).any() and bool(
            np.nanmax(np.abs(self.shifts - others) - _PERHAPS_OFF * self.sigma) < _LARGE
        )

    def replacing(self, measured: ShiftColumns) -> ShiftColumns:
        """Shifts measured, replaced by these; what an engine and its check differ by stays so."""
        difference = measured.fft_shifts - measured.shifts
        known: NDArray[np.bool_] = np.asarray(np.isfinite(self.shifts).all(axis=1))
        shifts = np.where(known[:, None], self.shifts, measured.shifts)
        # What differs from tile to tile, and a second peak, is the pattern, which is accounted for.
        return replace(
            measured,
            shifts=shifts,
            fft_shifts=shifts + difference,
            sigma=np.where(known[:, None], self.sigma, measured.sigma),
            peak_ratio=np.where(known, np.nan, measured.peak_ratio),
            inconsistent=measured.inconsistent & ~known,
            partial=measured.partial & ~known,
        )


def hardly_moves(shape: tuple[int, int], shifts: NDArray[np.float64]) -> bool:
    """Whether frames of measured shifts (n, 2) move, but by so little that a peak may show two layers."""
    reach = float(np.ptp(shifts, axis=0).max())
    return len(shifts) >= 4 and _MIN_MOTION <= reach < _largest_motion(shape)


def signs_of_two_layers(images: Array, shifts: NDArray[np.float64]) -> float:
    """By how many deviations float images (n, h, w) of measured shifts (n, 2) show a scene over a still pattern."""
    if not hardly_moves((int(images.shape[1]), int(images.shape[2])), shifts):
        return 0.0
    share, deviations = TwoLayers(images).evidence(shifts)
    return deviations if _MIN_SHARE < share < _MAX_SHARE else 0.0


def fitted_together(
    stack: Array,
    numbers: NDArray[np.intp],
    begin: NDArray[np.float64],
    measured: ShiftColumns,
    taken: Taken,
) -> tuple[JointShifts | None, bool]:
    """Fit both layers to a stack (n, h, w) of the frames with these numbers, whose shifts (n, 2) were measured.

    Returns the shifts of all frames, `taken` by number, or None; and whether two layers were found whose motion against
    each other is not known.
    """
    layers, held, start = TwoLayers(stack), _held(measured, numbers), begin
    for model in (layers.thinned(), layers):
        try:
            fit = model.fit(start, held)
        except np.linalg.LinAlgError:  # a flat frame says nothing of its shift
            return None, False
        left, chance = model.unexplained(fit.shifts)
        if left > max(_UNEXPLAINED, _BY_CHANCE * chance):
            return None, False
        start = fit.shifts
    if _is_contradicted(fit.shifts, begin - begin[held], np.hypot(fit.sigma, measured.sigma[numbers])):
        return None, False
    of_measured, _ = layers.unexplained(begin - begin[held])
    if abs(left) > max(_BY_RIM, _BY_CHANCE * chance) and of_measured - left < _BETTER * max(
        abs(of_measured), abs(left)
    ):
        return None, False
    reach, before = (float(np.ptp(each, axis=0).max()) for each in (fit.shifts, begin))
    if fit.scale_error > _UNKNOWN_SCALE or reach > _MAX_CHANGE * before:
        return None, True
    off = np.abs(fit.shifts - (begin - begin[held]))
    if reach >= _largest_motion(stack.shape[1:]) or not (off > _SURELY_OFF * fit.sigma).any():
        return None, bool((off > np.maximum(_PERHAPS_OFF * fit.sigma, _LARGE)).any())
    pattern, scene = layers.strengths(fit.shifts)
    shifts, sigma = np.full((2, *measured.shifts.shape), np.nan)
    shifts[numbers], sigma[numbers] = fit.shifts, fit.sigma
    nearer = _to_the_rim(stack, fit.shifts, held) if reach >= _FAR else None
    if nearer is not None:
        shifts[numbers], sigma[numbers] = nearer[0].shifts, nearer[1]
    others = np.setdiff1d(np.flatnonzero(measured.usable & np.isfinite(measured.shifts).all(axis=1)), numbers)
    # How shifts of the scene follow from those measured.
    centre, of_fit = measured.shifts[numbers].mean(axis=0), fit.shifts.mean(axis=0)
    longer = np.linalg.lstsq(measured.shifts[numbers] - centre, fit.shifts - of_fit, rcond=1e-3)[0]
    for first in range(0, others.size, _AT_ONCE):
        some = others[first : first + _AT_ONCE]
        about = (measured.shifts[some] - centre) @ longer + of_fit
        try:
            placed = layers.placed(taken(some), about, fit) if nearer is None else nearer[0].placed(taken(some), about)
            shifts[some], sigma[some] = placed
        except np.linalg.LinAlgError:
            return None, False
    if np.abs(measured.shifts[numbers[held]]).max() > _ROUNDING:  # a mean of frames, where it lies itself
        shifts += np.nanmedian(measured.shifts - shifts, axis=0)
    return JointShifts(shifts, sigma, float(np.sqrt(pattern / max(scene, 1e-300)))), False


def _to_the_rim(stack: Array, shifts: NDArray[np.float64], held: int) -> tuple[WholeFrames, NDArray[np.float64]] | None:
    """Both layers by all of the frames, not only what does not fade; None where these lead elsewhere, or nowhere."""
    layers = WholeFrames(stack, shifts, held)
    with suppress(np.linalg.LinAlgError):
        sigma = layers.fit()
        return (layers, sigma) if np.abs(layers.shifts - shifts).max() < _NEAR else None
    return None


def _is_contradicted(fitted: NDArray[np.float64], measured: NDArray[np.float64], sigma: NDArray[np.float64]) -> bool:
    """Whether shifts measured (n, 2) lie elsewhere than between none and those fitted, where a still layer holds them.

    A light that flashes in some frames passes for a scene that jumps, over one that stands still.
    """
    past = np.maximum(measured - np.maximum(fitted, 0.0), np.minimum(fitted, 0.0) - measured)
    beyond = (past > np.maximum(_BEYOND, _PERHAPS_OFF * np.where(np.isnan(sigma), 0.0, sigma))).any(axis=1)
    return bool(beyond.mean() > _MAX_BEYOND and beyond.sum() > _FEW_BEYOND)


def _largest_motion(shape: tuple[int, ...]) -> float:
    return float(min(_MAX_MOTION, _OF_SIZE * max(shape)))


def _held(measured: ShiftColumns, numbers: NDArray[np.intp]) -> int:
    """Which of the frames is the reference, of shift zero, or lies next to it."""
    return int(np.argmin(np.abs(measured.shifts[numbers]).max(axis=1)))
