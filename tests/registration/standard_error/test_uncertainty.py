"""Standard errors are as large as errors are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import convolve

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation.weighting import RADIUS
from xcorr_app.errors import ArgumentError
from xcorr_app.registration.standard_error import reference_slopes, slope_tiles, uncertainty
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes, quartic_of
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.standard_error.uncertainty import peak_shapes


def errors(snr, seeds, shape=(128, 144), width=0.05, **options):
    """Errors and standard errors of single frames against a reference as noisy, (seeds, 2) each."""
    found, sigma = [], []
    for seed in range(seeds):
        drift = np.array([(0, 0), np.random.default_rng(seed).uniform(-6, 6, 2)])
        clean = drifting(drift, shape=shape, width=width, seed=seed)
        result = estimate_shifts(clean + noise(clean, 1 / snr, seed + 1), "first", 10, contrast="none", **options)
        found.append((result.shifts + drift)[1])
        sigma.append(result.sigma[1])
    return np.array(found), np.array(sigma)


@pytest.mark.share(3)
@pytest.mark.parametrize("snr", [5.0, 1.0, 0.3])
def test_errors_are_as_large_as_their_standard_errors_say(snr):
    error, sigma = errors(snr, 60)
    ratio = np.abs(error / sigma)
    assert np.mean(ratio < 1) == pytest.approx(0.68, abs=0.12)
    assert np.mean(ratio < 2) > 0.89


@pytest.mark.share(3)
@pytest.mark.parametrize(("width", "largest"), [(0.05, 0.002), (0.15, 0.01), (0.2, 0.02)])
def test_without_noise_the_error_is_of_interpolation(width, largest):
    drift = np.random.default_rng(5).uniform(-6, 6, (24, 2)) * (np.arange(24) > 0)[:, None]
    result = estimate_shifts(drifting(drift, shape=(251, 261), width=width), "first", 10, contrast="none")
    error, sigma = (result.shifts + drift)[1:], result.sigma[1:]
    assert 0.35 < np.sqrt(np.mean(error**2)) / np.sqrt(np.mean(sigma**2)) < 1.4
    assert (sigma < largest).all()


def test_the_fourth_derivative_of_a_peak(rng):
    y, x = np.mgrid[-2:3, -2:3]
    bend, quartic = rng.uniform(0.05, 0.2, (2, 3)), rng.uniform(-0.02, 0.02, (2, 3))
    logarithm = sum(
        -b[:, None, None] / 2 * a**2 + q[:, None, None] / 24 * a**4
        for b, q, a in zip(bend, quartic, (y, x), strict=True)
    )
    np.testing.assert_allclose(quartic_of(0.3 * np.exp(logarithm)), -(quartic / bend).T, rtol=1e-9)
    unknown = np.full((2, 5, 5), np.nan)
    unknown[1] = -1
    assert np.isnan(quartic_of(unknown)).all()


def by_definition(reference, frame, kernel, peak, shift, clean):
    """Scatter as the module's docstring defines it, in float64, pixel by pixel."""
    g = np.asarray(reference, float) - np.mean(reference)
    white = (1 - clean) * g.var()
    rim = reference_slopes._MARGIN
    wide = np.pad(g, rim, mode="edge")
    smoothed = wide if kernel is None else convolve(wide, kernel, mode="constant")
    along, across = np.array([[1, 0, -1]]) / 2, np.array([[1], [1], [1]]) / 3
    slope = [convolve(smoothed, along.T * across.T), convolve(smoothed, across * along)]
    s, *slope, dy, dx = (
        im[rim:-rim, rim:-rim] for im in (smoothed, *slope, convolve(wide, along.T), convolve(wide, along))
    )
    plain = dy, dx
    tiles, places = slope_tiles.Tiles.of(g.shape), []
    for top in tiles.first_rows:
        for left in tiles.left + tiles.shape[1] * np.arange(tiles.columns):
            begin, end = np.array([top, left]), np.array([top, left]) + tiles.shape
            if (begin - peak >= 0).all() and (end - peak <= g.shape).all():
                places.append((slice(begin[0], end[0]), slice(begin[1], end[1])))
    moved = np.roll(np.asarray(frame, float), peak, (0, 1))
    inside = np.zeros(g.shape, bool)
    for place in places:
        inside[place] = True
    f, g = moved - moved[inside].mean(), g - g[inside].mean()
    residual = f - (s * f)[inside].sum() / ((s * g)[inside].sum() - inside.sum() * white) * (
        g + sum((shift - peak)[i] * plain[i] for i in (0, 1))
    )
    t = np.array([[(w * residual)[place].sum() for w in slope] for place in places])
    bends = np.array([[[(w * d)[place].sum() for d in plain] for w in slope] for place in places])
    rest = t - bends @ np.linalg.solve(bends.sum(axis=0), t.sum(axis=0))
    pixels = np.prod(np.array(g.shape) - np.abs(peak))
    scatter = rest.T @ rest * len(places) / (len(places) - 3)
    return scatter / (inside.sum() * pixels * f[inside].var() * g[inside].var())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(101, 119), (237, 131), (401, 97)])
