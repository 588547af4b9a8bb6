"""Integer peaks, their rivals and the squares cut out around them."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.correlation import peaks
from xcorr_app.correlation.peaks import find_peaks, nearest_of_equals, prefer
from xcorr_app.gpu.runtime.arrays import to_host

EVERYWHERE = (slice(None), slice(None))


def hill(shape, row, column, height, width=1.5):
    y, x = np.indices(shape)
    return height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * width**2))


def found(xp, planes, search=EVERYWHERE):
    all_of_them = find_peaks(xp.asarray(np.asarray(planes, dtype=float)), search)
    fields = (*(getattr(all_of_them, name) for name in ("row", "column", "value", "rival")), all_of_them.ratio())
    return [to_host(field) for field in fields]


def test_highest_element_of_every_plane_and_its_strongest_rival(xp):
    shape = (24, 30)
    planes = np.stack(
        [
            hill(shape, 5, 6, 1.0) + hill(shape, 18, 20, 0.5) + hill(shape, 4, 24, 0.4),
            hill(shape, 20, 3, 2.0) + hill(shape, 3, 25, 1.9),
        ]
    )
    row, column, value, rival, ratio = found(xp, planes)
    np.testing.assert_array_equal(row, [5, 20])
    np.testing.assert_array_equal(column, [6, 3])
    np.testing.assert_allclose(value, [1.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(rival, [0.5, 1.9], atol=1e-6)
    np.testing.assert_allclose(ratio, [2.0, 2.0 / 1.9], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (5, 6), (14, 17)])
def test_one_after_the_other_or_all_at_once_the_same_is_found(rng, monkeypatch, shape):
    """Planes stay in the processor's cache one by one; a device has them all in work."""
    for _ in range(30):
        planes = rng.integers(-3, 4, (5, *shape)) + 0.5 * rng.integers(0, 2, (5, *shape))
        planes[rng.random(planes.shape) < 0.2] = np.nan
        planes[3] = np.nan if rng.random() < 0.2 else planes[3]
        begin = [rng.integers(0, size) for size in shape]
        search = tuple(slice(int(a), int(rng.integers(a, size)) + 1) for a, size in zip(begin, shape, strict=True))
        one_by_one = find_peaks(planes, search)
        with monkeypatch.context() as patch:
            patch.setattr(peaks, "_DILATED", ())
            at_once = find_peaks(planes, search)
        known = np.isfinite(one_by_one.value)
        np.testing.assert_array_equal(at_once.value, one_by_one.value)
        for name in ("row", "column", "rival"):
            np.testing.assert_array_equal(getattr(at_once, name)[known], getattr(one_by_one, name)[known], name)


def test_a_lone_peak_has_no_rival(xp):
    row, column, value, rival, ratio = found(xp, [hill((15, 15), 7, 7, 1.0, width=4.0)])
    assert (row[0], column[0], value[0]) == (7, 7, 1.0)
    assert rival[0] == -np.inf
    assert ratio[0] == np.inf


def test_only_the_search_area_holds_peaks(xp):
    plane = hill((20, 20), 3, 3, 5.0) + hill((20, 20), 12, 13, 1.0)
    row, column, value, _, _ = found(xp, [plane], (slice(8, 17), slice(8, 17)))
    assert (row[0], column[0]) == (12, 13)
    assert value[0] == pytest.approx(1.0, abs=1e-6)


def test_a_rival_on_the_rim_counts_only_along_axes_without_a_rim(xp):
    plane = np.zeros((1, 20))
    plane[0, [4, 12, 19]] = 1.0, 0.5, 0.8
    assert found(xp, [plane])[3][0] == 0.5
    assert found(xp, [plane.T])[3][0] == 0.5


def test_invalid_elements_are_never_the_peak(xp):
    plane = hill((15, 15), 4, 4, 1.0)
    plane[:8, :8] = np.nan
    plane[11, 12] = 0.5
    row, column, value, rival, _ = found(xp, [plane])
    assert (row[0], column[0], value[0]) == (11, 12, 0.5)
    assert np.isfinite(rival[0])


def test_a_plane_without_valid_elements_has_no_peak(xp):
    _, _, value, rival, ratio = found(xp, [np.full((6, 7), np.nan), hill((6, 7), 2, 3, 1.0)])
    assert np.isnan(value[0])
    assert np.isneginf(rival[0])
    assert np.isnan(ratio[0])
    assert value[1] == 1.0


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2)])
def test_small_planes(xp, rng, shape):
    plane = rng.permutation(shape[0] * shape[1]).reshape(shape).astype(float)
    row, column, value, _, _ = found(xp, [plane])
    assert (row[0], column[0]) == np.unravel_index(plane.argmax(), shape)
    assert value[0] == plane.max()


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
    arrays = xp.asarray(planes)
    found = find_peaks(arrays, search)
    assert nearest_of_equals(arrays[1:2], search, zero, find_peaks(arrays[1:2], search)) is None
    peaks = prefer(found, arrays, nearest_of_equals(arrays, search, zero, found))
    row, column, value = (to_host(field) for field in (peaks.row, peaks.column, peaks.value))
    for k, equal in enumerate(places[:4]):
        inside = [place for place in equal if place != (1, 3)]
        nearest = min(inside, key=lambda place: (place[0] - zero[0]) ** 2 + (place[1] - zero[1]) ** 2)
        assert (row[k], column[k]) == nearest
        assert value[k] == planes[(k, *nearest)]
    assert np.isnan(value[4])
