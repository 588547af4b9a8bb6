"""Peaks with several leading axes, as one axis of them."""

import numpy as np

from xcorr_app.correlation.find_shifts import FoundShifts


def test_peaks_are_put_in_one_row_in_their_order(rng):
    shift, peak = rng.normal(size=(2, 3, 2)), rng.integers(-9, 9, (2, 3, 2))
    score, ratio, on_edge = rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), rng.random((2, 3)) < 0.5
    flat = FoundShifts(shift, score, ratio, peak, on_edge).flat()
    for n, (i, j) in enumerate(np.ndindex(2, 3)):
        np.testing.assert_array_equal(flat.shift[n], shift[i, j])
        np.testing.assert_array_equal(flat.peak[n], peak[i, j])
        assert (flat.value[n], flat.ratio[n], flat.on_edge[n]) == (score[i, j], ratio[i, j], on_edge[i, j])
    assert flat.shift.shape == flat.peak.shape == (6, 2)
    assert flat.value.shape == flat.ratio.shape == flat.on_edge.shape == (6,)
