"""Shifts on fine textures by phase ramps, against true shifts and the Cramer-Rao bound."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.registration.measuring.phase_ramp import refine

SHAPE = (187, 201)
"""Odd, and no multiple of the cells."""


def moved(blur, deviation, seed=0, count=9):
    """Frames of one periodic scene, cut far from where it wraps round, and what must be added to land on the first."""
    rng = np.random.default_rng(seed)
    scene = rng.normal(size=(320, 320))
    scene = gaussian_filter(scene, blur, mode="wrap") if blur else scene
    spectrum = np.fft.rfft2(scene / scene.std())
    fy, fx = np.fft.fftfreq(320)[:, None], np.fft.rfftfreq(320)[None]
    shifts = rng.uniform(-5, 5, (count, 2))
    shifts[0] = 0
    turned = [spectrum * np.exp(2j * np.pi * (fy * y + fx * x)) for y, x in shifts]
    frames = np.stack([np.fft.irfft2(each, s=(320, 320)) for each in turned])[:, 60 : 60 + SHAPE[0], 70 : 70 + SHAPE[1]]
    return (frames + rng.normal(0, deviation, frames.shape)).astype(np.float32), shifts


def bound(blur, deviation):
    """Standard error along an axis, at least, of the shift between two noisy images of a Gaussian texture."""
    f = np.fft.fftfreq(512)
    fy, fx = np.meshgrid(f, f, indexing="ij")
    power = np.exp(-4 * np.pi**2 * blur**2 * (fy**2 + fx**2))
    snr = power / power.mean() / deviation**2
    density = (2 * np.pi * fy) ** 2 * snr**2 / (1 + 2 * snr)
    return 1 / np.sqrt(density.mean() * SHAPE[0] * SHAPE[1])


@pytest.mark.parametrize(("blur", "deviation"), [(0, 0.2), (0, 1.0), (0.5, 0.2), (0.7, 1.0), (2, 0.2)])
def test_errors_are_near_the_bound_and_known(xp, blur, deviation):
    """Of twelve scenes, since the noise of a first frame is in all shifts of its series."""
    errors, sigma = [], []
    for seed in range(12):
        frames, shifts = moved(blur, deviation, seed, count=4)
        rough = shifts + np.random.default_rng(seed).uniform(-0.3, 0.3, shifts.shape)
        found = refine(xp.asarray(frames[:1]), xp.asarray(frames[1:]), rough[1:])
        errors.append(found.shift - shifts[1:])
        sigma.append(found.sigma)
    # An overlap is smaller than a frame, and a window smaller still.
    assert np.sqrt(np.mean(np.square(errors))) < 1.7 * bound(blur, deviation)
    assert 0.7 < np.sqrt(np.mean(np.square(np.array(errors) / sigma))) < 1.5


def test_what_is_found_of_a_frame_depends_on_no_other(rng):
    frames, shifts = moved(0.5, 0.5)
    together = refine(frames[:1], frames[1:], shifts[1:])
    for n in range(1, len(frames)):
        alone = refine(frames[:1], frames[n : n + 1], shifts[n : n + 1])
        np.testing.assert_array_equal(alone.shift[0], together.shift[n - 1])
        np.testing.assert_array_equal(alone.sigma[0], together.sigma[n - 1])


def test_each_frame_with_a_reference_of_its_own(xp):
    frames, shifts = moved(0.5, 0.3)
    lefts, rights = xp.asarray(np.repeat(frames[:1], 8, axis=0)), xp.asarray(frames[1:])
    np.testing.assert_allclose(
        refine(lefts, rights, shifts[1:]).shift, refine(lefts[:1], rights, shifts[1:]).shift, atol=1e-6
    )


def test_without_a_start_or_with_little_overlap_a_shift_stays(xp):
    frames, shifts = moved(0.5, 0.3)
    start = shifts[1:4].copy()
    start[0], start[1] = np.nan, (160.3, 0)
    found = refine(xp.asarray(frames[:1]), xp.asarray(frames[1:4]), start)
    np.testing.assert_array_equal(found.shift[:2], start[:2])
    assert np.isnan(found.sigma[:2]).all()
    assert np.isfinite(found.sigma[2]).all()


@pytest.mark.parametrize("blur", [0, 0.5, 0.7])
def test_a_series_on_a_fine_texture(xp, blur):
    frames, shifts = moved(blur, 0.2)
    series = xp.asarray(frames)
    found = estimate_shifts(series, "first", 8, subpixel="phase", verify="all", contrast="none")
    fitted = estimate_shifts(series, "first", 8, subpixel="quadratic", verify="none", contrast="none")
    error, of_fit = (np.sqrt(np.mean((each.shifts - shifts)[1:] ** 2)) for each in (found, fitted))
    assert error < 2.5 * bound(blur, 0.2)
    assert error < 0.7 * of_fit
    assert found.flags == ((),) * len(frames)
    assert np.nanmax(found.difference) < 1e-3
    assert np.abs(found.shifts[0]).max() < 1e-6


@pytest.mark.parametrize(("blur", "unit"), [(0, 1.0), (0.5, 1e30), (0.7, 1e-30)])
def test_fine_textures_are_refined_by_default_and_others_are_not(xp, blur, unit):
    """In any unit, be its square beyond what float32 holds."""
    frames, shifts = moved(blur, 0.2)
    found = estimate_shifts(xp.asarray(frames * np.float32(unit)), "first", 8)
    error = (found.shifts - shifts)[1:]
    assert np.sqrt(np.mean(error**2)) < 2.5 * bound(blur, 0.2)
    assert np.sqrt(np.mean((error / found.sigma[1:]) ** 2)) < 2
    assert found.trusted.all()
    smooth, _ = moved(3, 0.2)
    fits = [estimate_shifts(xp.asarray(smooth), "first", 8, subpixel=way).shifts for way in ("gaussian", "phase")]
    assert np.abs(fits[0] - fits[1]).max() > 1e-6


@pytest.mark.parametrize("axis", [1, 2])
def test_lines_with_offsets_of_their_own_pull_nowhere(xp, axis):
    """They stand still, and are as strong as the scene."""
    frames, shifts = moved(0.7, 0.1)
    lines = np.random.default_rng(1).normal(size=SHAPE[2 - axis])
    striped = frames + (lines if axis == 1 else lines[:, None]).astype(np.float32)
    found = refine(xp.asarray(striped[:1]), xp.asarray(striped[1:]), shifts[1:] + 0.2)
    plain = refine(xp.asarray(frames[:1]), xp.asarray(frames[1:]), shifts[1:] + 0.2)
    np.testing.assert_allclose(found.shift, plain.shift, atol=1e-4)
    np.testing.assert_allclose(found.sigma, plain.sigma, rtol=0.01)


@pytest.mark.parametrize(("width", "most"), [(0.12, 0.006), (0.07, 0.03)])
def test_a_pair_over_columns_and_haze_is_right_to_its_standard_error(xp, width, most):
    errors, sigma = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        place = rng.uniform(9, 14, 2) * rng.choice([-1, 1], 2)
        scene = drifting([(0, 0), place], (220, 234), width, seed=seed)
        haze = drifting([(0, 0), (1, 2)], (220, 234), 0.015, seed=seed + 50)
        stack = scene + 1.5 * haze + 0.7 * rng.normal(size=234) + rng.normal(0, 0.1, scene.shape)
        result = estimate_shifts(xp.asarray(stack), max_shift=20)
        assert result.trusted[1]
        errors.append(result.shifts[1] + place)
        sigma.append(result.sigma[1])
    assert np.sqrt(np.mean(np.square(errors))) < most
    assert 0.5 < np.sqrt(np.mean(np.divide(errors, sigma) ** 2)) < 1.7
