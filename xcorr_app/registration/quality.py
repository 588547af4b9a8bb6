"""Words that say what is doubtful about a frame's shift, and when each applies."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.noise_sums import LAGS as _LAGS
from xcorr_app.gpu.peaks.noise_sums import noise_sums
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import WITH_DOUBLE, name_of

EDGE, LOW_SCORE, AMBIGUOUS = "edge", "low-score", "ambiguous"
FLAT, UNREADABLE, NON_FINITE, DISAGREES = "flat", "unreadable", "non-finite", "disagrees"
INHERITED, UNCERTAIN, INCONSISTENT = "inherited", "uncertain", "inconsistent"

DOUBTFUL = frozenset({EDGE, AMBIGUOUS, DISAGREES, INHERITED, UNCERTAIN, INCONSISTENT})
"""The shift was measured but is not to be trusted. A low score alone is a remark: noise lowers scores, not trust."""
REMARKS = frozenset({LOW_SCORE})
"""Said of a frame, no reason to look at it."""
FAILED = frozenset({FLAT, UNREADABLE, DISAGREES})
"""The frame has no shift, or its check failed."""
FAILS_THE_RUN = FAILED - {FLAT}
"""The run does not count as good. A frame of one value, as of a closed shutter, is nothing that went wrong in it: what
lies between its neighbours is all there is to know of its shift."""

WRONG = {EDGE: 0.5, DISAGREES: 0.5, INHERITED: 0.3}
"""Probability that a frame's peak is not its own, of those flagged so. That of chance is known by itself."""
OF_A_LATTICE = 0.5
"""The same of peaks that others are like, where most frames have such and none scores as noise does; elsewhere none is
known to be a frame's own."""
_INCONSISTENT = 0.3
"""The same of inconsistent frames, at least, and"""
_MAX_RESEMBLING = 0.5
"""share of the tiles that resemble the reference, up to which it is more: of other scenes a tenth does."""
_FILLED = 0.51
"""The same of uncertain frames whose peak fills the window, so that nothing tells it from chance: it may be either, and
how far it is off is not known."""
_CHANCE = 30.0
"""Odds of chance over the probability of a false alarm: near a height, peaks by chance are denser than those of scenes,
which reach any."""

AMBIGUOUS_RATIO = 1.1
"""First peak over second peak below which the second is as likely."""
NOISE_PERIOD, PERIOD_OF_QUIET = 8, 32
"""Rows of which four are looked at for noise; and of frames whose frequencies are not weighted, which have little."""
_SIGNIFICANCE = 3.0
"""Deviations above the highest score that noise is expected to reach."""
_MAX_BY_CHANCE = 0.8
"""A few pixels reach any score by chance; a better one than this counts all the same."""


@lru_cache(maxsize=256)  # few combinations occur, however many frames there are
def is_trusted(flags: tuple[str, ...]) -> bool:
    """Whether a frame with these flags may be moved without asking."""
    return not flags or not (DOUBTFUL | FAILED) & set(flags)


