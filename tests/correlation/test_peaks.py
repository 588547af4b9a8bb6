"""Peaks of planes, their rivals, and what is said of them."""

import numpy as np
import pytest

from xcorr_app import ShiftWindow, cross_correlate
from xcorr_app.correlation.peaks import find_peaks
from xcorr_app.correlation.plane_peaks import peaks_of_planes
from xcorr_app.gpu.runtime.arrays import to_host

EVERYWHERE = (slice(None), slice(None))


def two_hills(shape, row, column, height, width=1.5):
    y, x = np.indices(shape)
    return height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * width**2))


def found(xp, planes, search=EVERYWHERE):
    all_of_them = find_peaks(xp.asarray(np.asarray(planes, dtype=float)), search)
    return *(getattr(all_of_them, name) for name in ("row", "column", "value", "rival")), all_of_them.ratio()


def test_highest_element_of_every_plane_and_its_strongest_rival(xp):
    shape = (24, 30)
    planes = np.stack(
        [
            two_hills(shape, 5, 6, 1.0) + two_hills(shape, 18, 20, 0.5) + two_hills(shape, 4, 24, 0.4),
            two_hills(shape, 20, 3, 2.0) + two_hills(shape, 3, 25, 1.9),
            two_hills(shape, 7, 9, 1.0, width=6.0),  # alone
            np.full(shape, np.nan),
        ]
    )
    row, column, value, rival, ratio = found(xp, planes)
    np.testing.assert_array_equal(row[:3], [5, 20, 7])
    np.testing.assert_array_equal(column[:3], [6, 3, 9])
    np.testing.assert_allclose(value, [1.0, 2.0, 1.0, np.nan], atol=1e-6)
    np.testing.assert_allclose(rival, [0.5, 1.9, -np.inf, -np.inf], atol=1e-6)
    np.testing.assert_allclose(ratio, [2.0, 2.0 / 1.9, np.inf, np.nan], rtol=1e-6)


def test_a_rival_on_the_rim_counts_only_along_axes_without_a_rim(xp):
    plane = np.zeros((1, 20))
    plane[0, [4, 12, 19]] = 1.0, 0.5, 0.8
    assert found(xp, [plane])[3][0] == 0.5
    assert found(xp, [plane.T])[3][0] == 0.5


def test_invalid_elements_are_never_the_peak(xp):
    plane = two_hills((15, 15), 4, 4, 1.0)
    plane[:8, :8] = np.nan
    plane[11, 12] = 0.5
    row, column, value, rival, _ = found(xp, [plane])
    assert (row[0], column[0], value[0]) == (11, 12, 0.5)
    assert np.isfinite(rival[0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2)])
def test_small_planes(xp, rng, shape):
    plane = rng.permutation(shape[0] * shape[1]).reshape(shape).astype(float)
    row, column, value, _, _ = found(xp, [plane])
    assert (row[0], column[0]) == np.unravel_index(plane.argmax(), shape)
    assert value[0] == plane.max()


@pytest.mark.parametrize("count", [0, 2])
def test_no_planes_and_planes_of_half_precision(xp, rng, count):
    planes = rng.uniform(-1, 1, (count, 9, 11)).astype(np.float16)
    half, single = (find_peaks(xp.asarray(each), EVERYWHERE) for each in (planes, planes.astype(np.float32)))
    np.testing.assert_array_equal(to_host(half.row), to_host(single.row))
    assert half.value.shape == (count,)


