"""References that leave the measured frame out equal those made by hand for one frame at a time."""

import numpy as np
import pytest
from scipy.ndimage import fourier_shift, gaussian_filter

from tests.registration.scenes import UnreliableFrames, drifting, rms
from xcorr_app import estimate_shifts
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.reference.stack_statistics import mean_of_others
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.prefilter import Prefilter
from xcorr_app.registration.stack.preparation import prepare


def noisy_stack(count, dtype="float64"):
    return drifting(
        np.random.default_rng(3).uniform(-4, 4, (count, 2)), shape=(40, 44), contrast=20, offset=100, noisy=5
    ).astype(dtype)


def at_one_level(stack):
    """Frames of zero mean and unit deviation, float64."""
    values = stack.astype(float)
    return (values - values.mean(axis=(1, 2), keepdims=True)) / values.std(axis=(1, 2), keepdims=True)


def against_the_mean(frames, xp=np, **options):
    """All frames, each against the mean of the others as they lie: as a template may be begun."""
    settings = Settings(max_shift=8, weighting="none", **options)
    measurement = Measurement(frames, Pass(frames.count, 40 * 44, on_device=xp is not np), settings, xp)
    return measurement.run(mean_of_others(measurement), np.zeros(frames.count, dtype=bool))


def by_hand(stack, t, image, **options):
    """Frame t against one image, measured alone."""
    return estimate_shifts(stack[t : t + 1], np.asarray(image, dtype=float), 8, weighting="none", **options)


@pytest.mark.share(4)
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_each_frame_meets_the_statistic_of_the_others(xp, count, dtype):
    stack = noisy_stack(count, dtype)
    result = against_the_mean(ArrayFrames(xp.asarray(stack)), xp)
    for t in range(count):
        others = np.delete(at_one_level(stack), t, axis=0)
        alone = by_hand(stack, t, others.mean(axis=0))
        np.testing.assert_allclose(result.shifts[t], alone.shifts[0], atol=2e-3)
        np.testing.assert_allclose(result.score[t], alone.score[0], atol=1e-5)


def test_unreadable_frames_are_not_among_the_others():
    stack = noisy_stack(6)
    frames = UnreliableFrames(stack, {1: "damaged"})
    result = against_the_mean(frames)
    for t in (0, 2, 5):
        alone = by_hand(stack, t, np.delete(at_one_level(stack), [1, t], axis=0).mean(axis=0))
        np.testing.assert_allclose(result.shifts[t], alone.shifts[0], atol=2e-3)


def test_the_prefilter_comes_before_the_statistic():
    stack = noisy_stack(5)
    result = against_the_mean(ArrayFrames(stack), prefilter=Prefilter.parse("median:3"))
    filtered = np.stack([_median_of_nine(frame) for frame in stack])
    for t in range(5):
        alone = by_hand(filtered, t, np.delete(at_one_level(filtered), t, axis=0).mean(axis=0))
        np.testing.assert_allclose(result.score[t], alone.score[0], atol=1e-5)


def _median_of_nine(frame):
    padded = np.pad(frame, 1, mode="symmetric")
    height, width = frame.shape
    return np.median([padded[i : i + height, j : j + width] for i in range(3) for j in range(3)], axis=0)


