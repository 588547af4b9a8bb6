"""Sub-pixel fits, values over one overlap, and weighting by noise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from xcorr_app import cross_correlate
from xcorr_app.correlation.common_overlap import on_common_overlap
from xcorr_app.correlation.subpixel import METHODS, radius_of, refine
from xcorr_app.correlation.weighting import (
    LAGS,
    RADIUS,
    _scene_spectrum,
    noise_share,
    smooth,
    weighting_kernel,
)
from xcorr_app.gpu.runtime.arrays import to_host

REFINING = [method for method in METHODS if method != "none"]
OFFSETS = np.array([(0, 0), (0.3, -0.4), (-0.5, 0.5), (0.11, 0.02), (0.49, 0.49), (-0.25, -0.33)])
GAUSSIAN_ERROR = {"gaussian": 1e-6, "dft": 0.02, "quadratic": 0.05, "parabolic": 0.05}
"""Pixels, for a round Gaussian of deviation 2; the polynomials do not have its shape."""


def grid(method):
    steps = np.arange(-radius_of(method), radius_of(method) + 1.0)
    return np.meshgrid(steps, steps, indexing="ij")


def gaussians(method, offsets, deviation=2.0):
    y, x = grid(method)
    return np.stack([np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * deviation**2)) for dy, dx in offsets])


def refined(xp, values, method, upsample=100):
    return [to_host(part) for part in refine(xp.asarray(values), method, upsample)]


@pytest.mark.parametrize("method", REFINING)
def test_gaussian_peak(xp, method):
    offset, height = refined(xp, gaussians(method, OFFSETS), method)
    np.testing.assert_allclose(offset, OFFSETS, atol=GAUSSIAN_ERROR[method])
    np.testing.assert_allclose(height, 1.0, atol=0.01)


@pytest.mark.parametrize("upsample", [1, 2, 3, 10, 20, 1000])
def test_upsampling_never_makes_the_position_coarse(xp, upsample):
    offset, _ = refined(xp, gaussians("dft", OFFSETS), "dft", upsample)
    np.testing.assert_allclose(offset, OFFSETS, atol=0.06 if upsample < 10 else 0.02)


@pytest.mark.parametrize("method", ["quadratic", "parabolic"])
def test_quadratic_surface_is_exact(xp, method):
    y, x = grid(method)
    dy, dx, top = 0.27, -0.41, 0.8
    values = top - 0.11 * (y - dy) ** 2 - 0.07 * (x - dx) ** 2
    offset, height = refined(xp, values[None], method)
    np.testing.assert_allclose(offset, [(dy, dx)], atol=1e-12)
    np.testing.assert_allclose(height, [top], atol=1e-12)


def test_gaussian_is_exact_for_an_inclined_gaussian_of_any_width(xp):
    y, x = grid("gaussian")
    for scale in (0.3, 0.05, 0.004):
        a, b = y - 0.31, x + 0.22
        values = 0.7 * np.exp(-scale * (a**2 + 1.7 * b**2 + 0.9 * a * b))
        np.testing.assert_allclose(refined(xp, values[None], "gaussian")[0], [(0.31, -0.22)], atol=1e-6)


def test_a_gaussian_is_fitted_where_all_nine_values_stand_above_the_noise(xp):
    """The logarithm of less than a fiftieth of the peak is mostly noise: the polynomial is fitted instead."""
    wide, narrow = (gaussians("gaussian", [(0.1, -0.1)], deviation) for deviation in (0.6, 0.5))
    np.testing.assert_allclose(refined(xp, wide, "gaussian")[0], [(0.1, -0.1)], atol=1e-6)
    by_polynomial = refined(xp, narrow, "quadratic")[0]
    assert np.abs(by_polynomial - (0.1, -0.1)).max() > 1e-3
    np.testing.assert_allclose(refined(xp, narrow, "gaussian")[0], by_polynomial, atol=1e-12)


@pytest.mark.parametrize("method", REFINING)
def test_without_a_neighbour_along_an_axis_the_position_stays_there(xp, method):
    values = gaussians(method, [(0.3, 0.2), (0.3, 0.2)])
    radius = radius_of(method)
    values[0, radius - 1, radius] = np.nan
    offset, _ = refined(xp, values, method)
    assert offset[0, 0] == 0
    parabola = refined(xp, values[:, radius - 1 : radius + 2, radius - 1 : radius + 2], "parabolic")[0]
    assert offset[0, 1] == parabola[0, 1] != 0
    np.testing.assert_allclose(offset[1], (0.3, 0.2), atol=GAUSSIAN_ERROR[method])


@pytest.mark.parametrize("method", METHODS)
def test_without_any_neighbour_the_peak_itself_is_the_answer(xp, method):
    values = np.full_like(gaussians(method, [(0.3, 0.2)]), np.nan)
    radius = radius_of(method)
    values[0, radius, radius] = 0.7
    offset, height = refined(xp, values, method)
    np.testing.assert_array_equal(offset[0], [0, 0])
    assert height[0] == 0.7


@settings(max_examples=80, deadline=None)
@given(
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 2**32 - 1),
    upsample=st.sampled_from([1, 2, 7, 20, 100]),
    slope=st.floats(-5, 5),
)
def test_the_position_never_leaves_the_neighbouring_pixels(method, seed, upsample, slope):
    y, _ = grid(method)
    values = np.random.default_rng(seed).normal(size=(3, *y.shape)) + slope * y
    offset, height = refine(values, method, upsample)
    assert np.isfinite(offset).all()
    assert np.isfinite(height).all()
    assert np.abs(offset).max() <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_plateaus_pits_and_zeros_have_no_better_position(xp, method):
    y, _ = grid(method)
    values = np.stack([np.full(y.shape, 0.5), np.zeros(y.shape), np.full(y.shape, -0.3)])
    offset, height = refined(xp, values, method)
    np.testing.assert_allclose(offset, 0.0, atol=1e-9)
    np.testing.assert_allclose(height, values[:, 0, 0], atol=1e-9)


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


def autocorrelation(share, width=4.0):
    """A smooth scene of Gaussian autocorrelation in white noise that makes up `share` of the variance."""
    lags = np.arange(-LAGS, LAGS + 1)
    scene = (1 - share) * np.exp(-(lags[:, None] ** 2 + lags[None, :] ** 2) / (2 * width**2))
    scene[LAGS, LAGS] += share
    return scene


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("width", [2.5, 4.0, 8.0])
def test_share_of_noise(share, width):
    assert noise_share(autocorrelation(share, width)) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.6)])
def test_the_kernel_is_that_of_hannan_and_thomson(shares):
    """S / (S (Nl + Nr) + Nl Nr), the noise being counted in units of the scene's variance."""
    power = _scene_spectrum(autocorrelation(0.0), 0.0)
    left, right = (share / (1 - share) for share in shares)
    weight = power / (power * (left + right) + left * right)
    lags = np.arange(-RADIUS, RADIUS + 1)
    waves = np.exp(2j * np.pi * np.outer(lags, np.arange(64)) / 64)
    expected = (waves @ weight @ waves.T).real * np.outer(*(np.cos(np.pi * lags / (2 * RADIUS + 2)) ** 2,) * 2)
    np.testing.assert_allclose(
        weighting_kernel(*map(autocorrelation, shares)), expected / expected[RADIUS, RADIUS], atol=0.02
    )


