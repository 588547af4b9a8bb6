"""Correlation by blocks: against the definition and whole transforms, for odd shapes, windows and batches.

The bound is that of every engine: 64 roundings of the root of the product of both matrices' sums of squares.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.correlation import plain
from xcorr_app import ShiftWindow
from xcorr_app.correlation.engines import ENGINES
from xcorr_app.correlation.engines.fft import FFTCorrelator
from xcorr_app.correlation.engines.fft_blocks import BlockFFTCorrelator, cut, plan

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


def transformed(correlator, left, right):
    return correlator.sums(correlator.left(left), correlator.right(right))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("left_shape", "right_shape", "window"), CASES)
def test_blocks_give_the_plain_sums(rng, left_shape, right_shape, window, dtype):
    blocks = plan(left_shape, right_shape, window)
    assert blocks is not None
    left, right = rng.normal(size=left_shape).astype(dtype), rng.normal(size=right_shape).astype(dtype)
    correlator = BlockFFTCorrelator(left_shape, right_shape, window, blocks)
    plane = transformed(correlator, left[None, None], right[None, None])[0, 0]
    assert plane.dtype == dtype
    np.testing.assert_allclose(plane, plain.sums(left, right, window), rtol=0, atol=bound(left, right))


@pytest.mark.parametrize("counts", [(2, 1), (2, 3), (4, 2), (6, 5), (10, 1)])
def test_any_number_of_blocks_gives_the_same(rng, counts):
    left, right, window = rng.normal(size=(141, 120)), rng.normal(size=(119, 131)), ShiftWindow(-11, 30, -9, 4)
    ends = (window.dy_min, window.dy_max), (window.dx_min, window.dx_max)
    blocks = [cut(left.shape[i], right.shape[i], *ends[i], counts[i]) for i in (0, 1)]
    correlator = BlockFFTCorrelator(left.shape, right.shape, window, tuple(blocks))
    plane = transformed(correlator, left[None, None], right[None, None])[0, 0]
    np.testing.assert_allclose(plane, plain.sums(left, right, window), rtol=0, atol=bound(left, right))


@pytest.mark.parametrize(("lefts", "rights"), [((1, 1), (1, 3)), ((3, 1), (3, 2)), ((2, 1), (1, 3)), ((1, 1), (1, 1))])
def test_every_batch(rng, lefts, rights):
    shape, window = (150, 131), ShiftWindow.symmetric(9, 12)
    left, right = rng.normal(size=(*lefts, *shape)), rng.normal(size=(*rights, *shape))
    by_blocks = transformed(BlockFFTCorrelator(shape, shape, window, plan(shape, shape, window)), left, right)
    whole = transformed(FFTCorrelator(shape, shape, window, np), left, right)
    assert by_blocks.shape == whole.shape
    np.testing.assert_allclose(by_blocks, whole, rtol=0, atol=1e-10)


def test_the_engine_takes_blocks_where_the_window_is_small():
    shape = (512, 512)
    correlators = [ENGINES["fft"].bind(shape, shape, ShiftWindow.symmetric(reach, reach), np) for reach in (16, 500)]
    assert [type(correlator) for correlator in correlators] == [BlockFFTCorrelator, FFTCorrelator]
