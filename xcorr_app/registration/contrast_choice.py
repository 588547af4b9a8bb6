"""Whether a stack is measured as it is or by its local contrast: both are tried on a few frames.

Tried only where frames, moved by what was measured, leave more than noise (``pattern/one_layer.py``), or where few of
their tiles show anything beside the brightest.
Where the two agree the stack is measured as it is, whose sub-pixel shifts are the better ones; where they do not, by
local contrast, which a few bright moving things cannot lead astray, unless its peaks stand out much less. Where they
agree but only local contrast has peaks that cannot be chance, both are measured: local contrast vouches for the shift,
which is refined on the images as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.parts.masks import most_tell, two_motions
from xcorr_app.registration.parts.tile_bins import binned
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.reference.reference_names import compares_neighbours
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.contrast import DEFAULT_SIGMA, Contrast
from xcorr_app.registration.stack.frames import Chunk, Frames, FramesOver, HeldFrames, PickedFrames
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

Choice = Literal["none", "local", "both"]

_FRAMES_PER_SAMPLE = 24
_MIN_SAMPLES, _MAX_SAMPLES = 3, 4
_SMALLEST = 96
"""Rows and columns below which there is nothing local about a Gaussian of the default width."""
_LARGE = 384
"""Rows and columns from which bins of 2 x 2 pixels are enough to try on."""
_BEYOND_DOUBT = 100.0
"""Significance of peaks of frames as they are that needs no second opinion; a layer of bright particles reaches 80."""
_NEAR = 0.15
"""Shifts agree that differ by less than this, for what the rims of local contrast do, and three standard errors."""
_LARGEST_ERROR = 1.0
_MORE = 1.5
"""Two significant peaks apart are two motions: of bright things, and of what lies behind them. Local contrast follows
the latter, unless frames as they are stand out more by this factor; where most tiles show nothing beside the brightest
ones, these stand out by themselves, and do not count."""

_STILL = 0.25
"""Pixels up to which frames stand still. What is drawn into them (a clock, a scale bar, a caption) does, to a
hundredth of a pixel, and stands out however faint the scene behind it: of two motions, one of which is none, the other
is the scene's."""

_MOST_LEFT = 0.5
"""Share of what frames show that moved frames do not share, from which it may be the scene that they leave."""
_ALL_BUT_FEW = 0.7
"""Share of the tiles that tell, from which no scene hides beside them."""

LOCAL = Contrast(DEFAULT_SIGMA)
_SURER = 0.5
"""Share of the plain standard error below which local contrast is the better measure, agree or not."""
_SURER_APART, _APART = 0.8, 1.5
"""The same where both differ by so many standard errors: what pulls all of a frame alike is in no standard error."""
NOTES: dict[Choice, str] = {
    "none": "",
    "local": f"Measured by local contrast ({LOCAL}): on the frames tried, its peaks stand out, and lie elsewhere or "
    "more surely than those of the frames as they are.",
    "both": f"Shifts were found by local contrast ({LOCAL}), whose peaks stand out more, and refined on the frames as "
    "they are where both agree.",
}


class Measure(Protocol):
    """Measures frames against a reference, with or without a look at their tiles."""

    def __call__(
        self, frames: Frames, reference: str | int | Array, settings: Settings, *, tiles: bool = True
    ) -> Measured:
        """Columns, one entry a frame."""
        ...


