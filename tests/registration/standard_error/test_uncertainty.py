"""Standard errors are as large as errors are."""

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.correlation.weighting import RADIUS
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.standard_error.uncertainty import peak_shapes

NEAR = np.array([[[0.8, 0.9, 0.8], [0.9, 1, 0.9], [0.8, 0.9, 0.8]]])


@pytest.mark.share(3)
@pytest.mark.parametrize(("width", "largest"), [(0.05, 0.002), (0.15, 0.01), (0.2, 0.02)])
def test_without_noise_the_error_is_of_interpolation(width, largest):
    drift = np.random.default_rng(5).uniform(-6, 6, (24, 2)) * (np.arange(24) > 0)[:, None]
    result = estimate_shifts(drifting(drift, shape=(251, 261), width=width), "first", 10, contrast="none")
    error, sigma = (result.shifts + drift)[1:], result.sigma[1:]
    assert 0.35 < np.sqrt(np.mean(error**2)) / np.sqrt(np.mean(sigma**2)) < 1.4
    assert (sigma < largest).all()


@pytest.mark.share(4)
@pytest.mark.parametrize("verify", ["none", 2, "all"])
@pytest.mark.parametrize("reference", ["mean", "template", "previous"])
def test_every_reference_has_standard_errors(reference, verify):
    drift = np.array([(0, 0), (0.5, 0.2), (1, 0.4), (1.4, 0.8)])
    result = estimate_shifts(drifting(drift, shape=(96, 96), noisy=0.3), reference, 6, verify=verify)
    assert np.isfinite(result.sigma).all()
    assert (result.sigma < 0.1).all()
    if reference == "previous":
        assert (np.diff(result.sigma, axis=0) >= 0).all()


def test_images_of_too_few_tiles_have_none():
    result = estimate_shifts(drifting([(0, 0), (1, 1)], shape=(24, 24)), "first", 4)
    assert np.isnan(result.sigma).all()
    assert "uncertain" not in result.flags[1]


def test_a_frame_is_sure_to_lie_on_itself_and_others_less_certain_than_asked_for_are_flagged(xp):
    stack = xp.asarray(drifting([(0, 0), (3, 1)], shape=(128, 128), noisy=0.5))
    of_itself, (least, sigma) = np.sort(estimate_shifts(stack, "first", 8).sigma)
    assert of_itself.max() < 0.005 < least
    for limit, flagged in ((0.9 * sigma, True), (1.1 * sigma, False)):
        assert ("uncertain" in estimate_shifts(stack, "first", 8, max_sigma=limit).flags[1]) == flagged


@pytest.mark.parametrize("weighted", [False, True])
def test_frames_with_a_reference_each_are_as_certain_as_with_one_for_all(xp, weighted):
    """A noisy reference, and frames that lie elsewhere, two of them the same."""
    peak, kernel = np.array([(0, 0), (12, -3), (-9, 14), (12, -3)]), None
    images = drifting(-peak, shape=(400, 410), width=0.05, noisy=0.5).astype(np.float32)
    images[3] = images[1]
    images = xp.asarray(images - images.mean(axis=(1, 2), keepdims=True))
    if weighted:
        y, x = np.mgrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
        kernel = np.exp(-(y**2 + x**2) / 8)
    each = ReferenceSlopes(xp.concatenate([images[:1]] * 4), kernel, np.full(4, 0.8))
    one, own = (
        peak_shapes(slopes, images, peak, peak + 0.2, np.tile(NEAR, (4, 1, 1)))
        for slopes in (ReferenceSlopes(images[:1], kernel, np.array([0.8])), each)
    )
    np.testing.assert_allclose(own.scatter, one.scatter, rtol=1e-3, atol=1e-15)
    np.testing.assert_allclose(one.scatter[3], one.scatter[1], rtol=1e-9)
    np.testing.assert_array_equal(own.hessian, one.hessian)


def test_a_single_bright_thing_is_looked_at_wherever_it_is(xp, rng):
    y, x = np.mgrid[:400, :90]
    rows = []
    for row in (50, 90, 150, 215):
        image = 30 * np.exp(-((y - row) ** 2 + (x - 40) ** 2) / 18) + rng.normal(size=y.shape)
        tiles = ReferenceSlopes(xp.asarray(image[None]), None, np.array([1 - 1 / image.var()])).tiles
        assert any(first <= row < first + tiles.shape[0] for first in tiles.first_rows)
        rows.append(len(tiles.first_rows))
    assert max(rows) == 12
    even = drifting([(0, 0)], shape=(400, 401))
    assert len(ReferenceSlopes(xp.asarray(even), None, np.ones(1)).tiles.first_rows) == 3
