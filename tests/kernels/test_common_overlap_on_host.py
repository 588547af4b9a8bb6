"""The kernel that takes the rim from scores around a peak, on the host, against the array operations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.correlation import plain
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.test_peaks_on_host import tables_on_host
from xcorr_app.correlation.normalize import ZNCC
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.common_overlap import common_overlap_launch
from xcorr_app.gpu.peaks.overlap_edges import OverlapEdges

SHAPE, WINDOW = (43, 39), ShiftWindow(-14, 13, -12, 15)
PEAKS = np.array([(0, 0), (5, -3), (-4, 7), (-13, 14), (6, 0)])


@pytest.mark.parametrize("radius", [1, 7])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "float64"])
def test_scores_over_one_overlap(host_builds, rng, radius, each, dtype):
    count = len(PEAKS)
    lefts = rng.normal(size=(count if each else 1, *SHAPE)).astype("float64" if dtype == "float64" else "float32")
    rights = rng.normal(size=(count, *SHAPE))
    rights = (1000 + 90 * rights).astype(dtype) if dtype == "uint16" else rights.astype(dtype)
    rights[1, :, :12] = rights[1, 0, 0]
    planes = np.stack(
        [plain.zncc(lefts[k if each else 0].astype(float), rights[k].astype(float), WINDOW) for k in range(count)]
    )
    row, column = (PEAKS - (WINDOW.dy_min, WINDOW.dx_min)).T
    padded = np.pad(planes, ((0, 0), (radius, radius), (radius, radius)), constant_values=np.nan)
    side = 2 * radius + 1
    around = np.stack([padded[k, row[k] : row[k] + side, column[k] : column[k] + side] for k in range(count)])
    zncc = ZNCC(SHAPE, SHAPE, WINDOW, 0.01, np)
    overlaps = zncc.left(lefts), zncc.right(rights - rights.mean(axis=(1, 2), keepdims=True))
    images = lefts, rights - rights.mean(axis=(1, 2), keepdims=True)
    expected = zncc.on_common_overlap(around, images, overlaps, PEAKS, (row, column))

    problem = Problem(
        SHAPE, SHAPE, (WINDOW.dy_min, WINDOW.dx_min), WINDOW.shape, len(lefts), count, count // len(lefts)
    )
    edges = OverlapEdges.of(problem)
    sides = (edges.left_rows, edges.left_columns), (edges.right_rows, edges.right_columns)
    tables = [tables_on_host(host_builds, of, *side) for of, side in zip((lefts, rights), sides, strict=True)]
    sizes = [size.size for side in sides for size in side]
    launch = common_overlap_launch(count, side, str(lefts.dtype), dtype)
    scores = guarded(np.full(around.shape, 77.0))
    places = guarded(PEAKS.astype(np.int32))
    arrays = guarded(around), guarded(lefts), guarded(rights), places, *tables, edges.rows, edges.columns, scores
    run_kernel(host_builds, launch, arrays, (*problem.arguments(), *sizes, 1))
    assert guards_are_whole(scores)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-5)
    assert np.nanmax(np.abs(expected - around)) > 0.01
