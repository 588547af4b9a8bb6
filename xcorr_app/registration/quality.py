"""Words that say what is doubtful about a frame's shift, and when each applies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

EDGE, LOW_SCORE, AMBIGUOUS = "edge", "low-score", "ambiguous"
FLAT, UNREADABLE, NON_FINITE, DISAGREES = "flat", "unreadable", "non-finite", "disagrees"
INHERITED, UNCERTAIN, INCONSISTENT = "inherited", "uncertain", "inconsistent"

DOUBTFUL = frozenset({EDGE, AMBIGUOUS, DISAGREES, INHERITED, UNCERTAIN, INCONSISTENT})
"""The shift was measured but is not to be trusted. A low score alone is a remark: noise lowers scores, not trust."""
FAILED = frozenset({FLAT, UNREADABLE, DISAGREES})
"""The frame has no shift, or its check failed: the run does not count as good."""

AMBIGUOUS_RATIO = 1.1
"""First peak over second peak below which the second is as likely."""
_SIGNIFICANCE = 3.0
"""Deviations above the highest score that noise is expected to reach."""
_MOST_BY_CHANCE = 0.8
"""A few pixels reach any score by chance; a better one than this counts all the same."""


def is_trusted(flags: tuple[str, ...]) -> bool:
    """Whether a frame with these flags may be moved without asking."""
    return not (DOUBTFUL | FAILED) & set(flags)


def clean_fraction(images: Array, variance: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Fraction of each image's variance that is not white noise, in [0, 1]; 1 for images smaller than 3 x 3.

    The noise is estimated from a second difference along both axes, which smooth structure hardly passes (Immerkaer
    1996, doi 10.1006/cviu.1996.0060), on every eighth row. Structure as fine as a pixel passes for noise. Images
    (n, h, w) are of any type and mean if their `variance` is given, else float and of zero mean.
    """
    xp = array_namespace(images)
    if min(images.shape[1:]) < 3:
        return np.ones(images.shape[0])
    rows = images.shape[1] - 2
    above, middle, below = (_as_float(images[:, i : i + rows : 8]) for i in range(3))
    curvature = above - 2 * middle + below
    curvature = curvature[:, :, :-2] - 2 * curvature[:, :, 1:-1] + curvature[:, :, 2:]
    # The mean modulus of Gaussian noise is sqrt(2 / pi) of its deviation; the mask multiplies that by 6.
    noise = to_host(abs(curvature).mean(axis=(1, 2), dtype=np.float64)) * np.sqrt(np.pi / 2) / 6
    if variance is None:
        variance = to_host(xp.einsum("nij,nij->n", images, images)) / (images.shape[1] * images.shape[2])
    clean: NDArray[np.float64] = np.clip(1 - noise**2 / np.where(variance > 0, variance, 1.0), 0.0, 1.0)
    return clean


def _as_float(images: Array) -> Array:
    return images if images.dtype.kind == "f" else images.astype(np.float32)


def doubtful_below(
    min_score: float,
    of_reference: NDArray[np.float64],
    of_frames: NDArray[np.float64],
    overlap: NDArray[np.float64],
    window: ShiftWindow,
) -> NDArray[np.float64]:
    """Score below which a frame is doubtful.

    Two noisy images of one scene correlate to the root of the product of their clean fractions at best; a frame is
    doubtful below `min_score` of that, and in any case where unrelated noise would score as much: the score of noise
    over n pixels has a deviation of 1 / sqrt(n), and the highest of M such scores is about sqrt(2 ln M) deviations.
    """
    allowed = min_score * np.sqrt(of_reference * of_frames)
    least: NDArray[np.float64] = np.maximum(allowed, score_by_chance(overlap, window))
    return least


def score_by_chance(overlap: NDArray[np.float64], window: ShiftWindow) -> NDArray[np.float64]:
    """Score that unrelated white noise hardly reaches anywhere in the window, by the pixels (n,) that overlap."""
    highest = np.sqrt(2 * np.log(window.shape[0] * window.shape[1])) + _SIGNIFICANCE
    chance: NDArray[np.float64] = np.minimum(highest / np.sqrt(np.maximum(overlap, 1.0)), _MOST_BY_CHANCE)
    return chance


def on_edge(peaks: NDArray[np.integer], window: ShiftWindow) -> NDArray[np.bool_]:
    """Whether an integer peak lies on the outermost shifts of the window, in an axis that has any others."""
    edge = np.zeros(peaks.shape[0], dtype=bool)
    for axis, (lowest, highest) in enumerate(((window.dy_min, window.dy_max), (window.dx_min, window.dx_max))):
        if highest > lowest:
            edge |= (peaks[:, axis] == lowest) | (peaks[:, axis] == highest)
    return edge