@pytest.mark.parametrize("zero", [(11, 13), (2, 3), (30, -7)])
def test_of_equal_peaks_the_one_nearest_to_shift_zero(xp, rng, zero):
    planes = rng.uniform(-1, 0.9, (5, 23, 27))
    search = (slice(2, 21), slice(1, 25))
    places = [[(4, 5), (11, 14), (20, 24)], [(2, 1)], [(3, 3), (3, 20), (19, 3)], [(1, 3), (9, 9)], []]
    for plane, equal in zip(planes, places, strict=True):
        for k, place in enumerate(equal):
            plane[place] = 1.0 - 1e-9 * k
    planes[4] = np.nan
    planes[3, 1, 3] = 1.5  # outside of what is searched
    planes[2, 10] = np.nan
    found = find_peaks(xp.asarray(planes), search, zero)
    row, column, value = found.row, found.column, found.value
    for k, equal in enumerate(places[:4]):
        inside = [place for place in equal if place != (1, 3)]
        nearest = min(inside, key=lambda place: (place[0] - zero[0]) ** 2 + (place[1] - zero[1]) ** 2)
        assert (row[k], column[k]) == nearest
        assert value[k] == planes[(k, *nearest)]
    assert np.isnan(value[4])


WINDOW = ShiftWindow(-7, 8, -3, 12)


def hill(dy, dx, window=WINDOW, height=1.0, width=2.0):
    """A Gaussian hill over a window, with its top between whole pixels."""
    y, x = np.meshgrid(window.dys, window.dxs, indexing="ij")
    return height * np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * width**2))


def test_peak_of_a_gaussian_hill_is_found_between_pixels(xp):
    tops = np.array([[2.3, 4.6], [-4.0, 9.25], [0.0, 0.0]])
    planes = xp.asarray(np.stack([hill(dy, dx) for dy, dx in tops]))
    peaks = peaks_of_planes(planes, WINDOW)
    np.testing.assert_array_equal(peaks.peak, [[2, 5], [-4, 9], [0, 0]])
    np.testing.assert_allclose(peaks.shift, tops, atol=1e-6)
    np.testing.assert_array_equal(peaks.value, to_host(planes).max(axis=(1, 2)))
    assert not peaks.on_edge.any()


@pytest.mark.parametrize(
    ("dy", "dx", "edge"), [(-7, 5, True), (8, 5, True), (2, -3, True), (2, 12, True), (-6, 11, False), (7, -2, False)]
)
def test_a_peak_on_the_edge_of_the_window_is_marked(xp, dy, dx, edge):
    peaks = peaks_of_planes(xp.asarray(hill(dy, dx)), WINDOW)
    assert peaks.peak.tolist() == [[dy, dx]]
    assert peaks.on_edge.tolist() == [edge]


def test_a_peak_beside_an_invalid_shift_is_on_the_edge():
    plane = hill(2, 5)
    plane[:, : 5 - WINDOW.dx_min] = np.nan
    assert peaks_of_planes(plane, WINDOW).on_edge.tolist() == [True]


@pytest.mark.parametrize(("window", "edge"), [(ShiftWindow(0, 0, 0, 0), False), (ShiftWindow(0, 0, -2, 2), False)])
def test_an_axis_of_one_shift_has_no_edge(window, edge):
    assert peaks_of_planes(hill(0, 0, window), window).on_edge.tolist() == [edge]


def test_a_plane_without_a_valid_shift_has_no_peak(xp):
    planes = np.stack([np.full(WINDOW.shape, np.nan), hill(1, 1)])
    peaks = peaks_of_planes(xp.asarray(planes), WINDOW)
    assert np.isnan(peaks.value).tolist() == [True, False]
    assert np.isnan(peaks.shift[0]).all()
    assert peaks.on_edge.tolist() == [False, False]


@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
def test_planes_in_single_precision_agree_with_double(xp, rng, normalization):
    right = rng.normal(size=(4, 40, 44))
    operands = np.roll(right[2], (3, 5), axis=(0, 1)), right
    single, double = (
        peaks_of_planes(
            cross_correlate(
                *(xp.asarray(each, dtype) for each in operands), "one-to-many", WINDOW, normalization=normalization
            ),
            WINDOW,
        )
        for dtype in (np.float32, np.float64)
    )
    assert single.peak[2].tolist() == [3, 5]
    np.testing.assert_array_equal(single.peak, double.peak)
    np.testing.assert_allclose(single.shift, double.shift, atol=1e-4)
    np.testing.assert_allclose(single.value, double.value, rtol=1e-5)
