"""Windows of shifts and what overlaps under a shift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcorr_app import ShiftWindow
from xcorr_app.correlation.overlap import overlap_counts, overlap_slices
from xcorr_app.errors import ArgumentError


def test_shifts_and_shape():
    window = ShiftWindow(-2, 1, 3, 3)
    assert window.shape == (4, 1)
    np.testing.assert_array_equal(window.dys, [-2, -1, 0, 1])
    np.testing.assert_array_equal(window.dxs, [3])
    assert ShiftWindow.symmetric(2, 0) == ShiftWindow(-2, 2, 0, 0)
    assert window.grown(2) == ShiftWindow(-4, 3, 1, 5)


def test_full_window_holds_every_shift_with_a_common_element_and_no_other():
    window = ShiftWindow.full((4, 2), (3, 5))
    assert window == ShiftWindow(-2, 3, -4, 1)
    assert (overlap_counts((4, 2), (3, 5), window) >= 1).all()
    grown = overlap_counts((4, 2), (3, 5), window.grown(1))
    assert (grown[0] == 0).all()
    assert (grown[-1] == 0).all()
    assert (grown[:, 0] == 0).all()
    assert (grown[:, -1] == 0).all()


@pytest.mark.parametrize("bounds", [(1, 0, 0, 0), (0, 0, 5, 4)])
def test_an_empty_window_is_refused(bounds):
    with pytest.raises(ArgumentError, match="empty shift window"):
        ShiftWindow(*bounds)


@pytest.mark.parametrize("bound", [0.5, -1.0, float("nan"), None, "3"])
@pytest.mark.parametrize("which", range(4))
def test_a_window_is_made_of_whole_pixels(bound, which):
    bounds = [-1, 1, -1, 1]
    bounds[which] = bound
    with pytest.raises(ArgumentError, match="whole pixels"):
        ShiftWindow(*bounds)
    bounds[which] = np.int64(0)
    assert ShiftWindow(*bounds).dys.dtype.kind == "i"


sides = st.integers(1, 8)


@settings(max_examples=60, deadline=None)
@given(
    left_shape=st.tuples(sides, sides),
    right_shape=st.tuples(sides, sides),
    shift=st.tuples(st.integers(-10, 10), st.integers(-10, 10)),
)
def test_overlap_is_every_pair_of_elements_a_shift_joins(left_shape, right_shape, shift):
    dy, dx = shift
    pairs = [
        ((y + dy, x + dx), (y, x))
        for y in range(right_shape[0])
        for x in range(right_shape[1])
        if 0 <= y + dy < left_shape[0] and 0 <= x + dx < left_shape[1]
    ]
    of_left, of_right = overlap_slices(left_shape, right_shape, dy, dx)
    positions = [np.moveaxis(np.indices(shape), 0, -1) for shape in (left_shape, right_shape)]
    found = [
        tuple(map(tuple, p[s].reshape(-1, 2).tolist())) for p, s in zip(positions, (of_left, of_right), strict=True)
    ]
    assert list(zip(*found, strict=True)) == pairs
    counts = overlap_counts(left_shape, right_shape, ShiftWindow(dy, dy, dx, dx))
    assert counts.tolist() == [[len(pairs)]]
