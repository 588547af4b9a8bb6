"""Checks of a measured shift by other means than the engine that measured it.

Every verified frame is measured again by a float64 zero-padded FFT with the same window, normalisation and
sub-pixel method. That is no check of an FFT engine's own theory, nor of what all engines share, so the normalised
correlation of the 5 x 5 shifts around the peak is also recomputed from its definition in float64, by the code of
this file alone (on a device by a kernel that nothing else uses), and compared with the engine's values: at least the
nearest 3 x 3 must be there.
"""

import math

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.around_peak import started_scores
from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host
from xcorr_app.registration.measuring.match import Comparison
from xcorr_app.registration.measuring.matcher import Matcher, PreparedReference
from xcorr_app.registration.measuring.phase_ramp import refine
from xcorr_app.registration.settings import Settings

_OUTER = np.pad(np.zeros((3, 3), dtype=bool), 1, constant_values=True)
"""Of the 5 x 5 values around a peak, those two shifts away: no sub-pixel place needs them."""

_NO_VARIANCE = 1e-12
"""Variance of an overlap, as a share of the largest sum of squares around the peak, that may be rounding."""

SCORE_TOLERANCE = 1e-3
"""Largest accepted difference between an engine's normalised correlation and the definition's."""


def verify(
    verifier: Matcher, found: Comparison, reference: PreparedReference, frames: Array, settings: Settings
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Shifts (n, 2) of frames (n, h, w) by the exact comparison, and where what was `found` is not what it should be.

    `verifier` and what it made of the reference are of double precision.
    """
    planes, around, peaks = verifier.planes(reference, frames), found.match.around, found.match.peak
    # A device computes these while the host looks at what the other means found.
    scores_at_peaks = scores_by_definition(reference.values, planes.values, peaks, settings.min_overlap)
    # Images of a few pixels score the same at several shifts; which of them is first is decided by rounding.
    shift = verifier.match(planes, tied=peaks).shift
    rows = np.flatnonzero(np.isfinite(found.shapes.refined).all(axis=1))
    if rows.size:
        images = reference.values if reference.values.shape[0] == 1 else reference.values[rows]
        shift[rows] = refine(images, planes.values[rows], shift[rows]).shift
    scores = to_host(scores_at_peaks)
    known = np.isfinite(scores)
    # A value that the engine lacks is as wrong as one that is off, but the outer sixteen may be lacking together.
    needed = known.copy()
    needed[np.isnan(around[:, _OUTER]).all(axis=1)] &= ~_OUTER
    error = np.where(known & np.isfinite(around), np.abs(scores - around), np.where(needed, np.inf, 0.0))
    no_shift = np.isfinite(shift).all(axis=1) & ~np.isfinite(found.match.shift).all(axis=1)
    return shift, (error.max(axis=(1, 2)) > SCORE_TOLERANCE) | no_shift


def scores_by_definition(references: Array, frames: Array, peaks: NDArray[np.integer], min_overlap: float) -> Array:
    """Zero-mean normalised correlation (n, 5, 5) at the shifts around peaks (n, 2), from its definition in float64.

    References (1 or n, h, w) and frames (n, h, w) are float64; NaN where the overlap is too small or has no variance.
    The scores are where the frames are; on a device nothing has been waited for.
    """
    rows, columns = frames.shape[1:]
    fewest = max(1, math.ceil(min_overlap * rows * columns))
    if is_device_array(frames):
        return started_scores(references, frames, peaks, fewest)
    images = [references[i if references.shape[0] > 1 else 0] for i in range(len(frames))]
    sums = [_sums(*pair, *by) for *pair, by in zip(images, frames, peaks.tolist(), strict=True)]
    f, ff, g, gg, products, pixels = np.stack(sums, axis=1)
    pairs = np.maximum(pixels, 1.0)
    varies_left, varies_right = ff - f * f / pairs, gg - g * g / pairs
    vary = [
        varies > _NO_VARIANCE * squares.max(axis=(1, 2), keepdims=True)
        for varies, squares in ((varies_left, ff), (varies_right, gg))
    ]
    valid = (pixels >= fewest) & vary[0] & vary[1]
    norm = np.sqrt(np.where(valid, varies_left * varies_right, 1.0))
    scores: NDArray[np.float64] = np.where(valid, (products - f * g / pairs) / norm, np.nan)
    return scores


def _sums(left: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
    """Sums (6, 5, 5) over the overlaps of two images at shifts around one: of each and its square, of products, of 1.

    Rows of both are laid end to end, with four zeros between those of the right one: a shift is then an offset, and a
    sum of products one of two lines.
    """
    step, starts, counts = np.arange(5)[:, None], [], []
    for size, by in zip(right.shape, (dy, dx), strict=True):
        first, last = max(0, -by - 2), min(size, size - by + 2)
        starts.append((first, first + by - 2))
        counts.append(last - first)
    if min(counts) <= 0:
        return np.zeros((6, 5, 5))
    rows, columns = counts
    right = right[starts[0][0] :, starts[1][0] :][:rows, :columns]
    near, padded = np.zeros((rows + 4, columns + 4)), np.zeros((rows, columns + 4))
    padded[:, :columns] = right
    (top, bottom), (first, last) = (
        (max(0, start), min(size, start + count + 4))
        for (_, start), count, size in zip(starts, counts, left.shape, strict=True)
    )
    near[top - starts[0][1] : bottom - starts[0][1], first - starts[1][1] : last - starts[1][1]] = left[
        top:bottom, first:last
    ]
    meets, under = [], []
    for (_, start), count, size in zip(starts, counts, left.shape, strict=True):
        place, along = start + step + np.arange(count), np.arange(count + 4)
        meets.append(((place >= 0) & (place < size)).astype(np.float64))
        under.append(((along >= step) & (along < step + count)).astype(np.float64))
    lines = near.ravel(), padded.ravel()[:-4]
    offsets = (step * (columns + 4) + np.arange(5)).ravel().tolist()
    products = [lines[0][offset : offset + lines[1].size] @ lines[1] for offset in offsets]
    moments = [
        _summed(along[0], image) @ along[1].T
        for values, along in ((near, under), (right, meets))
        for image in (values, values * values)
    ]
    pixels = meets[0].sum(axis=1)[:, None] * meets[1].sum(axis=1)
    return np.stack([*moments, np.reshape(products, (5, 5)), pixels])


def _summed(along: NDArray[np.float64], image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Product of (5, n), which is one but for the first and the last four, with an image (n, w)."""
    if len(image) < 8:
        return np.asarray(along @ image)
    return np.asarray(image[4:-4].sum(axis=0) + along[:, :4] @ image[:4] + along[:, -4:] @ image[-4:])
