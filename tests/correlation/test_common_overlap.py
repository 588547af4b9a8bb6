"""Correlation around a peak over the overlap of the peak, against its definition: crop both, then correlate."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from xcorr_app.correlation.common_overlap import on_common_overlap

PEAKS = np.array([(0, 0), (3, -2), (-4, 0), (0, 5), (-1, -1), (7, 6), (1, -9), (14, 2)])


def pair(left, right, dy, dx):
    """What lies on each other at a shift."""
    h, w = left.shape
    return (
        left[max(0, dy) : h + min(0, dy), max(0, dx) : w + min(0, dx)],
        right[max(0, -dy) : h + min(0, -dy), max(0, -dx) : w + min(0, -dx)],
    )


def score(left, right):
    a, b = left - left.mean(), right - right.mean()
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def around(left, right, dy=0, dx=0, radius=1):
    steps = range(-radius, radius + 1)
    return np.array([[score(*pair(left, right, dy + i, dx + j)) for j in steps] for i in steps])


def moments(images, peaks, radius, *, of_right):
    """Sums and sums of squares about the mean (2, n, 2 r + 1, 2 r + 1) of what lies on the other image of a pair."""
    steps = range(-radius, radius + 1)
    found = np.zeros((2, len(peaks), len(steps), len(steps)))
    for k, (dy, dx) in enumerate(peaks):
        image = images[min(k, len(images) - 1)]
        for i in steps:
            for j in steps:
                part = pair(image, image, dy + i, dx + j)[of_right]
                found[:, k, i + radius, j + radius] = part.sum(), part.size and ((part - part.mean()) ** 2).sum()
    return found


def measured(left, right, peaks, radius=1):
    lefts = np.broadcast_to(left, right.shape)
    near = np.array([around(a, b, *peak, radius) for a, b, peak in zip(lefts, right, peaks, strict=True)])
    sums = moments(left, peaks, radius, of_right=False), moments(right, peaks, radius, of_right=True)
    return near, on_common_overlap(near, left, right, peaks, *sums)


@pytest.mark.parametrize("references", [1, len(PEAKS)])
@pytest.mark.parametrize("radius", [1, 2, 5])
def test_equals_the_correlation_of_the_crops(rng, references, radius):
    left, right = rng.normal(size=(references, 25, 31)), rng.normal(size=(len(PEAKS), 25, 31))
    right[:, :3] += 4
    left[:, :, -2:] -= 6
    near, found = measured(left, right, PEAKS, radius)
    lefts = np.broadcast_to(left, right.shape)
    crops = [pair(a, b, *peak) for a, b, peak in zip(lefts, right, PEAKS, strict=True)]
    np.testing.assert_allclose(found, [around(*crop, radius=radius) for crop in crops], atol=1e-12)
    np.testing.assert_array_equal(found[0], near[0])
    assert np.abs(found - near)[1:].max(axis=(1, 2)).min() > 1e-3


@pytest.mark.parametrize("radius", [1, 7])
def test_single_precision_is_as_exact_as_the_images(rng, radius):
    left, right = (rng.uniform(-1, 1, size=(n, 61, 67)).astype(np.float32) for n in (1, len(PEAKS)))
    _, single = measured(left, right, PEAKS, radius)
    _, double = measured(left.astype(np.float64), right.astype(np.float64), PEAKS, radius)
    np.testing.assert_allclose(single, double, atol=2e-7)


@pytest.mark.parametrize("radius", [1, 3, 4, 5])
@pytest.mark.parametrize("references", [1, 28])
def test_no_bit_depends_on_which_frames_share_a_call(rng, references, radius):
    left, right = rng.normal(size=(references, 57, 45)), rng.normal(size=(28, 57, 45))
    peaks = rng.integers(-9, 10, (28, 2))
    shape = (28, 2 * radius + 1, 2 * radius + 1)
    near, sums = rng.uniform(-0.9, 0.9, shape), rng.uniform(900, 1000, (4, *shape))

    def found(part):
        of = left[part] if references > 1 else left
        return on_common_overlap(near[part], of, right[part], peaks[part], sums[:2, part], sums[2:, part])

    together = found(slice(None))
    assert (together != near).any()
    for count in (1, 2, 5):
        ends = [0, *np.sort(rng.choice(np.arange(1, 28), count, replace=False)).tolist(), 28]
        apart = [found(slice(*each)) for each in pairwise(ends)]
        np.testing.assert_array_equal(np.concatenate(apart), together)
    apart = [found(slice(at, at + 1)) for at in range(28)]
    np.testing.assert_array_equal(np.concatenate(apart), together)
