"""Windows matched by the definition, one by one as together."""

import numpy as np
import pytest
from scipy import ndimage

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.field.window_match import Search, Windows, _planes, match_windows

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
    found = np.full((2 * reach + 1,) * 2, np.nan)
    for i, j in np.ndindex(found.shape):
        top, left = y + offset[0] + i - reach + rim, x + offset[1] + j - reach + rim
        other = padded[top : top + size, left : left + size]
        other = other - other.mean()
        if (size_of := np.sqrt((window**2).sum() * (other**2).sum())) > 1e-9:
            found[i, j] = (window * other).sum() / size_of
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reach", [1, 4, 13])
def test_planes_are_the_definition(xp, rng, masked, reach):
    """At the edges too, where images are continued."""
    first, second = (rng.normal(5, 2, SHAPE).astype(np.float32) for _ in range(2))
    first[20:40, 30:50] = second[3:23, 2:22] = 7.0  # nothing to see here, and nothing there
    seen = np.ones(SHAPE, bool)
    if masked:
        seen[:30, :5] = seen[::7] = False
    size, rows, columns = 9, np.array([0, 5, 52, 24, 31, 11]), np.array([0, 40, 65, 35, 3, 20])
    offset = rng.integers(-6, 7, (len(rows), 2))
    place = np.stack([rows, columns], axis=1)
    windows = Windows(xp.asarray(first), place, size, reach, xp.asarray(seen) if masked else None)
    np.testing.assert_array_equal(to_host(windows.flat), np.arange(6) == 3)
    found = to_host(_planes([Search(windows, xp.asarray(second), offset)]))
    for number in (0, 1, 2, 4, 5):
        expected = scores(first, second, place[number], size, reach, offset[number], seen)
        known = np.isfinite(expected)
        np.testing.assert_allclose(found[number][known], expected[known], atol=3e-5)


@pytest.mark.parametrize(("shift", "edge"), [(1, False), (2, True), (3, True)])
@pytest.mark.parametrize("axis", [0, 1])
def test_peaks_at_the_edge_of_the_search_are_told(shift, edge, axis):
    first, _ = textures(4)
    second = np.roll(first, shift, axis)
    windows = Windows(first.astype(np.float32), np.array([[20, 25]]), 21, 2)
    found = match_windows([Search(windows, second.astype(np.float32), np.zeros((1, 2), int))])
    assert found.on_edge.tolist() == [edge]


@pytest.mark.parametrize("scale", [1, 4096])
def test_flat_windows_have_no_shift(scale):
    first, second = (image.astype(np.float32) * scale for image in textures(5))
    first[10:30, 10:30] = 3.0 * scale
    first[12:28:2, 12:28] = np.nextafter(np.float32(3), np.float32(4)) * scale  # nothing but rounding
    found = match_windows(
        [Search(Windows(first, np.array([[12, 12], [35, 40]]), 16, 4), second, np.zeros((2, 2), int))]
    )
    assert np.isnan(found.shift[0]).all()
    assert np.isnan(found.score[0])
    np.testing.assert_allclose(found.shift[1], 0, atol=0.05)
    assert found.on_edge.tolist() == [False, False]
