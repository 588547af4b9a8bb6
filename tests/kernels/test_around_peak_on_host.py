"""The kernel that checks shifts by the definition, on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.peaks.around_peak import SIDE, around_peak_launch


def sums_by_slices(left, right, dy, dx):
    """Of one shift, over its overlap cut out of both."""
    height, width = right.shape
    rows, columns = (
        slice(max(0, -dy), max(0, min(height, height - dy))),
        slice(max(0, -dx), max(0, min(width, width - dx))),
    )
    g = right[rows, columns]
    f = left[max(0, dy) :, max(0, dx) :][: g.shape[0], : g.shape[1]]
    if min(g.shape) == 0:
        return np.zeros(5)
    return np.array([f.sum(), (f * f).sum(), g.sum(), (g * g).sum(), (f * g).sum()])


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (37, 5), (9, 9), (33, 67), (21, 143)])
@pytest.mark.parametrize("one_left", [True, False])
def test_sums_of_every_overlap(host_builds, rng, shape, one_left):
    peaks = np.array([(0, 0), (-2, 1), (shape[0] - 1, -shape[1]), (4, -3), (-90, 90)], np.int32)
    lefts = guarded(rng.normal(size=(1 if one_left else len(peaks), *shape)))
    rights = guarded(rng.normal(size=(len(peaks), *shape)))
    sums = guarded(np.full((5, len(peaks), SIDE, SIDE), np.nan))
    launch = around_peak_launch(len(peaks))
    run_kernel(host_builds, launch, (lefts, rights, guarded(peaks), sums), (len(lefts), *shape, len(peaks)))
    assert guards_are_whole(sums)
    for k, (dy, dx) in enumerate(peaks.tolist()):
        for i, j in np.ndindex(SIDE, SIDE):
            expected = sums_by_slices(lefts[0 if one_left else k], rights[k], dy + i - 2, dx + j - 2)
            np.testing.assert_allclose(sums[:, k, i, j], expected, atol=1e-10)
