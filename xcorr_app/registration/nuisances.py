"""What is looked for once a stack was measured, one after the other.

A step takes the series as it was found so far, and returns it as it is, or measured without what it found: the shifts
have to be known to tell it from the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration import correlated_errors
from xcorr_app.registration.light.even_light import EvenlyLitFrames
from xcorr_app.registration.lighting import evenly_lit, is_nearer
from xcorr_app.registration.measuring.measured import SAME_PEAK, ShiftColumns, Trial
from xcorr_app.registration.pattern.static_pattern import PatternFit, without_pattern
from xcorr_app.registration.reference.lone_reference import TEMPLATE, other_reference
from xcorr_app.registration.reference.lone_reference import note as note_on_reference
from xcorr_app.registration.reference.reference_names import by_frames
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.shading import UnshadedFrames, unshaded
from xcorr_app.registration.stack.frames import Frames, PickedFrames
from xcorr_app.registration.stack_measurement import Findings, StackMeasurement
from xcorr_app.registration.weights import borders
from xcorr_app.registration.weights.alternating import EvenedFrames, even_mosaic, evened_rows
from xcorr_app.registration.weights.line_offsets import LevelledFrames, is_better, levelled, stand_still
from xcorr_app.registration.weights.weighing import MeasuredStack

_OF_ITSELF = 1e-6
"""Share of a frame's variance that a reference leaves, at least."""
Cleaned = EvenedFrames | EvenlyLitFrames | LevelledFrames | UnshadedFrames


@dataclass(frozen=True)
class Series:
    """A stack, and what was found of it so far."""

    given: MeasuredStack
    measurement: StackMeasurement
    frames: Frames
    """As they were measured."""
    found: Findings
    notes: tuple[str, ...] = ()
    """On what was taken off them."""
    lines: LevelledFrames | None = None
    """Frames without offsets of lines that were found, but may be those of the scene."""
    pattern: PatternFit = field(default_factory=PatternFit)

    @property
    def measured(self) -> ShiftColumns:
        """Shifts, and what is known of them."""
        return self.found.measured

    @property
    def reference(self) -> str | int | Array:
        """What frames are compared with."""
        return self.given.reference

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self.measurement.settings

    @property
    def is_shifted_alone(self) -> bool:
        """Whether frames are shifted, and no more.

        A scene that something large crosses is a still layer below a moving one, too, and would be taken off.
        """
        return self.measured.linear is None and not self.measured.occluded

    @property
    def trial(self) -> Trial:
        """Measures a few frames, as a whole."""
        return partial(self.measurement.trial, whole=True)

    def without(self, frames: Cleaned | None, is_better: Callable[[ShiftColumns], bool] = lambda _: True) -> Series:
        """Measure it again by frames without a nuisance, if there is one, and take that if it `is_better`."""
        if frames is None:
            return self
        found = self.measurement.measure(frames, self.reference)
        if not is_better(found.measured):
            return self
        return replace(self, frames=frames, found=found, notes=(*self.notes, frames.note))


def lone_reference(series: Series) -> Series:
    """Does the first or last frame show nothing of the others, which find each other? Another takes its place."""
    wanted, trial = series.reference, partial(series.measurement.trial, whole=True, tiles=False)
    other = other_reference(series.frames, wanted, series.measured, series.settings, trial)
    if other is None:
        return series
    given, measurement = series.given, series.measurement
    if wanted == TEMPLATE:
        measurement = replace(measurement, begin=other)
    else:
        given = replace(given, reference=other)
    found = measurement.measure(series.frames, given.reference)
    return replace(
        series,
        given=given,
        measurement=measurement,
        found=found,
        notes=(*series.notes, note_on_reference(str(wanted), other)),
    )


def rims_without_values(series: Series) -> Series:
    """Have frames borders of NaN? They are measured by the part that all of them show."""
    lacking = series.measured.non_finite
    part = borders.finite_part(series.frames, lacking, series.settings.roi) if lacking.any() else None
    if part is None:
        return series
    measurement = series.measurement.within(part)
    found = measurement.measure(series.frames, series.reference)
    return replace(series, measurement=measurement, found=found, notes=(*series.notes, borders.note(part)))


