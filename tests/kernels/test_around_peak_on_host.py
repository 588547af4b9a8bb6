"""The kernel that checks shifts by the definition, on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.peaks.around_peak import SIDE, around_peak_launch


def score_by_slices(left, right, dy, dx, fewest):
    """Of one shift, over its overlap cut out of both."""
    height, width = right.shape
    rows, columns = (
        slice(max(0, -dy), max(0, min(height, height - dy))),
        slice(max(0, -dx), max(0, min(width, width - dx))),
    )
    g = right[rows, columns]
    f = left[max(0, dy) :, max(0, dx) :][: g.shape[0], : g.shape[1]]
    if g.size < fewest or g.std() < 1e-9 or f.std() < 1e-9:
        return np.nan
    return np.corrcoef(f.ravel(), g.ravel())[0, 1]


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (37, 5), (9, 9), (9, 151), (33, 67), (21, 143)])
@pytest.mark.parametrize("one_left", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("warps", [4, 5, 16])
def test_scores_of_every_overlap(host_builds, rng, shape, one_left, share, warps):
    peaks = np.array([(0, 0), (-2, 1), (shape[0] - 1, -shape[1]), (4, -3), (-90, 90), (-1, 0)], np.int32)
    lefts = guarded(rng.normal(size=(1 if one_left else len(peaks), *shape)) + 0.5)
    rights = guarded(rng.normal(size=(len(peaks), *shape)) - 3)
    rights[5, :, : shape[1] // 2] = 0.1  # flat where the overlap is small
    scores = guarded(np.full((len(peaks), SIDE, SIDE), 7.0))
    launch, fewest = around_peak_launch(len(peaks), warps * 64), max(1, int(share * shape[0] * shape[1]))
    run_kernel(host_builds, launch, (lefts, rights, guarded(peaks), scores), (len(lefts), *shape, fewest))
    assert guards_are_whole(scores)
    for k, (dy, dx) in enumerate(peaks.tolist()):
        for i, j in np.ndindex(SIDE, SIDE):
            expected = score_by_slices(lefts[0 if one_left else k], rights[k], dy + i - 2, dx + j - 2, fewest)
            np.testing.assert_allclose(scores[k, i, j], expected, atol=1e-10)
