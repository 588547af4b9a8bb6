"""The template: the mean of all aligned frames but the one measured, repeated until no shift changes.

The result must not depend on which frame is the first. So the template lies where the frames lie in the median, not
where the first lies, and every frame is seen in it as far as possible; the first frame only gives the origin of the
shifts, and the image that the first round compares with.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.measuring.measured import ShiftColumns
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.placement import at_level, levels
from xcorr_app.registration.measuring.references import FixedImage, MeanOfOthers
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.reference.lone_reference import FOUND_BY_CHANCE
from xcorr_app.registration.reference.stack_statistics import aligned_mean_of_others, mean_of_others
from xcorr_app.registration.settings import Settings

_MAX_ROUNDS = 12
"""After which a template is taken as it is, with a note."""
_CONVERGED = 0.0005
"""The template is settled once no frame's shift changes by more than this, in pixels."""
_FROM_EDGE = 2
"""Pixels inside the window that a shift must lie to be measured."""
_MAX_OFFSET = 0.05
"""Pixels by which the image that frames are brought to the level of may be displaced."""

_WOULD_BLUR = (
    "Parts of the picture move otherwise, turn, or come and go, and would blur a template: "
    "each frame was compared with one of them."
)
_LESS_SURE = "Most frames are less sure of a template than of one of them: each was compared with that one."

Outcome: TypeAlias = tuple[ShiftColumns, str, tuple[str, ...]]
"""What was measured, the reference in words, and notes on the whole stack."""


def against_template(
    measurement: Measurement, begin: int, verified: NDArray[np.bool_], *, from_mean: bool = False
) -> Outcome | None:
    """Measure all frames against the template; None where fewer than two take part in it.

    It is begun with frame `begin`, or the next one that can be, whose shift is zero. Where parts of most frames move
    otherwise, or come and go, or frames turn, all are compared with that one frame instead. With `from_mean` shifts
    count from the mean place of the frames, and where their mean as they lie finds more of them than one frame does, it
    is begun with that.
    """
    none, settings = np.zeros_like(verified), measurement.settings
    origin, image = measurement.prepared.first_usable(range(begin, measurement.frames.count))
    begun_with, notes = f"frame {origin}" if begin else f"first frame ({origin})", instead(begin, origin)
    measured, known = measurement.run(FixedImage(image), none), measurement.xp.ones(image.shape, dtype=bool)
    pair, begun = measured.usable.sum() == 2, measured
    one, named = FixedImage(image), f"{begun_with}, for a template"

    def against_one(*why: str) -> Outcome:
        found = measurement.run(one, verified) if verified.any() else begun
        if from_mean:
            others = np.delete(found.sigma, origin, axis=0)
            known = others[np.isfinite(others).all(axis=1)]
            found.sigma[origin] = np.median(known, axis=0) if len(known) else np.nan
            found.sigma *= 0.5 if pair else 1.0
            found.shifts = found.shifts - _mean_place(found, settings)
        return found, named, (*notes, *why)

    if (
        pair
        or measured.linear is not None
        or 2 * (measured.partial | measured.reweighted).sum() > measured.usable.sum() > 2
    ):
        # Aligned by the scene, the mean shows whatever else moves as a blur that no shift explains, and so it does of
        # frames that turn. Of two frames it is one of them, which interpolation would only make worse.
        return against_one(*(() if pair else (_WOULD_BLUR,)))
    # Of zero mean and unit deviation, so that the template is, too.
    image = at_level(image[None], *levels(image[None]))[0]
    sure = measured.trusted(settings).sum()
    if from_mean and sure < measured.usable.sum():
        mean = mean_of_others(measurement)
        by_mean = measurement.run(mean, none)
        if by_mean.trusted(settings).sum() > sure:
            # Without a frame, the mean of all lies on its other side, and so seems farther by n / (n - 1).
            by_mean.shifts = by_mean.shifts * (1 - 1 / mean.count)
            measured, begun_with, (image, known) = by_mean, "their mean as they lie", mean.mean()
    began = shifts = measured.shifts.copy()
    part = frames_to_average(measured, settings)
    change, rounds, centre = np.inf, 0, np.zeros(2)
    template: MeanOfOthers | None = None
    while rounds < _MAX_ROUNDS and part.sum() >= 2:
        rounds += 1
        placed = np.where(part[:, None], shifts - centre, 0.0)
        template = aligned_mean_of_others(measurement, placed, part, image, known)
        measured = measurement.run(template, none)
        # A template fixes shifts only up to a common one.
        new = measured.shifts + centre
        new = new - _median((new - shifts)[part])
        before, part = part, frames_to_average(measured, settings)
        change = float(np.nanmax(np.abs(new - shifts)[part & before], initial=0.0))
        shifts = new
        if change <= _CONVERGED and (part == before).all():
            break
        image, known = template.mean()
        # Gains are fitted to the last mean, whose noise makes the next one larger; powers of two change no digit.
        image *= np.exp2(-np.rint(np.log2(np.maximum(image.std(), np.finfo(image.dtype).tiny))))
        if part.any():
            last, centre = centre, _centre(shifts[part], measurement.window)
            if np.abs(last - centre).max() > _MAX_OFFSET:
                missing = measurement.xp.where(known, image, np.nan)
                image = shift_frames(missing[None], (last - centre)[None], order=3, cval=np.nan)[0][0]
                known = measurement.xp.isfinite(image)
    if template is None or part.sum() < 2:
        return None
    if 2 * measured.trusted(settings).sum() < sure:
        return against_one(_LESS_SURE)
    if verified.any():
        measured = measurement.run(template, verified)
    if from_mean:
        # As far from the others as it seems, a frame is from the mean of all by so much less, and its error, too.
        measured.sigma = measured.sigma * (1 - 1 / template.count)
        measured.shifts = measured.shifts - _mean_place(measured, settings)
    else:
        # Shifts count from the frame begun with, or from one before it that the template finds. Its own place in the
        # template is as uncertain as any.
        origin = min([origin, *np.flatnonzero(measured.trusted(settings)).tolist()])
        own = measured.sigma[origin]
        measured.sigma = np.hypot(measured.sigma, np.where(np.isfinite(own), own, 0.0))
        measured.sigma[origin] = np.where(np.isfinite(own), 0.0, own)
        measured.shifts = measured.shifts - _origin(measured, began, origin, settings)
    described = (
        f"mean of {template.count} aligned frames but the one measured, rounds: {rounds}, begun with {begun_with}"
    )
    if change > _CONVERGED:
        notes = (*notes, f"The template did not settle in {rounds} rounds: shifts still change by {change:.4f} px.")
    return measured, described, notes


