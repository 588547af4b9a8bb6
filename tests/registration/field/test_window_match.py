"""Many small windows compared at once, against the definition in float64; and refined, as sure as is said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.field import window_match
from xcorr_app.registration.field.window_icgn import refine_windows
from xcorr_app.registration.field.window_match import Windows, match_windows

SHAPE = (61, 74)


def textures(seed, shift=(0.0, 0.0), shape=SHAPE):
    """An image, and what shows it displaced."""
    image = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=[n + 40 for n in shape]), 1.5)
    image /= image.std()
    inner = (slice(20, 20 + shape[0]), slice(20, 20 + shape[1]))
    return image[inner], ndimage.shift(image, shift, order=5, mode="reflect")[inner]


def scores(first, second, place, size, reach, offset, seen):
    """Of one window at all shifts: what it holds within `seen`, against wholly covered parts of the second image."""
    y, x = place
    part = seen[y : y + size, x : x + size] != 0
    window = first[y : y + size, x : x + size].astype(float)
    window = np.where(part, window - window[part].mean(), 0.0)
    rim = 200
    padded = np.pad(second.astype(float), rim, mode="edge")
    found = np.full((2 * reach + 3,) * 2, np.nan)
    for i, j in np.ndindex(found.shape):
        top, left = y + offset[0] + i - reach - 1 + rim, x + offset[1] + j - reach - 1 + rim
        other = padded[top : top + size, left : left + size]
        other = other - other.mean()
        if (size_of := np.sqrt((window**2).sum() * (other**2).sum())) > 1e-9:
            found[i, j] = (window * other).sum() / size_of
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reach", [1, 4, 13])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_planes_are_the_definition(xp, rng, monkeypatch, masked, reach, at_once):
    """At the edges too, where images are continued; whether spectra are kept or taken again, and for some windows."""
    monkeypatch.setattr(window_match, "_PIXELS_AT_ONCE", at_once)
    first, second = (rng.normal(5, 2, SHAPE).astype(np.float32) for _ in range(2))
    first[20:40, 30:50] = second[3:23, 2:22] = 7.0  # nothing to see here, and nothing there
    seen = np.ones(SHAPE, bool)
    if masked:
        seen[:30, :5] = seen[::7] = False
    size, rows, columns = 9, np.array([0, 5, 52, 24, 31, 11]), np.array([0, 40, 65, 35, 3, 20])
    offset = rng.integers(-6, 7, (len(rows), 2))
    windows = Windows(xp.asarray(first), rows, columns, size, reach, xp.asarray(seen) if masked else None)
    np.testing.assert_array_equal(to_host(windows.flat), np.arange(6) == 3)
    for which in (slice(None), np.array([5, 0, 2])):
        numbers = np.arange(6)[which]
        for _ in range(2):
            found = to_host(windows.planes(xp.asarray(second), offset[which], which))
            for plane, number in zip(found, numbers, strict=True):
                if number == 3:
                    continue
                place = rows[number], columns[number]
                expected = scores(first, second, place, size, reach, offset[number], seen)
                known = np.isfinite(expected)
                np.testing.assert_allclose(plane[known], expected[known], atol=3e-5)


@pytest.mark.parametrize("back", [False, True])
def test_peaks_are_where_the_second_image_shows_the_window(xp, back):
    shift = (0.3, -0.4) if back else (2.3, -3.4)
    first, second = (xp.asarray(image.astype(np.float32)) for image in textures(3, shift))
    rows, columns = (axis.ravel() for axis in np.meshgrid([10, 20, 30], [10, 26, 40], indexing="ij"))
    windows = Windows(first, rows, columns, 20, 5)
    other = Windows(second, rows, columns, 20, 5) if back else None
    offset = np.zeros((9, 2), int) if back else np.tile([1, -1], (9, 1))
    found = match_windows(windows, second, offset, back=other)
    np.testing.assert_allclose(found.shift, np.tile(shift, (9, 1)), atol=0.12)
    assert (found.score > 0.9).all()
    assert not found.on_edge.any()
    some = match_windows(windows, second, offset[:2], np.array([7, 1]), back=other)
    np.testing.assert_allclose(some.shift, found.shift[[7, 1]], atol=1e-6)


@pytest.mark.parametrize(
    ("reach", "shift", "edge"), [(0, 0, False), (0, 1, True), (2, 1, False), (2, 2, True), (2, 3, True)]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_peaks_at_the_edge_of_the_search_are_told(reach, shift, edge, axis):
    first, _ = textures(4)
    second = np.roll(first, shift, axis)
    windows = Windows(first.astype(np.float32), np.array([20]), np.array([25]), 21, reach)
    found = match_windows(windows, second.astype(np.float32), np.zeros((1, 2), int))
    assert found.on_edge.tolist() == [edge]


@pytest.mark.parametrize("scale", [1, 4096])
def test_flat_windows_have_no_shift(scale):
    first, second = (image.astype(np.float32) * scale for image in textures(5))
    first[10:30, 10:30] = 3.0 * scale
    first[12:28:2, 12:28] = np.nextafter(np.float32(3), np.float32(4)) * scale  # nothing but rounding
    found = match_windows(Windows(first, np.array([12, 35]), np.array([12, 40]), 16, 4), second, np.zeros((2, 2), int))
    assert np.isnan(found.shift[0]).all()
    assert np.isnan(found.score[0])
    np.testing.assert_allclose(found.shift[1], 0, atol=0.05)
    assert found.on_edge.tolist() == [False, False]


@pytest.mark.parametrize("masked", [False, True])
def test_windows_are_refined_to_where_they_went(xp, masked):
    """Through a linear motion, from a guess half a pixel off; errors are as large as they are said to be."""
    shape, linear, shift, size = (150, 160), np.array([[0.012, -0.02], [0.015, 0.008]]), np.array([1.3, -0.7]), 24
    image = ndimage.gaussian_filter(np.random.default_rng(6).normal(size=[n + 60 for n in shape]), 1.5)
    splines = ndimage.spline_filter(image / image.std(), 5)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    places = np.stack([y, x]) - np.array([75.0, 80.0])[:, None, None]
    displacement = np.tensordot(linear, places, 1) + shift[:, None, None]
    rng = np.random.default_rng(7)
    # The second image shows at x + d(x) what the first shows at x.
    first, second = (
        ndimage.map_coordinates(splines, np.stack([y, x]) + 30 + moved, order=5, prefilter=False)
        + rng.normal(0, 0.05, shape)
        for moved in (displacement, 0.0)
    )
    rows, columns = (axis.ravel() for axis in np.meshgrid(np.arange(8, 120, 12), np.arange(8, 128, 12), indexing="ij"))
    middle = np.stack([rows, columns], axis=1) + (size - 1) / 2
    truth = (middle - [75, 80]) @ linear.T + shift
    counts = np.ones(shape, bool)
    if masked:
        first[60:64], counts[60:64] = 0.0, False
    guess, slopes = np.add(truth, (0.4, -0.3)), np.zeros((len(rows), 2, 2))
    given = [xp.asarray(each) for each in (first, second, counts)]
    found = refine_windows(*given[:2], rows, columns, size, guess, slopes, counts=given[2] if masked else None)
    assert found.settled.mean() > (0.9 if masked else 0.97)
    error = (found.shift - truth)[found.settled]
    assert np.abs(error).max() < 0.05
    ratio = np.sqrt(np.mean((error / found.sigma[found.settled]) ** 2))
    assert 0.8 < ratio < 1.25
    assert (found.score[found.settled] > 0.99).all()
    still = refine_windows(*given[:2], rows, columns, size, truth, np.tile(linear, (len(rows), 1, 1)), steps=0)
    np.testing.assert_array_equal(still.shift, truth)
    far = refine_windows(*given[:2], rows[:5], columns[:5], size, truth[:5] + 15, slopes[:5])
    assert not far.settled.any()
    np.testing.assert_array_equal(far.shift, truth[:5] + 15)
