"""Whether a stack is measured as it is or by its local contrast, which is tried on a few frames.

Tried only where frames, moved by what was measured, leave more than noise (``pattern/one_layer.py``), or where few of
their tiles show anything beside the brightest. Where both find the same the stack is measured as it is, whose
sub-pixel shifts are the better ones, unless local contrast is far surer, or finds frames that are lost as they are,
which are tried, too. Where they do not, one follows a few bright things, or what is drawn into frames, and the other
what lies behind them: the shift is taken that more tiles of the frames as they are prefer (``parts/tile_votes.py``),
each of which counts as much as any other.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import SAME_PEAK, ShiftColumns, Trial, spread, taken
from xcorr_app.registration.parts.tile_bins import binned, evenness
from xcorr_app.registration.parts.tile_votes import MIN_VOTES, moved_by, smoothed, votes
from xcorr_app.registration.reference.reference_names import by_frames, compares_neighbours
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames, FramesOver, HeldFrames, PickedFrames
from xcorr_app.registration.stack.prefilter import DEFAULT_SIGMA, Contrast

_TRIED = 3
"""Frames that both are compared on, beside the one that these are compared with."""
_MIN_SIDE = 96
"""Rows and columns below which there is nothing local about a Gaussian of the default width."""
_BINNED_FROM = 320
"""Rows and columns from which bins of 2 x 2 pixels are enough to try on: a soft scene of 192 behind a still rim is lost
in them."""
_EVEN = 0.95
"""Evenness of an image above which no part outvotes the others."""
_MAX_SIGMA_RATIO = 0.5
"""Share of the plain standard error below which local contrast is the better measure, agree or not."""
_MAX_SIGMA_RATIO_APART, _APART = 0.8, 1.5
"""The same where both differ by so many standard errors: what pulls all of a frame alike is in no standard error."""
_STILL = 0.25
"""Pixels up to which frames stand still. What is drawn into them (a clock, a scale bar, a caption) does, and stands out
however faint the scene behind it: of two motions, one of which is none, the other is the scene's."""

LOCAL = Contrast(DEFAULT_SIGMA)
NOTE = (
    f"Measured by local contrast ({LOCAL}): on the frames tried, it is surer than the frames as they are, or more "
    "parts of the picture agree with what it finds."
)


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


def by_local_contrast(
    frames: Frames, reference: str | int | Array, settings: Settings, measure: Trial, measured: ShiftColumns
) -> bool | None:
    """Whether the stack is better measured by local contrast; tried on a few frames spread over it.

    None where both find another peak in most of them, and neither is surer, or what more of the picture shows.
    `measure` measures frames against a reference; `measured` are all frames as they are, without what moves otherwise.
    """
    is_open = settings.by_default and settings.engine in ("auto", "fft") and frames.count > 1
    usable = np.flatnonzero(measured.usable)
    if not is_open or min(settings.measured_shape(frames.shape)) < _MIN_SIDE or not usable.size:
        return False
    by_image = not by_frames(reference)
    one = {"first": usable[0], "last": usable[-1]}.get(reference) if isinstance(reference, str) else reference
    if compares_neighbours(reference):
        # Of the middle of the stack, each beside the one before it that it shares no averaged frames with.
        numbers = np.intersect1d(frames.count // 2 + (1 + settings.apart) * np.arange(-1, _TRIED), usable)
    else:
        first = int(usable[0] if one is None or by_image else one) % frames.count
        over = np.linspace(0, frames.count - 1, _TRIED + 1).round().astype(int)
        over = np.unique(np.delete(over, np.abs(over - first).argmin()))
        numbers = np.concatenate([[first], over[over != first]])
    if len(numbers) < 2:
        return False
    first, others = int(numbers[0]), over if by_image else numbers[1:]
    # Frames that are lost as they are may be found by local contrast, and are tried beside these.
    few, is_lost = len(others), measured.usable & ~measured.trusted(settings)
    others = np.concatenate([others, spread(np.setdiff1d(np.flatnonzero(is_lost), [first, *others]), _TRIED)])
    against: Any = reference if by_image else frames.read(first, first + 1).frames[0]
    part = settings.roi or (slice(None), slice(None))
    # Where all parts show about as much, local contrast would count them as they count now.
    if evenness(against[*part]) > _EVEN:
        return False
    sample: Frames = HeldFrames.of(PickedFrames(frames, tuple(others.tolist())))
    trial, local, pixels = replace(settings, engine="fft", contrast=Contrast(), smooth_time=1), LOCAL, 1
    if min(settings.measured_shape(frames.shape)) >= _BINNED_FROM:
        sample, local, pixels = HeldFrames.of(BinnedFrames(sample, part)), Contrast(DEFAULT_SIGMA / 2), 2
        against = binned(against[None, *part])[0]
        window = settings.window(frames.shape)
        reach = (max(window.dy_max, -window.dy_min) / 2, max(window.dx_max, -window.dx_min) / 2)
        trial = replace(trial, roi=None, max_shift=reach)
    found = measure(sample, against, replace(trial, contrast=local), tiles=False)
    plain, origin = measured.of(others), 0.0 if by_image else measured.shifts[first]
    if compares_neighbours(reference):
        # Sums of steps say nothing of how sure one is.
        plain, origin, pixels = measure(sample, against, trial, tiles=False), 0.0, 1
    shifts = (plain.shifts - origin) / pixels
    sigma = np.nan_to_num(plain.sigma, nan=np.inf, posinf=np.inf) / pixels
    off = np.abs(found.shifts - shifts)
    apart = (off > _APART * np.hypot(found.sigma, sigma)).any(axis=1)
    rows = found.trusted(trial) & plain.usable & np.isfinite(off).all(axis=1)
    # A frame that is lost is a pixel off. Nothing is won where local contrast says the same, and is no surer.
    won = np.minimum(pixels * np.maximum(off, sigma), SAME_PEAK).max(axis=1) - pixels * found.sigma.max(axis=1)
    regained = is_lost.mean() * won[rows & is_lost[others]].sum() / max(is_lost[others].sum(), 1)
    rows[few:] = False
    if not 2 * rows.sum() > few:
        return False
    is_apart = bool(2 * (rows & apart).sum() > rows.sum())
    if is_apart:
        images = smoothed(taken(sample, np.arange(sample.count), trial))
        image = smoothed(taken(ArrayFrames(against[None]), np.arange(1), trial))[0]
        both = np.stack([found.shifts, shifts], axis=1)
        each = [votes(image, moved_by(images[row], both[row]), both[row]) for row in np.flatnonzero(rows & apart)]
        better, worse = np.sum(each, axis=0)
        still = [bool((np.abs(of[rows]) <= _STILL).all()) for of in (found.shifts, shifts)]
        if better >= MIN_VOTES and not by_image and still == [False, True]:
            return True
        if max(better, worse) >= MIN_VOTES and better != worse:
            return bool(better > worse)
    error = [float(np.median(sigma[rows].max(axis=1))) for sigma in (sigma, found.sigma)]
    if error[1] < (_MAX_SIGMA_RATIO_APART if is_apart else _MAX_SIGMA_RATIO) * error[0] + regained / pixels:
        return True
    others = rows & apart & (off * pixels > SAME_PEAK).any(axis=1) & plain.trusted(trial)
    return None if 2 * others.sum() > few else False
