"""Correlation by blocks and by whole transforms of OpenCV: against the definition and those of SciPy, for odd shapes.

The bound is that of every engine: 64 roundings of the root of the product of both matrices' sums of squares.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.correlation import plain
from xcorr_app import ShiftWindow
from xcorr_app.correlation.engines.fft_blocks import BlockFFTCorrelator, cut
from xcorr_app.correlation.engines.fft_whole import WholeFFTCorrelator

CASES = [
    ((301, 203), (177, 264), ShiftWindow(-40, 13, -70, 35)),
    ((256, 255), (255, 257), ShiftWindow.symmetric(18, 18)),
    ((200, 211), (97, 64), ShiftWindow(0, 113, 3, 140)),
    ((211, 190), (203, 191), ShiftWindow(60, 75, -40, -20)),  # to one side
    ((300, 300), (300, 300), ShiftWindow(7, 7, -9, -9)),  # one shift
]


def bound(left, right):
    energy = np.sqrt((left.astype(np.float64) ** 2).sum() * (right.astype(np.float64) ** 2).sum())
    return 64 * np.finfo(left.dtype).eps * energy


def correlator(left_shape, right_shape, window, counts):
    """Axes cut into so many blocks; one of rows is for whole transforms."""
    ends = (window.dy_min, window.dy_max), (window.dx_min, window.dx_max)
    axes = [cut(left_shape[i], right_shape[i], *ends[i], counts[i]) for i in (0, 1)]
    return (WholeFFTCorrelator if counts[0] == 1 else BlockFFTCorrelator)(left_shape, right_shape, window, tuple(axes))


def transformed(correlator, left, right):
    return correlator.sums(correlator.left(left), correlator.right(right))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("left_shape", "right_shape", "window"), CASES)
@pytest.mark.parametrize("counts", [(2, 1), (4, 3), (1, 1)])
def test_they_give_the_plain_sums(rng, left_shape, right_shape, window, dtype, counts):
    left, right = rng.normal(size=left_shape).astype(dtype), rng.normal(size=right_shape).astype(dtype)
    by = correlator(left_shape, right_shape, window, counts)
    plane = transformed(by, left[None, None], right[None, None])[0, 0]
    assert plane.dtype == dtype
    np.testing.assert_allclose(plane, plain.sums(left, right, window), rtol=0, atol=bound(left, right))


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (2, 3), (4, 2), (6, 5), (10, 1)])
def test_any_number_of_blocks_gives_the_same(rng, counts):
    left, right, window = rng.normal(size=(141, 120)), rng.normal(size=(119, 131)), ShiftWindow(-11, 30, -9, 4)
    by = correlator(left.shape, right.shape, window, counts)
    plane = transformed(by, left[None, None], right[None, None])[0, 0]
    np.testing.assert_allclose(plane, plain.sums(left, right, window), rtol=0, atol=bound(left, right))