def test_scatter_is_as_defined(xp, rng, shape, weighted):
    peak = np.array([(3, -7), (-9, 4)])
    shift = peak + rng.uniform(-0.5, 0.5, (2, 2))
    images = drifting([(0, 0), *-shift], shape=shape, width=0.06) + rng.normal(size=(3, *shape))
    y, x = np.mgrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
    kernel = np.exp(-(y**2 + x**2) / 6) if weighted else None
    near = np.tile([[0.8, 0.9, 0.8], [0.9, 1, 0.9], [0.8, 0.9, 0.8]], (2, 1, 1))
    slopes = ReferenceSlopes(xp.asarray(images[:1]), kernel, np.array([0.6]))
    found = peak_shapes(slopes, xp.asarray(images[1:]), peak, shift, near)
    for i in range(2):
        expected = by_definition(images[0], images[i + 1], kernel, peak[i], shift[i], 0.6)
        edges = np.diag((uncertainty.AT_EDGES / np.array(shape)) ** 2)
        expected += found.hessian[i] @ edges @ found.hessian[i]
        np.testing.assert_allclose(found.scatter[i], expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_frames_as_stored_are_as_certain_as_standardised_ones(xp, rng, dtype):
    images = (
        1000 + 100 * drifting([(0, 0), (2.3, -4.4)], shape=(130, 140)) + 50 * rng.normal(size=(2, 130, 140))
    ).astype(dtype)
    floats = images.astype(np.float32) - images.mean(axis=(1, 2), keepdims=True)
    near = np.tile([[0.8, 0.9, 0.8], [0.9, 1, 0.9], [0.8, 0.9, 0.8]], (1, 1, 1))
    slopes = ReferenceSlopes(xp.asarray(floats[:1].astype(np.float32)), None, np.ones(1))
    peak, shift = np.array([(-2, 4)]), np.array([(-2.3, 4.4)])
    one, other = (
        peak_shapes(slopes, xp.asarray(frames), peak, shift, near).scatter for frames in (images[1:], floats[1:])
    )
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_noise_that_is_stronger_where_the_scene_is_bright_counts_as_such(rng):
    ratios = []
    for seed in range(40):
        drift = np.array([(0, 0), rng.uniform(-4, 4, 2)])
        scene = np.exp(1.2 * drifting(drift, shape=(128, 128), seed=seed))
        result = estimate_shifts(rng.poisson(20 * scene).astype(np.uint16), "first", 8, contrast="none")
        ratios.append((result.shifts + drift)[1] / result.sigma[1])
    assert 0.5 < np.mean(np.abs(ratios) < 1) < 0.85


def test_a_frame_is_sure_to_lie_on_itself(xp):
    clean = drifting([(0, 0), (3, 1)], shape=(128, 128))
    result = estimate_shifts(xp.asarray(clean + noise(clean, 0.5)), "first", 8)
    assert result.sigma[0].max() < 0.005 < result.sigma[1].min()


@pytest.mark.share(4)
@pytest.mark.parametrize("verify", ["none", 2, "all"])
@pytest.mark.parametrize("reference", ["mean", "template", "previous"])
def test_every_reference_has_standard_errors(reference, verify):
    drift = np.array([(0, 0), (0.5, 0.2), (1, 0.4), (1.4, 0.8)])
    clean = drifting(drift, shape=(96, 96))
    result = estimate_shifts(clean + noise(clean, 0.3), reference, 6, verify=verify)
    assert np.isfinite(result.sigma).all()
    assert (result.sigma < 0.1).all()
    if reference == "previous":
        assert (np.diff(result.sigma, axis=0) >= 0).all()


def test_images_of_too_few_tiles_have_none():
    result = estimate_shifts(drifting([(0, 0), (1, 1)], shape=(24, 24)), "first", 4)
    assert np.isnan(result.sigma).all()
    assert "uncertain" not in result.flags[1]


def test_shifts_less_certain_than_asked_for_are_flagged():
    clean = drifting([(0, 0), (3, 1)], shape=(128, 128))
    stack = clean + noise(clean, 2.0)
    sigma = estimate_shifts(stack, "first", 8).sigma[1].max()
    for limit, flagged in ((0.9 * sigma, True), (1.1 * sigma, False)):
        assert ("uncertain" in estimate_shifts(stack, "first", 8, max_sigma=limit).flags[1]) == flagged
    with pytest.raises(ArgumentError, match="max_sigma"):
        estimate_shifts(stack, "first", 8, max_sigma=0)


def shapes(height, curvature):
    """Peaks of some heights and curvatures, all of whose slopes scatter alike."""
    hessian = -np.asarray(curvature, dtype=float)[:, None, None] * np.eye(2)
    scatter, height = np.broadcast_to(1e-4 * np.eye(2), hessian.shape), np.asarray(height, dtype=float)
    return PeakShapes(scatter, hessian, height, np.zeros((height.size, 2)))


def test_a_curvature_that_is_mostly_noise_is_replaced_by_that_of_the_stack():
    noisy = shapes([0.1, 0.1, 0.1, 0.1, 0.2], [0.1, 0.1, 0.1, 0.02, 0.2])
    found = noisy.standard_errors(np.full(5, 10.0))
    np.testing.assert_allclose(found, np.outer([0.1, 0.1, 0.1, 0.1, 0.05], [1, 1]), rtol=1e-3)
    own = noisy.standard_errors(np.array([10, 10, 10, 50, 10.0]))
    np.testing.assert_allclose(own[3], 0.5, rtol=1e-3)
    # A saddle is no peak by itself, but one of a stack's whose peaks are noisy.
    noisy.hessian[1, 0, 0] = 0.1
    assert np.isinf(noisy.standard_errors(np.full(5, 50.0))[1]).all()
    np.testing.assert_allclose(noisy.standard_errors(np.full(5, 10.0))[1], 0.1, rtol=1e-3)


def test_of_a_few_peaks_or_what_is_not_known_nothing_is_typical():
    few = shapes([0.1, 0.1, 0.1], [0.1, 0.1, 0.02])
    np.testing.assert_allclose(few.standard_errors(np.full(3, 10.0))[2], 0.5, rtol=1e-3)
    assert np.isnan(PeakShapes.empty(3).standard_errors(np.full(3, np.nan))).all()


@pytest.fixture
def pair(xp):
    """A noisy reference, frames that lie elsewhere, and where: two of them the same."""
    places = np.array([(0, 0), (12, -3), (-9, 14), (12, -3)])
    clean = drifting(-places, shape=(400, 410), width=0.05)
    images = (clean + noise(clean, 0.5)).astype(np.float32)
    images[3] = images[1]
    images -= images.mean(axis=(1, 2), keepdims=True)
    near = np.tile([[0.8, 0.9, 0.8], [0.9, 1, 0.9], [0.8, 0.9, 0.8]], (4, 1, 1))
    return xp.asarray(images), places, near


@pytest.mark.parametrize("weighted", [False, True])
def test_frames_with_a_reference_each_are_as_certain_as_with_one_for_all(xp, pair, weighted):
    images, peak, near = pair
    kernel = None
    if weighted:
        y, x = np.mgrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
        kernel = np.exp(-(y**2 + x**2) / 8)
    each = ReferenceSlopes(xp.concatenate([images[:1]] * 4), kernel, np.full(4, 0.8))
    one, own = (
        peak_shapes(slopes, images, peak, peak + 0.2, near)
        for slopes in (ReferenceSlopes(images[:1], kernel, np.array([0.8])), each)
    )
    np.testing.assert_allclose(own.scatter, one.scatter, rtol=1e-3, atol=1e-15)
    np.testing.assert_allclose(one.scatter[3], one.scatter[1], rtol=1e-9)
    np.testing.assert_array_equal(own.hessian, one.hessian)


def test_a_part_of_a_large_frame_tells_as_much(monkeypatch, pair):
    images, peak, near = pair

    def standard_errors():
        slopes = ReferenceSlopes(images[:1], None, np.ones(1))
        shapes = peak_shapes(slopes, images, peak, peak, near)
        return slopes.factors[0].size, shapes.standard_errors(np.full(4, 99.0))

    size, part = standard_errors()
    monkeypatch.setattr(slope_tiles, "_CHOSEN", ((0, slice(None)),))
    all_pixels, whole = standard_errors()
    assert size < 0.4 * all_pixels
    np.testing.assert_allclose(part[1:], whole[1:], rtol=0.35)


def test_a_single_bright_thing_is_looked_at_wherever_it_is(xp, rng):
    y, x = np.mgrid[:400, :90]
    rows = []
    for row in (50, 90, 150, 215):
        image = 30 * np.exp(-((y - row) ** 2 + (x - 40) ** 2) / 18) + rng.normal(size=y.shape)
        clean = np.array([1 - 1 / image.var()])
        slopes = ReferenceSlopes(xp.asarray(image[None]), None, clean)
        tiles = slopes.tiles
        assert any(first <= row < first + tiles.shape[0] for first in tiles.first_rows)
        rows.append(len(tiles.first_rows))
    assert max(rows) == 12
    even = drifting([(0, 0)], shape=(400, 401))
    assert len(ReferenceSlopes(xp.asarray(even), None, np.ones(1)).tiles.first_rows) == 3