@pytest.mark.parametrize("size", [1, 4, 9])
def test_means_leave_out_frames_averaged_with_the_one_measured(xp, size):
    stack = noisy_stack(9)
    settings, frames = Settings(smooth_time=3), ArrayFrames(xp.asarray(stack))
    mean = mean_of_others(Measurement(frames, Pass(9, stack[0].size, on_device=False), settings, xp))
    for start in range(0, 9, size):
        stop = min(start + size, 9)
        images = mean.images(start, prepare(frames.read(start, stop), settings))
        images = images if xp is np else images.get()
        for t, image in zip(range(start, stop), images, strict=True):
            others = [j for j in range(9) if abs(j - t) > 2]
            np.testing.assert_allclose(image, at_one_level(stack)[others].mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("seed", [2, 5, 6, 7])
def test_a_small_clean_scene_has_a_mean(seed):
    spectrum = np.fft.fft2(gaussian_filter(np.random.default_rng(seed).normal(size=(64, 64)), 2, mode="wrap"))
    frames = [np.fft.ifft2(fourier_shift(spectrum, (0.7 * t, -0.4 * t))).real for t in range(6)]
    assert np.isfinite(estimate_shifts(np.array(frames, np.float32), "mean").shifts).all()


@pytest.mark.parametrize(("step", "deviation"), [(0.2, 0.5), (2.0, 0.5), (4.0, 0.05)])
@pytest.mark.parametrize("count", [2, 5, 12])
def test_shifts_to_the_mean_count_from_the_mean_place_however_far_frames_drift(xp, count, step, deviation):
    """A frame has no part in its mean, which so lies on its other side: shifts were n / (n - 1) too large, or more."""
    places = (np.arange(count) - (count - 1) / 2)[:, None] * step * np.array([0.8, -0.6])
    result = estimate_shifts(xp.asarray(drifting(places, shape=(128, 128), seed=count, noisy=deviation)), "mean", 32)
    errors = result.shifts + places
    assert result.trusted.all()
    np.testing.assert_allclose(result.shifts.mean(axis=0), 0, atol=1e-9)
    assert rms(errors) < 2 * np.sqrt((result.sigma**2).mean()) + 0.003
    assert rms(errors) < 0.03


def test_faint_frames_are_found_by_their_mean_where_one_of_them_shows_too_little():
    places = np.random.default_rng(5).normal(size=(60, 2))
    stack = drifting(places, shape=(96, 96), width=0.02, seed=5, noisy=2.5)
    result = estimate_shifts(stack, "mean", 16)
    assert "begun with their mean" in result.reference
    assert result.trusted.sum() > max(40, estimate_shifts(stack, "template", 16).trusted.sum())
    errors = result.shifts + places
    assert rms((errors - errors[result.trusted].mean(axis=0))[result.trusted]) < 0.5


def test_previous_is_the_sum_of_steps(xp):
    stack = noisy_stack(6)
    result = estimate_shifts(xp.asarray(stack), "previous", 8, weighting="none")
    steps = [estimate_shifts(stack[t : t + 1], stack[max(t - 1, 0)], 8, weighting="none").shifts[0] for t in range(6)]
    np.testing.assert_allclose(result.shifts, np.cumsum(steps, axis=0), atol=2e-3)


def test_previous_follows_drift_farther_than_the_window_of_one_step():
    displacements = np.stack([3.0 * np.arange(8), -2.0 * np.arange(8)], axis=1)
    result = estimate_shifts(drifting(displacements), "previous", 5, verify="all")
    np.testing.assert_allclose(result.shifts, -displacements, atol=0.15)
    np.testing.assert_allclose(result.fft_shifts, result.shifts, atol=1e-3)
    assert result.flags == ((),) * 8


def test_the_template_beats_the_first_frame_on_noisy_frames():
    drift = np.stack([np.linspace(0, 6, 40), np.linspace(0, -5, 40)], axis=1)
    stack = drifting(drift, shape=(96, 96), width=0.06, noisy=4.0)
    error = {}
    for reference in ("first", "template"):
        difference = estimate_shifts(stack, reference, 12).shifts + drift
        error[reference] = np.sqrt(((difference - difference.mean(axis=0)) ** 2).mean())
    assert error["template"] < 0.85 * error["first"]


def test_frames_at_the_edge_of_the_window_stay_out_of_the_template():
    displacements = np.array([(0, 0), (1, -1), (2, 1), (30, 0), (-1, 2)], dtype=float)
    result = estimate_shifts(drifting(displacements), "template", 4)
    kept = [0, 1, 2, 4]
    np.testing.assert_allclose(result.shifts[kept], -displacements[kept], atol=0.15)
    assert set(result.flags[3]) & {"edge", "low-score", "ambiguous"}


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
@pytest.mark.parametrize("max_shift", [12, 13, 30])
def test_of_equal_shifts_on_a_lattice_the_smallest(xp, dtype, max_shift):
    y, x = np.mgrid[:96, :84]
    displacements = [(0, 0), (2, -1), (1, 1), (0, 0)]
    waves = [np.cos(np.pi * (x - dx) / 6) * np.cos(np.pi * (y - dy) / 6) for dy, dx in displacements]
    stack = (100 + 50 * np.array(waves)).astype(dtype)
    for reference in ("first", "previous", "pairs:2"):
        result = estimate_shifts(xp.asarray(stack), reference, max_shift, weighting="none")
        # Half a period along both axes is a period too.
        np.testing.assert_allclose(result.shifts, -np.array(displacements), atol=0.02)
