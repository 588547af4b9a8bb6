"""Rows or columns that have offsets of their own: of scanners, whose probe drifts, and of cameras read out by lines.

Offsets that stand still pin the shifts, and others bend them. They are seen where lines differ from the two beside
them by more than the scatter along them explains: of a scene, which varies along its lines as it does across, nothing
of the kind is seen. Each line loses its mean, and each frame its slope along the lines, which drift leaves too: of what
a scene shows, the frequencies across lines alone. Lines in the shadow of something lose contrast as well: as far as
lines vary less the darker they are, all are brought to the same contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.line_sums import GROUPS, line_sums
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.measuring.measured import FEW, ShiftColumns, near_each_other, spread, taken
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, FloatFramesOver, Frames
from xcorr_app.registration.standard_error.significance import DEVIATION

OF_LEVELS = 4
"""Frames whose lines are compared, spread over the series."""
MIN_ROWS, MAX_ROWS = 64, 256
"""Rows and columns below which lines are too few, and too short, to tell; and rows in the middle of a frame that tell
as a rule."""


@dataclass(frozen=True)
class LineGlance:
    """Sums over lines: of two frames (2, pairs) of odd rows, of another means of parts of its lines (n, 16)."""

    shared: NDArray[np.float64]
    """Slope of the mean of the rows beside an odd one, times by how much that differs, and"""
    own: NDArray[np.float64]
    """the slope squared."""
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]


def glance(frames: Frames, usable: NDArray[np.intp], settings: Settings) -> LineGlance | None:
    """Look at frames among the usable ones, once; None where they are no integers on a device, measured as stored.

    One launch makes all of the sums, and one wait brings them: they say of most series that nothing is wrong.
    """
    is_plain = settings.prefilter.name is None and settings.contrast.sigma is None and settings.roi is None
    if not isinstance(frames, ArrayFrames) or not is_plain or frames.dtype.kind not in "iu":
        return None
    if usable.size < FEW or min(frames.shape) < MIN_ROWS:
        return None
    numbers = (*spread(usable)[1:3].tolist(), int(spread(usable, OF_LEVELS)[1]))
    if numbers not in frames.glances:
        images = [frames.read(number, number + 1).frames[0] for number in numbers]
        if not is_device_array(images[0]) or name_of(frames.dtype) not in INPUT_TYPES:
            return None
        middle = middle_rows(frames.shape[0])
        pairs = (min(middle.stop, frames.shape[0]) - middle.start - 1) // 2
        (shared, own), (rows, columns) = line_sums((images[0], images[1]), images[2], middle.start, pairs)
        frames.glances[numbers] = LineGlance(shared, own, rows, columns)
    found: LineGlance = frames.glances[numbers]
    return found


def middle_rows(rows: int) -> slice:
    """At most `MAX_ROWS` rows in the middle of an image."""
    first = max(rows - MAX_ROWS, 0) // 2
    return slice(first, first + MAX_ROWS)


Kind = Literal["changing", "still", "open"]
"""Another in each frame, the same in all while the scene moves, or the same in frames found hardly to move."""

_MIN_FRAMES = 2
"""Frames whose lines can be compared."""
_DEVIATIONS = 2.2
"""Standard errors by which lines differ from those beside them, as a rule (the median); of scenes 0.7 to 1.6."""
_MAX_CORRELATION = 0.5
"""Correlation of the offsets of two frames, in place or displaced, from which they are not another in each."""
_MOVED, _ROUGH = 1.0, -0.3
"""Lines by which a scene moves, at least, to be told from offsets that stand still; or the correlation of lines beside
each other below which these are none of a scene."""
_SIGMA_RATIO, _OFF = 1.3, 2.0
"""Standard errors without offsets over those with them up to which frames that change are better without; and median
of the standard errors by which shifts differ, from which offsets that stand still have bent them."""


@dataclass(frozen=True)
class LevelledFrames(FloatFramesOver):
    """Frames whose lines have no mean and no common slope."""

    axis: int
    """Along which lines lie: 2 for rows, 1 for columns."""
    kind: Kind

    def changed(self, chunk: Chunk) -> Array:
        """Level them; pixels that are no numbers stay so."""
        frames, xp = chunk.frames, array_namespace(chunk.frames)
        known = xp.isfinite(frames)
        number = xp.maximum(known.sum(axis=self.axis, keepdims=True), 1)
        # Divided before they are summed: the sum of large values must not overflow.
        mean = (xp.where(known, frames, 0) / number.astype(self.dtype)).sum(axis=self.axis, keepdims=True)
        level = frames - mean
        level /= self._gains(mean, level, known)
        place = np.arange(self.shape[self.axis - 1]) - (self.shape[self.axis - 1] - 1) / 2
        along = xp.asarray((place / np.sqrt((place**2).mean())).astype(self.dtype))
        along = along[None, None] if self.axis == 2 else along[None, :, None]
        level -= (xp.where(known, level, 0) * along).mean(axis=(1, 2), keepdims=True) * along
        return level

    def _gains(self, mean: Array, level: Array, known: Array) -> Array:
        """Gains (n, h, 1) or (n, 1, w) of lines: contrast that light lends them stands still, and holds shifts.

        By least squares, from how much more lines vary the higher their mean is: not at all where offsets were added.
        """
        xp, of_frame, tiny = array_namespace(level), (1, 2), np.finfo(self.dtype).tiny
        share = known.mean(axis=self.axis, keepdims=True).astype(self.dtype)
        share /= xp.maximum(share.sum(axis=of_frame, keepdims=True), tiny)
        varies = abs(xp.where(known, level, 0)).mean(axis=self.axis, keepdims=True)
        varies /= xp.maximum((share * varies).sum(axis=of_frame, keepdims=True), tiny)
        offset = mean - (share * mean).sum(axis=of_frame, keepdims=True)
        # Of any unit: squares neither overflow nor vanish.
        offset /= xp.maximum(abs(offset).max(axis=of_frame, keepdims=True), tiny)
        product, square = ((share * offset * each).sum(axis=of_frame, keepdims=True) for each in (varies, offset))
        more = product / xp.maximum(square, tiny) * offset
        return more + xp.sqrt(1 + more**2)  # next to 1 + more, but positive

    @property
    def note(self) -> str:
        """What was done, in words."""
        lines = "Rows" if self.axis == 2 else "Columns"
        how = "change from frame to frame" if self.kind == "changing" else "stand still while the scene moves"
        return (
            f"{lines} have offsets of their own, which {how} (line noise, drift of a scanner, stripes): each was "
            "brought to the same mean, and contrast if that follows it, for measuring."
        )


def levelled(frames: Frames, measured: ShiftColumns, settings: Settings) -> LevelledFrames | None:
    """Frames whose lines are levelled, first those that change; None where lines have no offsets."""
    usable = near_each_other(measured, frames.shape)
    if usable.size < _MIN_FRAMES or min(settings.measured_shape(frames.shape)) < MIN_ROWS:
        return None
    some = spread(usable, OF_LEVELS)
    # Sums of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        # One frame tells as a rule.
        if (seen := glance(frames, usable, settings)) is not None:
            axes = [axis for axis, means in ((2, seen.rows), (1, seen.columns)) if _of_groups(means[None])[1].all()]
        else:
            axes = [axis for axis in (2, 1) if _differ(taken(frames, some[1:2], settings), axis)[1].all()]
        if not axes:
            return None
        images = taken(frames, some, settings)
        shifts = measured.shifts[some]
        found = [
            LevelledFrames(frames, axis, kind)
            for axis in axes
            if (kind := _kind(*_differ(images, axis), np.abs(shifts - shifts[0])[:, 2 - axis].max()))
        ]
    return min(found, key=lambda each: get_args(Kind).index(each.kind), default=None)


def stand_still(lines: LevelledFrames, level: ShiftColumns, settings: Settings) -> bool:
    """Whether lines stand still while the scene moves, by what was measured of levelled frames if that was open."""
    again = lines if lines.kind == "still" else levelled(lines.source, level, settings)
    return again is not None and (again.kind, again.axis) == ("still", lines.axis)


def is_better(before: ShiftColumns, after: ShiftColumns, settings: Settings, kind: Kind) -> bool:
    """Whether shifts of levelled frames are better than those before."""
    trusted = [each.valid(settings) for each in (before, after)]
    errors = [each.sigma.max(axis=1) for each in (before, after)]
    known = trusted[0] & trusted[1] & np.isfinite(errors[0] + errors[1])
    known[0] = False  # the reference, as a rule
    if 2 * trusted[1].sum() <= known.size or not known.any():
        return bool(trusted[1].sum() > trusted[0].sum())
    if kind == "changing":
        return bool(np.median(errors[1][known]) < _SIGMA_RATIO * np.median(errors[0][known]))
    off = np.abs(after.shifts - before.shifts).max(axis=1)[known] / np.maximum(np.hypot(*errors)[known], 1e-300)
    return bool(np.median(off) > _OFF)


def _differ(images: Array, axis: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """By how much lines (n, k) along an axis of images (n, h, w) differ from those beside them; whether surely so."""
    lines = images if axis == 2 else images.transpose(0, 2, 1)
    count = lines.shape[2] // GROUPS * GROUPS
    return _of_groups(to_host(lines[:, :, :count].reshape(*lines.shape[:2], GROUPS, -1).mean(axis=3)))


def _of_groups(means: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The same by means (n, k, groups) of parts of lines."""
    groups = means.astype(np.float64)
    beside = groups[:, 1:-1] - (groups[:, :-2] + groups[:, 2:]) / 2
    offsets = beside.mean(axis=2)
    error = np.median(beside.var(axis=2, ddof=1), axis=1) / GROUPS
    rule = DEVIATION * np.median(np.abs(offsets), axis=1)
    return offsets, (rule > _DEVIATIONS * np.sqrt(error)) & (rule > 0)