@dataclass(frozen=True)
class BinnedFrames(FramesOver):
    """Means of 2 x 2 pixels of a part of frames: all that they show, at a quarter of the work."""

    roi: Roi

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of bins."""
        rows, columns = (len(range(size)[part]) // 2 for size, part in zip(self.source.shape, self.roi, strict=True))
        return rows, columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a bin, a float."""
        return working_dtype(np.empty(0, self.source.dtype))

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and bin them."""
        chunk = self.source.read(start, stop)
        return replace(chunk, frames=binned(chunk.frames[:, *self.roi]))


def choose_contrast(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    measure: Measure,
    measured: Measured,
    left: float,
) -> Choice:
    """Try both on a few frames spread over the stack; `measure` measures frames against a reference.

    `measured` are all frames as they are, without what moves otherwise, and `left` is the share of what they show that
    they do not share once moved.
    """
    if not _is_open(frames, settings):
        return "none"
    count = frames.count
    tried = min(_MAX_SAMPLES, max(_MIN_SAMPLES, count // _FRAMES_PER_SAMPLE))
    places = np.linspace(0, count - 1, tried + 1).round().astype(int)
    numbers = np.unique(places[1:])
    against: str | int | Array = "first"
    if compares_neighbours(reference):
        # Each with the one before it that it shares no averaged frames with.
        numbers, against = np.union1d(numbers, np.maximum(numbers - 1 - settings.apart, 0)), "previous"
    elif not isinstance(reference, (str, int, np.integer)):
        against = reference
    else:
        first = {"last": count - 1}.get(reference, 0) if isinstance(reference, str) else int(reference) % count
        # Of all that are spread over the stack, the one nearest to the reference is left out.
        others = np.unique(np.delete(places, np.abs(places - first).argmin()))
        numbers = np.concatenate([[first], others[others != first]])
    by_image = against is reference and not isinstance(reference, str)
    pixels = 1
    sample: Frames = PickedFrames(frames, tuple(int(number) for number in numbers))
    # Engines that look at peaks only do not know how far they stand out.
    trial, local = replace(settings, engine="fft", contrast=Contrast(), smooth_time=1), LOCAL
    if min(settings.measured_shape(frames.shape)) >= _LARGE:
        part = settings.roi or (slice(None), slice(None))
        sample, local, pixels = BinnedFrames(sample, part), Contrast(DEFAULT_SIGMA / 2), 2
        if not isinstance(against, (str, int, np.integer)):
            against = binned(against[None, *part])[0]
        window = settings.window(frames.shape)
        reach = (max(window.dy_max, -window.dy_min) / 2, max(window.dx_max, -window.dx_min) / 2)
        trial = replace(trial, roi=None, max_shift=reach)
    sample = HeldFrames.of(sample)
    plain = measure(sample, against, trial, tiles=False)
    rows = plain.usable.copy()
    # The first of the sample is the reference itself.
    rows[0] = rows[0] and by_image
    outshone = not most_tell(measured.tiles)
    # A single bright thing stands out however it moves.
    beyond_doubt = rows.any() and plain.significance[rows].min() > _BEYOND_DOUBT and not outshone
    if not rows.any() or (beyond_doubt and (by_image or not _still(plain, rows))):
        return "none"
    locally = measure(sample, against, replace(trial, contrast=local), tiles=False)

    def moves_apart(contrast: Contrast = trial.contrast) -> bool:
        return two_motions(measure(sample, against, replace(trial, contrast=contrast)).tiles)

    overlaid = not by_image and _still(plain, rows) and not _still(locally, rows)
    known = measured.usable & np.isfinite(measured.sigma).all(axis=1) & (measured.sigma > 0).all(axis=1)
    in_part = float(np.median(measured.sigma[known].max(axis=1))) / pixels if known.any() else np.inf
    choice = _choice(
        plain, locally, rows, settings.sure_sigma, moves_apart, overlaid=overlaid, outshone=outshone, in_part=in_part
    )
    # Of what is left, no tile tells beside the bright ones that both follow.
    told = (measured.crossed and not _most(measured.inconsistent)) or most_tell(measured.tiles, _ALL_BUT_FEW)
    return "local" if choice == "none" and left > _MOST_LEFT and not told and moves_apart(local) else choice


def _is_open(frames: Frames, settings: Settings) -> bool:
    return (
        settings.contrast.auto
        and settings.normalization == "zncc"
        and settings.prefilter.name is None
        and settings.engine in ("auto", "fft")
        and settings.kernel_options is None
        and frames.count > 1
        and min(settings.measured_shape(frames.shape)) >= _SMALLEST
    )


def _choice(
    plain: Measured,
    local: Measured,
    rows: NDArray[np.bool_],
    max_sigma: float,
    moves_apart: Callable[[], bool],
    *,
    overlaid: bool,
    outshone: bool,
    in_part: float,
) -> Choice:
    rows = rows & local.usable
    if not rows.any():
        return "none"
    error = [float(np.median(m.sigma[rows].max(axis=1))) for m in (plain, local)]
    surer = error[1] < (_SURER_APART if _most(_are_apart(plain, local)[rows]) else _SURER) * error[0]
    with np.errstate(invalid="ignore"):
        # Where nothing is known of the plain peaks, they neither fail nor overrule.
        plain_stands_out = not _most(plain.false_alarm[rows] > MAX_FALSE_ALARM)
        # Of peaks that are one of several alike, none speaks against another shift.
        sure = (local.sigma[rows] <= max_sigma).all(axis=1) & ~(local.peak_ratio[rows] < AMBIGUOUS_RATIO)
        chance = local.false_alarm[rows] > MAX_FALSE_ALARM
        # In a small window nothing may be known of chance; against what stands still a sure motion is enough, and
        # against one that is far less sure.
        unlikely = ~chance & (local.score > local.chance_score)[rows] & ~local.on_edge[rows]
        enough = overlaid | (np.isnan(local.false_alarm[rows]) & surer)
        local_stands_out = _most(sure & np.where(enough, unlikely, local.false_alarm[rows] <= MAX_FALSE_ALARM))
        stands_out, stands_out_locally = (float(np.median(m.significance[rows])) for m in (plain, local))
        more = overlaid or outshone or not stands_out > _MORE * stands_out_locally
    if not local_stands_out:
        return "none"
    # Two motions are told apart by tiles, which measures better than local contrast where that finds the same. They
    # are looked at only where they decide, and where it did measure better.
    without_tiles = error[1] < _SURER * in_part
    if not _most(agree(plain, local)[rows]) or (surer and (without_tiles or not moves_apart())):
        return "local" if more else "none"
    return "none" if plain_stands_out else "both"


def _still(found: Measured, rows: NDArray[np.bool_]) -> bool:
    """Whether frames (T,) stand still against the first of them."""
    with np.errstate(invalid="ignore"):
        return bool((np.abs(found.shifts[rows]) <= _STILL).all())


def _most(which: NDArray[np.bool_]) -> bool:
    return bool(2 * which.sum() > which.size)


def agree(one: Measured, other: Measured) -> NDArray[np.bool_]:
    """(T,) whether two measurements of the same frames found the same shifts, as far as they can know."""
    error = np.minimum(np.hypot(one.sigma, other.sigma).max(axis=1), _LARGEST_ERROR)
    with np.errstate(invalid="ignore"):
        near: NDArray[np.bool_] = np.abs(one.shifts - other.shifts).max(axis=1) <= _NEAR + 3 * error
    return near


def _are_apart(one: Measured, other: Measured) -> NDArray[np.bool_]:
    """(T,) whether two measurements of the same frames differ by more than their standard errors make likely."""
    with np.errstate(invalid="ignore"):
        off = np.abs(one.shifts - other.shifts) > _APART * np.hypot(one.sigma, other.sigma)
    apart: NDArray[np.bool_] = np.asarray(off.any(axis=1))
    return apart


def merged(plain: Measured, local: Measured) -> Measured:
    """Of each frame the plain shift where local contrast found the same, else the one that stands out more."""
    same = agree(plain, local)
    with np.errstate(invalid="ignore"):
        better = ~same & (local.significance > plain.significance)
    out = replace(plain)
    for field in fields(Measured):
        value, other = getattr(plain, field.name), getattr(local, field.name)
        if isinstance(value, np.ndarray):
            chosen = better.reshape(-1, *(1,) * (value.ndim - 1))
            setattr(out, field.name, np.where(chosen, other, value))
    out.significance = np.where(same, np.fmax(plain.significance, local.significance), out.significance)
    out.false_alarm = np.where(same, np.fmin(plain.false_alarm, local.false_alarm), out.false_alarm)
    return out