@lru_cache(maxsize=256)
def without_remarks(flags: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is doubtful about a frame, and what is only remarked."""
    return tuple(word for word in flags if word not in REMARKS), tuple(word for word in flags if word in REMARKS)


def wrong_by_chance(false_alarm: NDArray[np.float64], uncertain: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probability (T,) that peaks are those of noise, by that of noise reaching as high.

    A peak that fills the window has nothing to be told from: where it is `uncertain` as well, it may be either.
    """
    odds = _CHANCE * false_alarm
    found: NDArray[np.float64] = np.where(np.isfinite(odds), odds / (1 + odds), np.where(uncertain, _FILLED, 0.0))
    return found


def honest_errors(sigma: NDArray[np.float64], wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors (T, 2) of shifts: those of their peaks, infinite where these are more probably wrong than right.

    A shift that is a peak by chance lies anywhere in the window, however sharp that peak is.
    """
    return np.where((wrong > 0.5)[:, None] & ~np.isnan(sigma), np.inf, sigma)


def wrong_if_inconsistent(inlier_fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability (T,) that inconsistent frames lie elsewhere, by the share of tiles that resemble the reference."""
    return np.asarray(np.fmax(_INCONSISTENT, 1 - inlier_fraction / _MAX_RESEMBLING))


def signal_fraction(
    images: Array, variance: NDArray[np.float64] | None = None, period: int = NOISE_PERIOD
) -> NDArray[np.float64]:
    """Fraction of each image's variance that is not white noise, in [0, 1]; 1 for images smaller than 4 x 4.

    White noise is what the autocorrelation at zero shift, c(0), stands above the even polynomial of sixth order through
    its values at shifts of 1, 2 and 3 pixels, (15 c(1) - 6 c(2) + c(3)) / 10, the mean of both axes, as in
    :func:`xcorr_app.correlation.weighting.noise_share`; here of four rows in every `period`. Structure as fine as a
    pixel passes for noise. Images (n, h, w) are integers, or floats of zero mean; of images as stored, of any mean, the
    `variance` (n,) is given, which takes the place of that of the rows looked at.
    """
    count, height, width = images.shape
    if min(height, width) < _LAGS + 1:
        return np.ones(count)
    period = min(period, height)
    if is_device_array(images) and name_of(images.dtype) in WITH_DOUBLE:
        products = noise_sums(images, period, height // period)
    else:
        products = _mean_products(images, period, centred=images.dtype.kind == "f" and variance is None)
    return signal_fraction_of(products, variance)


def signal_fraction_of(
    products: NDArray[np.float64], variance: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """`signal_fraction` (n,) by the mean products (n, 7) of pixels next to each other."""
    own = products[:, 0]
    flanks = products[:, 1:].reshape(-1, 2, _LAGS) @ np.array([15, -6, 1]) / 20
    noise = own - flanks.sum(axis=1)
    whole = own if variance is None else variance
    clean: NDArray[np.float64] = np.clip(1 - noise / np.where(whole > 0, whole, np.inf), 0.0, 1.0)
    return clean


def _mean_products(images: Array, period: int, *, centred: bool = False) -> NDArray[np.float64]:
    """Mean products (n, 7) of pixels about their mean: with itself, 1, 2 and 3 pixels down, then 1, 2 and 3 across."""
    xp = array_namespace(images)
    count, height, width = images.shape
    groups = images[:, : height - height % period].reshape(count, -1, period, width)[:, :, : _LAGS + 1]
    if not centred:
        # Squares of integers of 64 bits are beyond single precision.
        groups = groups.astype(np.float64 if groups.dtype.itemsize == 8 else np.float32)
        groups -= groups.mean(axis=(1, 2, 3), keepdims=True)
    lags = range(1, _LAGS + 1)
    pairs = [(groups, groups), *((groups[:, :, lag:], groups[:, :, :-lag]) for lag in lags)]
    pairs += [(groups[..., lag:], groups[..., :-lag]) for lag in lags]
    # Line by line, and those in double precision.
    lines = [xp.einsum("nijk,nijk->nij", one, other) for one, other in pairs]
    sums = xp.stack([each.sum(axis=(1, 2), dtype=np.float64) for each in lines], axis=1)
    found: NDArray[np.float64] = to_host(sums) / [one.size / count for one, _ in pairs]
    return found


def doubtful_below(
    min_score: float,
    of_reference: NDArray[np.float64],
    of_frames: NDArray[np.float64],
    by_chance: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Score below which a frame is doubtful.

    Two noisy images of one scene correlate to the root of the product of their clean fractions at best; a frame is
    doubtful below `min_score` of that, and in any case where unrelated noise would score as much: the score of noise
    over n pixels has a deviation of 1 / sqrt(n), and the highest of M such scores is about sqrt(2 ln M) deviations:
    `by_chance`, of `score_by_chance`.
    """
    allowed = min_score * np.sqrt(of_reference * of_frames)
    least: NDArray[np.float64] = np.maximum(allowed, by_chance)
    return least


def score_by_chance(overlap: NDArray[np.float64], window: ShiftWindow) -> NDArray[np.float64]:
    """Score that unrelated white noise hardly reaches anywhere in the window, by the pixels (n,) that overlap."""
    highest = np.sqrt(2 * np.log(window.shape[0] * window.shape[1])) + _SIGNIFICANCE
    chance: NDArray[np.float64] = np.minimum(highest / np.sqrt(np.maximum(overlap, 1.0)), _MAX_BY_CHANCE)
    return chance


def on_edge(peaks: NDArray[np.integer], window: ShiftWindow) -> NDArray[np.bool_]:
    """Whether an integer peak lies on the outermost shifts of the window, in an axis that has any others."""
    edge = np.zeros(peaks.shape[0], dtype=bool)
    for axis, (lowest, highest) in enumerate(((window.dy_min, window.dy_max), (window.dx_min, window.dx_max))):
        if highest > lowest:
            edge |= (peaks[:, axis] == lowest) | (peaks[:, axis] == highest)
    return edge
