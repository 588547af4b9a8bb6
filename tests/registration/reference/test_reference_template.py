"""The template: made of what each frame saw, at one level, of frames to be trusted, whatever their order."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, particles
from xcorr_app import ShiftWindow, estimate_shifts
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.placement import moved
from xcorr_app.registration.reference.stack_statistics import aligned_mean_of_others
from xcorr_app.registration.reference.template import _FROM_EDGE, _centre
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.preparation import prepare

COUNT = 10


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
    result = estimate_shifts(xp.asarray(stack), "template", 26, contrast="none")
    pairs = estimate_shifts(xp.asarray(stack), "first", 26, contrast="none")
    assert error(result.shifts, displacements) < max(1.2 * error(pairs.shifts, displacements), 0.003)


@pytest.mark.parametrize("name", ["template", "mean"])
def test_gain_and_offset_of_frames_do_not_matter(xp, name):
    displacements = path(21, 3)
    clean = drifting(displacements, shape=(80, 96), seed=21)
    stack = clean + noise(clean, 0.1, 22)
    rng = np.random.default_rng(23)
    gain, level = np.exp(rng.uniform(-1.5, 1.5, COUNT)), rng.uniform(-40, 40, COUNT)
    changed = gain[:, None, None] * stack + level[:, None, None]
    plain, other = (estimate_shifts(xp.asarray(each), name, 12, contrast="none") for each in (stack, changed))
    np.testing.assert_allclose(other.shifts, plain.shifts, atol=2e-4)


@pytest.mark.parametrize("deviation", [0.05, 0.7])
def test_the_order_of_the_frames_does_not_matter(deviation):
    displacements = path(31, 7)
    clean = drifting(displacements, shape=(112, 120), seed=31)
    stack = clean + noise(clean, deviation, 32)
    found = estimate_shifts(stack, "template", 20, contrast="none").shifts
    for seed in (0, 1):
        order = np.random.default_rng(seed).permutation(COUNT)
        again = np.empty_like(found)
        again[order] = estimate_shifts(stack[order], "template", 20, contrast="none").shifts
        np.testing.assert_allclose(again - again[0], found - found[0], atol=0.002)


def test_frames_that_are_not_trusted_take_no_part():
    displacements = path(51, 4)
    clean = drifting(displacements, shape=(96, 96), seed=51)
    stack = clean + noise(clean, 0.2, 52)
    # Another scene, brighter than all: its peak is one by chance.
    strange = stack.copy()
    strange[4] = 30 * drifting([(0, 0)], shape=(96, 96), seed=99)[0]
    result = estimate_shifts(strange, "template", 12, contrast="none")
    assert not result.trusted[4]
    assert f"mean of {COUNT - 1} aligned frames" in result.reference
    kept = np.arange(COUNT) != 4
    alone = estimate_shifts(stack[kept], "template", 12, contrast="none")
    np.testing.assert_allclose(result.shifts[kept], alone.shifts, atol=2e-3)


def test_the_template_of_a_frame_is_the_mean_of_what_the_others_saw_there(xp):
    """Against the definition, one pixel at a time."""
    shape = (23, 31)
    stack = np.random.default_rng(71).normal(size=(4, *shape))
    shifts = np.array([(0.0, 0.0), (3.25, -2.5), (-4.0, 1.0), (0.4, 5.75)])
    walk, settings = Pass(4, stack[0].size, xp is not np), Settings()
    frames = ArrayFrames(xp.asarray(stack))
    target, known = xp.asarray(stack.mean(axis=0)), xp.ones(shape, dtype=bool)
    template = aligned_mean_of_others(
        Measurement(frames, walk, settings, xp), shifts, np.ones(4, dtype=bool), target, known
    )
    images = template.images(0, prepare(frames.read(0, 4), settings))
    images = images if xp is np else images.get()
    placement = template.placement
    there = moved(stack, shifts)
    for t in range(4):
        total, weights = np.zeros(shape), np.zeros(shape)
        for j in (j for j in range(4) if j != t):
            for y in range(shape[0]):
                for x in range(shape[1]):
                    # Whole pixels are copied; others need a neighbour on either side and two beyond.
                    margin = [0 if s == np.rint(s) else 1 for s in shifts[j]]
                    place = y - shifts[j, 0], x - shifts[j, 1]
                    inside = all(m <= p <= n - 1 - m for p, n, m in zip(place, shape, margin, strict=True))
                    if inside:
                        value = (there[j, y, x] - placement.offset[j]) / placement.gain[j]
                        total[y, x] += placement.weight[j] * value
                        weights[y, x] += placement.weight[j]
        seen = weights > 1e-9
        np.testing.assert_allclose(images[t][seen], total[seen] / weights[seen], atol=1e-9)
        np.testing.assert_allclose(images[t][~seen], (total[seen] / weights[seen]).mean(), atol=1e-9)


def test_the_scene_is_that_of_frames_not_of_their_interpolated_noise():
    rms = []
    for seed in range(3):
        displacements = path(seed, 7, 12)
        clean = drifting(displacements, shape=(160, 160), width=0.03, seed=seed)
        stack = clean + noise(clean, 2.0, seed + 50)
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


NAMES = ("template", "first")


def test_the_centre_is_the_median_or_where_all_frames_are_reached(rng):
    for _ in range(200):
        shifts = rng.uniform(-20, 20, (5, 2)) * rng.uniform(0, 1, 2)
        reach = rng.integers(3, 30, 2)
        window = ShiftWindow(-reach[0], reach[0], -reach[1], reach[1])
        centre = _centre(shifts, window)
        for axis, most in enumerate((window.dy_max, window.dx_max)):
            along, places = shifts[:, axis], np.linspace(-25, 25, 5001)
            farthest = np.abs(along[:, None] - places).max(axis=0)
            reached = farthest <= max(most - _FROM_EDGE, 0)
            if not reached.any():  # as far as possible
                reached = farthest <= farthest.min() + 0.02
            nearest = places[reached][np.abs(places[reached] - np.median(along)).argmin()]
            assert centre[axis] == pytest.approx(nearest, abs=0.04)


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