def test_unknown_autocorrelations_are_not_weighted():
    known, unknown = autocorrelation(0.5), np.full((2 * LAGS + 1,) * 2, np.nan)
    assert weighting_kernel(unknown, known) is weighting_kernel(known, unknown) is None


def test_frequencies_of_which_a_scene_without_noise_holds_nothing_have_no_weight():
    smooth_scene = np.broadcast_to(1 - (np.arange(-LAGS, LAGS + 1) / 15) ** 2, (2 * LAGS + 1,) * 2)
    assert np.isfinite(weighting_kernel(smooth_scene, 0.5 * smooth_scene + np.pad([[0.5]], LAGS))).all()


def test_invalid_shifts_stay_invalid_and_spread_nowhere(xp, rng):
    planes = rng.normal(size=(1, 2 * RADIUS + 6, 2 * RADIUS + 6))
    planes[0, RADIUS + 2, RADIUS + 3] = np.nan
    result = to_host(smooth(xp.asarray(planes), weighting_kernel(*(autocorrelation(0.5),) * 2)))
    assert np.argwhere(np.isnan(result[0])).tolist() == [[2, 3]]


@pytest.mark.parametrize("snr", [0.0, 0.2])
def test_images_that_show_no_scene_are_not_weighted(snr):
    # What is left of an autocorrelation without the noise is chance, which would be enhanced as if it were the scene.
    for seed in range(30):
        image = np.random.default_rng(seed).normal(size=(64, 64))
        scene = gaussian_filter(np.random.default_rng(seed + 100).normal(size=image.shape), 2)
        image += snr * scene / scene.std()
        found = cross_correlate(image, image, max_shift=LAGS)
        assert (weighting_kernel(found, found, image.size) is None) == (snr == 0)
