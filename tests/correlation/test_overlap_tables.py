"""Sums over overlaps, by tables of collapsed images, against their definition."""

import numpy as np
import pytest

from xcorr_app.correlation.overlap import OverlapSums, overlap_slices
from xcorr_app.correlation.window import ShiftWindow

WINDOWS = [
    ShiftWindow.symmetric(3, 5),
    ShiftWindow.symmetric(0, 0),
    ShiftWindow(2, 9, -7, -4),
    ShiftWindow.symmetric(22, 30),
    ShiftWindow(-60, -40, -3, 60),
    ShiftWindow(-3, 3, 40, 70),
    ShiftWindow(80, 90, 0, 2),
    ShiftWindow(-50, 4, 3, 3),
]
SHAPES = [((47, 61), (47, 61)), ((47, 61), (20, 33)), ((20, 33), (47, 61)), ((1, 61), (1, 9))]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_all_overlaps(window, shapes, dtype, rng):
    images = [(rng.normal(size=(2, *shape)) + 0.3).astype(dtype) for shape in shapes]
    sums = OverlapSums(*shapes, window)
    found = sums.of_left(images[0]), sums.of_right(images[1])
    for i, dy in enumerate(window.dys):
        for j, dx in enumerate(window.dxs):
            for side, part in enumerate(overlap_slices(*shapes, dy, dx)):
                values = images[side][:, *part].astype(np.float64)
                exact = values.sum(axis=(1, 2)), (values**2).sum(axis=(1, 2))
                largest = (images[side].astype(np.float64) ** 2).sum()
                for moment in (0, 1):
                    error = abs(found[side][moment][:, i, j] - exact[moment]).max()
                    assert error <= (3e-7 if dtype == np.float32 else 1e-14) * largest
