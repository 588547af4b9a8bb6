"""The kernels that score planes, and find and rate their peaks, on the host, against array operations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.definition import planes_by_definition
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.test_peaks_on_host import tables_on_host
from xcorr_app.correlation.normalize import ZNCC, min_overlap_pixels
from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.overlap_edges import OverlapEdges
from xcorr_app.gpu.peaks.rated_peak import RATED_RECORD, RatedPeaks, _ties, rated_peak_launch
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.registration.measuring.rated_peaks import Planes, find_rated_peaks
from xcorr_app.registration.standard_error.significance import Spread, rated, strides_of

NO = (None,) * 3


def on_host(folder, planes, scores, box, tied, zero=None, *, fisher, rate=True):
    """What `rate_peaks` does on a device."""
    count, height, width = planes.shape
    shape = box[0].stop - box[0].start, box[1].stop - box[1].start
    records = guarded(np.full((count, RATED_RECORD), np.nan))
    workspace = guarded(np.full(planes.shape, np.nan))
    of_planes = np.zeros((count, 2), np.int32) if tied is None else tied.astype(np.int32)
    numbers = (height, width, (scores.shape[1] - height) // 2, box[0].start, box[1].start, *shape)
    arrays = guarded(planes), guarded(scores), guarded(of_planes), workspace, records
    launch = rated_peak_launch(count, fisher=fisher, rate=rate)
    run_kernel(folder, launch, arrays, (*numbers, *strides_of(shape), *_ties(tied, zero)))
    assert guards_are_whole(records)
    assert guards_are_whole(workspace)
    found = RatedPeaks.of(records)
    spreads = [Spread(m[:, 0], m[:, 1], m[:, 2:].T, found.samples) for m in np.moveaxis(found.medians, 1, 0)]
    return found, rated(shape, (found.value, spreads[0]), (found.transformed, spreads[1]) if fisher else None)


def same(found, rating, expected):
    for name in ("row", "column", "climbs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("value", "rival", "around", "near"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(rating.z, expected.rating.z, rtol=1e-9)
    np.testing.assert_allclose(rating.false_alarm, expected.rating.false_alarm, rtol=1e-6, atol=1e-300)


def random_planes(rng, shape):
    planes = np.clip(rng.normal(scale=0.2, size=shape), -1, 1)
    planes[0, 3:, 4] = np.nan
    planes[1] = np.round(planes[1], 1)  # many equal values
    planes[2] = np.nan
    planes[3, 0] = 0.99  # climbs beyond the box
    return planes


@pytest.mark.parametrize("shape", [(14, 19), (37, 37), (103, 29)])
@pytest.mark.parametrize("fisher", [True, False])
def test_peaks_and_what_they_are_rated_by(host_builds, rng, shape, fisher):
    planes = random_planes(rng, (5, *shape))
    box = slice(2, shape[0] - 2), slice(2, shape[1] - 2)
    tied = np.tile([shape[0] // 2, shape[1] // 2], (5, 1))
    planes[4, *tied[4]] = planes[4].max()
    expected = find_rated_peaks(Planes(planes, planes, planes, *NO), box, tied, plain=fisher)
    found, rating = on_host(host_builds, planes, planes, box, tied, fisher=fisher)
    same(found, rating, expected)
    assert (found.row[4], found.column[4]) == tuple(tied[4])


@pytest.mark.parametrize(("sums", "values"), [("float32",) * 2, ("float64",) * 2, ("float64", "float32")])
@pytest.mark.parametrize("batch", [(1, 3, 3), (2, 2, 1), (2, 3, 3)])
def test_scores_of_planes(host_builds, rng, sums, values, batch):
    lefts, rights, per_left = batch
    shapes, window = ((31, 37), (29, 40)), ShiftWindow(-6, 7, -9, 8)
    problem = Problem(*shapes, (window.dy_min, window.dx_min), window.shape, lefts, rights, per_left)
    images = [
        standardize(rng.normal(size=(n, *shape)).astype(np.float32), values).values
        for n, shape in zip((lefts, rights), shapes, strict=True)
    ]
    images[1][0, :, :20] = 0  # overlaps without variance
    planes = planes_by_definition(*(image.astype(np.float64) for image in images), problem).astype(sums)
    edges = OverlapEdges.of(problem)
    sides = (edges.left_rows, edges.left_columns), (edges.right_rows, edges.right_columns)
    tables = [tables_on_host(host_builds, image, *side) for image, side in zip(images, sides, strict=True)]
    sizes = [size.size for side in sides for size in side]
    launch = zncc_planes_launch(problem, sums, values)
    scores = guarded(np.full(planes.shape, np.nan))
    arrays = guarded(planes), *tables, edges.rows, edges.columns, scores
    numbers = (*problem.arguments(), *launch.extra, *sizes, min_overlap_pixels(*shapes, 0.4))
    run_kernel(host_builds, launch, arrays, numbers)
    assert guards_are_whole(scores)
    zncc = ZNCC(*shapes, window, 0.4, np)
    of_left, of_right = zncc.left(images[0]), zncc.right(images[1])
    for pair in range(problem.pairs):
        i, j = pair // per_left, pair % rights
        expected = zncc(planes[pair], *(tuple(a[k] for a in side) for side, k in ((of_left, i), (of_right, j))))
        np.testing.assert_allclose(scores[pair], expected, atol=2e-6)
        assert np.isfinite(expected).any()