def instead(wanted: int, number: int) -> tuple[str, ...]:
    """Say that a frame takes the place of the one that was asked for, where it does."""
    why = f"Frame {wanted} cannot be a reference (unreadable or flat): frame {number} is used."
    return () if number == wanted else (why,)


def frames_to_average(measured: ShiftColumns, settings: Settings) -> NDArray[np.bool_]:
    """(T,) which frames take part: those to be trusted; where these may be so by chance, all inside the window.

    Others may have left the window: what of them lies alike would be a second copy of the scene.
    """
    trusted = measured.trusted(settings)
    inside = np.isfinite(measured.score) & ~measured.on_edge
    return trusted if trusted.sum() >= max(2, FOUND_BY_CHANCE * inside.sum()) else inside


def _centre(shifts: NDArray[np.float64], window: ShiftWindow) -> NDArray[np.float64]:
    """The median shift, or what is next to it from where the window reaches all frames as far as possible."""
    reach = np.maximum(np.array([window.dy_max, window.dx_max]) - _FROM_EDGE, 0)
    lowest, highest = shifts.min(axis=0), shifts.max(axis=0)
    middle = (lowest + highest) / 2
    low, high = np.minimum(highest - reach, middle), np.maximum(lowest + reach, middle)
    return np.asarray(np.clip(np.median(shifts, axis=0), low, high))


def _origin(measured: ShiftColumns, began: NDArray[np.float64], origin: int, settings: Settings) -> NDArray[np.float64]:
    """What is taken off all shifts so that the frame begun with has none; where it has no good one, as it was."""
    trusted = measured.trusted(settings)
    if trusted[origin] or not trusted.any():
        return np.asarray(np.nan_to_num(measured.shifts[origin]))
    return _median((measured.shifts - began)[trusted])


def _mean_place(measured: ShiftColumns, settings: Settings) -> NDArray[np.float64]:
    """Mean shift (2,) of the frames to be trusted, zero where none are."""
    trusted = measured.trusted(settings)
    return np.asarray(measured.shifts[trusted].sum(axis=0) / max(int(trusted.sum()), 1))


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median (2,) of the rows (n, 2) without NaN, zero where there is none."""
    known = values[np.isfinite(values).all(axis=1)]
    return np.asarray(np.median(known, axis=0)) if known.size else np.zeros(2)