def _kind(offsets: NDArray[np.float64], differ: NDArray[np.bool_], moved: float) -> Kind | None:
    """Whether offsets of lines (n, k) change from frame to frame or stand still; None if they move, or are not sure.

    `moved` is by how many lines the scene moves from the first of them: where that is little, what stands still may be
    a smooth scene, or hold the shifts where they are.
    """
    if not differ.all():
        return None
    fft = fft_namespace(offsets)
    offsets = offsets - offsets.mean(axis=1, keepdims=True)
    offsets /= np.abs(offsets).max(axis=1, keepdims=True)  # of any unit: squares neither overflow nor vanish
    offsets /= np.sqrt((offsets**2).sum(axis=1, keepdims=True))
    spectra = fft.rfft(offsets, 2 * offsets.shape[1], axis=1)
    products = fft.irfft(spectra[1:] * spectra[:1].conj(), 2 * offsets.shape[1], axis=1)
    if (products.max(axis=1) < _MAX_CORRELATION).all():
        return "changing"
    # Of offsets that are another from line to line, differences from both beside correlate by -2/3; optics draws none.
    rough = float(np.median((offsets[:, 1:] * offsets[:, :-1]).sum(axis=1))) < _ROUGH
    if not (products[:, 0] > _MAX_CORRELATION).all() or products.argmax(axis=1).any():
        return None
    return "still" if rough or moved >= _MOVED else "open"
