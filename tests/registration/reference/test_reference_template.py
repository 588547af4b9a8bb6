"""The template: made of what each frame saw, at one level, of frames to be trusted, whatever their order."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, particles
from xcorr_app import estimate_shifts

COUNT = 10
NAMES = ("template", "first")


def path(seed, reach=10.0, count=COUNT):
    return np.random.default_rng(seed).uniform(-reach, reach, (count, 2))


def error(shifts, displacements):
    """Rms error in pixels, a common shift aside."""
    difference = shifts + displacements
    return np.sqrt(((difference - np.median(difference, axis=0)) ** 2).mean())


@pytest.mark.parametrize("seed", [11, 12])
def test_edges_do_not_bend_the_template(xp, seed):
    """A quarter of the view leaves it: replicated edges cost 0.01 to 0.03 px here, the fit of peaks up to 0.005."""
    displacements = path(seed, 12)
    stack = drifting(displacements, shape=(96, 104), seed=seed).astype(np.float32)
    result, pairs = (estimate_shifts(xp.asarray(stack), name, 26, contrast="none") for name in NAMES)
    assert error(result.shifts, displacements) < max(1.2 * error(pairs.shifts, displacements), 0.003)


@pytest.mark.parametrize("name", ["template", "mean"])
def test_gain_and_offset_of_frames_do_not_matter(xp, name):
    displacements = path(21, 3)
    stack = drifting(displacements, shape=(80, 96), seed=21, noisy=0.1, noise_seed=22)
    rng = np.random.default_rng(23)
    gain, level = np.exp(rng.uniform(-1.5, 1.5, COUNT)), rng.uniform(-40, 40, COUNT)
    changed = gain[:, None, None] * stack + level[:, None, None]
    plain, other = (estimate_shifts(xp.asarray(each), name, 12, contrast="none") for each in (stack, changed))
    np.testing.assert_allclose(other.shifts, plain.shifts, atol=2e-4)


@pytest.mark.parametrize("deviation", [0.05, 0.7])
def test_the_order_of_the_frames_does_not_matter(deviation, monkeypatch):
    displacements = path(31, 7)
    stack = drifting(displacements, shape=(112, 120), seed=31, noisy=deviation, noise_seed=32)
    found = estimate_shifts(stack, "template", 20, contrast="none").shifts
    for seed in (0, 1):
        order = np.random.default_rng(seed).permutation(COUNT)
        again = np.empty_like(found)
        again[order] = estimate_shifts(stack[order], "template", 20, contrast="none").shifts
        np.testing.assert_allclose(again - again[0], found - found[0], atol=0.002)
    # Nor which it is begun with, where the first finds few of the others by itself: it is the one with shift zero.
    monkeypatch.setattr("xcorr_app.registration.nuisances.other_reference", lambda *_: 3)
    np.testing.assert_allclose(estimate_shifts(stack, "template", 20, contrast="none").shifts, found, atol=0.002)


def test_frames_that_are_not_trusted_take_no_part():
    displacements = path(51, 4)
    stack = drifting(displacements, shape=(96, 96), seed=51, noisy=0.2, noise_seed=52)
    # Another scene, brighter than all: its peak is one by chance.
    strange = stack.copy()
    strange[4] = 30 * drifting([(0, 0)], shape=(96, 96), seed=99)[0]
    result = estimate_shifts(strange, "template", 12, contrast="none")
    assert not result.trusted[4]
    assert f"mean of {COUNT - 1} aligned frames" in result.reference
    kept = np.arange(COUNT) != 4
    alone = estimate_shifts(stack[kept], "template", 12, contrast="none")
    np.testing.assert_allclose(result.shifts[kept], alone.shifts, atol=2e-3)
    # Where none is trusted shifts count from the frame that the template was begun with.
    assert not estimate_shifts(stack, "template", 12, contrast="none", max_sigma=1e-6).trusted[1:].any()


def test_the_scene_is_that_of_frames_not_of_their_interpolated_noise():
    rms = []
    for seed in range(3):
        displacements = path(seed, 7, 12)
        stack = drifting(displacements, (160, 160), width=0.03, seed=seed, noisy=2.0, noise_seed=seed + 50)
        rms.append([error(estimate_shifts(stack, name, 16, contrast="none").shifts, displacements) for name in NAMES])
    template, first = np.sqrt(np.mean(np.square(rms), axis=0))
    assert template < first


@pytest.mark.parametrize("size", [16, 64])
def test_two_frames_are_compared_with_each_other(size):
    stack = drifting([(0, 0), (1.3, -0.5)], (size, size)) + noise(np.zeros((2, size, size)), 0.1)
    first, template, mean = (estimate_shifts(stack, name, 5) for name in ("first", "template", "mean"))
    np.testing.assert_array_equal(template.shifts, first.shifts)
    np.testing.assert_allclose(mean.shifts, first.shifts - first.shifts.mean(axis=0))
    np.testing.assert_allclose(mean.sigma, first.sigma[[1, 1]] / 2)


@pytest.mark.parametrize(
    ("scene", "deviation", "seed"), [(drifting, 0.2, 0), (drifting, 0.5, 2), (particles, 0.2, 0), (particles, 0.5, 5)]
)
def test_frames_beyond_the_window_are_no_second_copy_of_the_scene(scene, deviation, seed):
    """They lie alike by chance, or where things resemble others: up to 16 of 20 frames were trusted, far off."""
    displacements = np.arange(20)[:, None] * np.array([3.5, -2.9])
    clean = scene(displacements, shape=(90, 100), seed=seed)
    result = estimate_shifts(clean + noise(clean, deviation * clean.std(), seed), "template")
    off = (result.shifts + displacements)[result.trusted]
    assert len(off) >= 8
    assert np.abs(off - np.median(off, axis=0)).max() < 1
