"""Comparing frames once more, in double precision and by the definition; refining either measurement."""

from __future__ import annotations

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.measuring.chunk_result import ChunkResult
from xcorr_app.registration.measuring.match import Match
from xcorr_app.registration.measuring.matcher import Matcher, PreparedReference
from xcorr_app.registration.measuring.phase_ramp import refine
from xcorr_app.registration.measuring.verification import SCORE_TOLERANCE, scores_by_definition
from xcorr_app.registration.settings import Settings

_OUTER = np.pad(np.zeros((3, 3), dtype=bool), 1, constant_values=True)
"""Of the 5 x 5 values around a peak, those two shifts away: no sub-pixel place needs them."""


def verify(
    verifier: Matcher,
    result: ChunkResult,
    match: Match,
    reference: PreparedReference,
    frames: Array,
    settings: Settings,
) -> None:
    """Write into `result` what the exact comparison of its checked `frames` found, and where it disagrees."""
    planes = verifier.planes(reference, frames)
    around, peaks = match.around[result.checked], match.peak[result.checked]
    # A device computes these while the host looks at what the other means found.
    scores_at_peaks = scores_by_definition(reference.values, planes.values, peaks, settings.min_overlap)
    # Images of a few pixels score the same at several shifts; which of them is first is decided by rounding.
    result.exact = verifier.match(planes, tied=peaks)
    if result.shapes is not None:
        rows = np.flatnonzero(np.isfinite(result.shapes.refined[result.checked]).all(axis=1))
        if rows.size:
            images = reference.values if reference.values.shape[0] == 1 else reference.values[rows]
            result.exact.shift[rows] = refine(images, planes.values[rows], result.exact.shift[rows]).shift
    scores = to_host(scores_at_peaks)
    known = np.isfinite(scores)
    # A value that the engine lacks is as wrong as one that is off, but the outer sixteen may be lacking together.
    needed = known.copy()
    needed[np.isnan(around[:, _OUTER]).all(axis=1)] &= ~_OUTER
    error = np.where(known & np.isfinite(around), np.abs(scores - around), np.where(needed, np.inf, 0.0))
    no_shift = np.isfinite(result.exact.shift).all(axis=1) & ~np.isfinite(match.shift[result.checked]).all(axis=1)
    result.disagrees = (error.max(axis=(1, 2)) > SCORE_TOLERANCE) | no_shift