def mosaic(series: Series) -> Series:
    """Has the camera a mosaic of colours, which allows even shifts alone? It is evened, if no fewer frames are sure."""
    if series.found.rest.leaves_nothing:
        return series
    sure = series.measured.valid(series.settings).sum()
    return series.without(
        even_mosaic(series.frames, series.measured), lambda after: bool(after.valid(series.settings).sum() >= sure)
    )


def still_shading(series: Series) -> Series:
    """Does light that stands still outshine what moves? Frames lose the shading that they share."""
    return series.without(unshaded(series.frames, series.measured, series.settings, series.trial))


def bidirectional_rows(series: Series) -> Series:
    """Do odd rows lie beside the others (a scan in both directions, half frames)? They are joined."""
    return series.without(evened_rows(series.frames, series.measured, series.settings))


def changing_lines(series: Series) -> Series:
    """Have rows or columns offsets that change from frame to frame? They are levelled, if that is better."""
    level = series
    for _ in range(2):  # rows and columns: errors may be seen to fall once both are levelled
        lines = levelled(level.frames, level.measured, series.settings)
        if lines is None or lines.kind != "changing":
            break
        level = level.without(lines)
        if is_better(series.measured, level.measured, series.settings, lines.kind):
            series = level
    if level is not series:
        lines = levelled(series.frames, series.measured, series.settings)
    return replace(series, lines=lines)


def uneven_light(series: Series) -> Series:
    """Does the light change from place to place? Frames are lit alike, if that is nearer to where it was found."""
    rest, before = series.found.rest, series.measured
    if not series.is_shifted_alone or rest.leaves_nothing:
        return series
    even = evenly_lit(series.frames, before, series.settings, series.trial, rest)
    return series.without(even, lambda after: even is not None and is_nearer(even, before, after))


def fixed_pattern(series: Series) -> Series:
    """Does a pattern stand still? It is taken off, or fitted together with the scene, or all is doubted."""
    found = series.found
    fit = without_pattern(series.frames, found.measured, series.settings, series.measurement.trial, found.rest)
    if not series.is_shifted_alone and not fit.leaves_nothing:
        return series
    if fit.joint is not None:
        found = replace(found, measured=fit.joint.replacing(found.measured))
    if fit.frames is not None:
        found = series.measurement.measure(fit.frames, series.reference)
    if fit.still is not None:
        found = replace(found, measured=fit.still.placed(series.frames, found.measured))
    found.measured.inconsistent |= fit.ambiguous
    return replace(series, frames=fit.frames or series.frames, found=found, pattern=fit)


def still_lines(series: Series) -> Series:
    """Have rows or columns offsets that stand still, and are no pattern? They are levelled, if they bent the shifts.

    A pattern that they outshone is looked for once more.
    """
    lines, settings = series.lines, series.settings
    if not series.is_shifted_alone or lines is None or lines.kind == "changing" or series.pattern != PatternFit():
        return series
    lines = replace(lines, source=series.frames)

    def bent(after: ShiftColumns) -> bool:
        return stand_still(lines, after, settings) and is_better(series.measured, after, settings, "still")

    level = series.without(replace(lines, kind="still"), bent)
    return series if level is series else fixed_pattern(level)


def correlated_errors_of_tiles(series: Series) -> Series:
    """Are errors of neighbouring parts of the picture alike? Then standard errors are larger.

    Not asked where frames leave nothing once they are moved, and do not bend, or hold a pattern that was fitted
    together with the scene. Where parts were left out and the rest is still off alike, as through moving air, they were
    no second motion: all parts of a picture together lie nearer to where it belongs than those that happen to agree.
    """
    fit, measured = series.pattern, series.measured
    leaves_nothing = series.found.rest.leaves_nothing and not np.nan_to_num(measured.edges).any()
    if leaves_nothing or fit.joint or fit.ambiguous:
        return series
    # Sums of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        by = correlated_errors.excess(series.found.by, series.reference, measured)
        if not by.any():
            return series
        measured.shared = by
        if 2 * measured.partial.sum() > by.shape[0] - 1 and not measured.occluded:
            return _with_all_parts(series)
    return series


def departed_frames(series: Series) -> Series:
    """Have frames left the window? Those that jump, where their steps from frame to frame lead elsewhere, are lost.

    Their own peaks lie outside, and they are found where the scene resembles itself: elsewhere than the frames before
    them, resembling the reference less than their noise allows. Of the parts between such jumps that stands which
    resembles the reference most. Sums of steps, and means of frames that share some, are not asked.
    """
    measured, by, settings = series.measured, series.found.by, series.settings
    numbers = np.flatnonzero(measured.trusted(settings))
    low = (measured.score < measured.score_limit)[numbers]
    jump, own = np.diff(measured.shifts[numbers], axis=0), measured.sigma[numbers] ** 2
    between, places = own[1:] + own[:-1] + SAME_PEAK**2, float(np.prod(by.window.shape))
    elsewhere = _by_chance(jump, between, places) & (low[1:] | low[:-1])
    is_pair = measured.usable.sum() == 2  # whose step is what was measured
    if not elsewhere.any() or is_pair or settings.apart or measured.closure is not None or series.pattern.joint:
        return series
    steps = np.full((2, measured.usable.size, 2), np.nan)
    for t in 1 + numbers[0] + np.flatnonzero(np.repeat(elsewhere, np.diff(numbers))):
        found = series.trial(PickedFrames(series.frames, (int(t) - 1, int(t))), "first", by.settings, tiles=False)
        if found.usable.all() and found.trusted(settings)[1]:
            steps[:, t] = found.shifts[1], found.sigma[1] ** 2
    path, of_path = np.add.reduceat(steps[:, : numbers[-1] + 1], numbers[:-1] + 1, axis=1)
    elsewhere &= _by_chance(path - jump, of_path + between, places)
    part, explained = np.append(0, elsewhere.cumsum()), measured.score[numbers] ** 2
    evidence = np.bincount(part, explained / np.maximum(1 - explained, _OF_ITSELF))
    lost = numbers[part != evidence.argmax()]
    measured.false_alarm[lost], measured.disambiguated[lost] = 1.0, False
    return series


def _by_chance(difference: NDArray[np.float64], variance: NDArray[np.float64], places: float) -> NDArray[np.bool_]:
    """Whether differences (n, 2) of such variances are less likely than those of a peak anywhere among `places`."""
    return np.asarray((difference**2 / variance + np.log(2 * np.pi * variance)).sum(axis=1) > 2 * np.log(places))


def _with_all_parts(series: Series) -> Series:
    """Measure frames with the parts that were left out, if their shifts are no others."""
    measured, by = series.measured, series.found.by
    found = series.measurement.trial(
        series.frames, series.reference, by.settings, whole=True, tiles=False, checked=True
    )
    whole = measured.with_all_parts(found)
    whole.shared = correlated_errors.excess(by, series.reference, whole, in_parts=False)
    if not correlated_errors.same_shifts(measured, whole):
        return series
    return replace(series, found=replace(series.found, measured=whole))


_OF_ANY_REFERENCE: tuple[Callable[[Series], Series], ...] = (lone_reference, rims_without_values)
_AMONG_FRAMES: tuple[Callable[[Series], Series], ...] = (
    mosaic,
    still_shading,
    bidirectional_rows,
    changing_lines,
    uneven_light,
    fixed_pattern,
    still_lines,
    correlated_errors_of_tiles,
    departed_frames,
)


def without_nuisances(series: Series) -> Series:
    """Take each step in turn; with an image of the user's, which may hold a nuisance or not, few of them."""
    is_open = by_frames(series.reference) and replace(series.settings, kernel_options=None).finds_nuisances
    # With a kernel that was asked for, what needs no other measurement: errors and their size are not the kernel's.
    among = _AMONG_FRAMES if series.settings.finds_nuisances else (mosaic, correlated_errors_of_tiles)
    for step in (*_OF_ANY_REFERENCE, *among) if is_open else _OF_ANY_REFERENCE:
        series = step(series)
    return series
