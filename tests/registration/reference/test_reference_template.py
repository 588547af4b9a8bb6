"""The template: made of what each frame saw, at one level, of frames to be trusted, whatever their order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import ShiftWindow, estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.measuring.placement import Placement, coverage, covered_part, fitted, moved
from xcorr_app.registration.reference.stack_statistics import Statistics, _sums
from xcorr_app.registration.reference.template import _FROM_EDGE, _centre, _median, frames_to_average
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


@pytest.mark.parametrize("name", ["template", "mean", "median"])
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


def test_the_first_frame_has_shift_zero():
    displacements = path(41, 4)
    clean = drifting(displacements, seed=41)
    result = estimate_shifts(clean + noise(clean, 0.3), "template", 12)
    np.testing.assert_array_equal(result.shifts[0], 0)
    np.testing.assert_allclose(result.shifts, displacements[0] - displacements, atol=0.1)


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


def test_where_few_are_trusted_frames_inside_the_window_take_part():
    """Not those at its edge, whose shift is as far as the window reaches."""
    measured = SimpleNamespace(
        score=np.array([1.0, 0.5, 0.4, np.nan, 0.6]),
        on_edge=np.array([False, False, True, False, False]),
        trusted=lambda _: np.array([True, False, False, False, False]),
    )
    np.testing.assert_array_equal(frames_to_average(measured, Settings()), [True, True, False, False, True])


def test_of_a_mean_too():
    displacements = path(61, 1.5)
    clean = drifting(displacements, shape=(96, 96), seed=61)
    stack = clean + noise(clean, 0.2, 62)
    strange = stack.copy()
    strange[3] = drifting([(0, 0)], shape=(96, 96), seed=98)[0]
    for name in ("mean", "median"):
        result = estimate_shifts(strange, name, 12, contrast="none")
        assert "frames to be trusted (9)" in result.reference
        kept = np.arange(COUNT) != 3
        alone = estimate_shifts(stack[kept], name, 12, contrast="none")
        np.testing.assert_allclose(result.shifts[kept], alone.shifts, atol=2e-3)


def test_the_template_of_a_frame_is_the_mean_of_what_the_others_saw_there(xp):
    """Against the definition, one pixel at a time."""
    shape = (23, 31)
    stack = np.random.default_rng(71).normal(size=(4, *shape))
    shifts = np.array([(0.0, 0.0), (3.25, -2.5), (-4.0, 1.0), (0.4, 5.75)])
    walk, settings = Pass(4, stack[0].size, xp is not np), Settings()
    frames = ArrayFrames(xp.asarray(stack))
    statistics = Statistics(frames, walk, settings, xp)
    target, known = xp.asarray(stack.mean(axis=0)), xp.ones(shape, dtype=bool)
    template = statistics.aligned_mean_of_others(shifts, np.ones(4, dtype=bool), target, known)
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


def test_one_frame_does_not_move_the_middle_of_all():
    """A frame whose shift jumps from one round to the next drags no other along; one without any says nothing."""
    changes = np.array([(0.0, 1.0), (0.2, 1.2), (40.0, -30.0), (np.nan, np.nan), (0.1, 1.1)])
    np.testing.assert_allclose(_median(changes), (0.15, 1.05))
    np.testing.assert_array_equal(_median(changes[3:4]), 0)


def test_sums_of_many_frames_keep_their_digits(xp, rng):
    """One after the other in float32 they would be off by a hundred thousandth."""
    values = rng.uniform(1, 2, (20_000, 2, 3)).astype(np.float32)
    ones, zeros = np.ones(20_000), np.zeros(20_000)
    total, weights = _sums(xp.asarray(values), Placement(np.zeros((20_000, 2)), ones, zeros, ones))
    np.testing.assert_allclose(to_host(total), values.sum(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_array_equal(to_host(weights), 20_000)


def test_frames_are_brought_to_the_level_of_an_image(xp, rng):
    scene = drifting([(0, 0)], shape=(64, 72), seed=81)[0]
    gain, offset = np.array([0.5, 2.0, -1.0]), np.array([3.0, -7.0, 0.0])
    frames = gain[:, None, None] * scene + offset[:, None, None]
    known = np.ones(scene.shape, dtype=bool)
    known[:, 50:] = False
    broken = np.where(known, scene, 1e6)
    placement, _ = fitted(xp.asarray(frames), np.zeros((3, 2)), xp.asarray(broken), xp.asarray(known))
    np.testing.assert_allclose(placement.gain[:2], gain[:2], rtol=1e-9)
    np.testing.assert_allclose(placement.offset[:2], offset[:2], atol=1e-9)
    np.testing.assert_allclose(placement.weight, [1, 1, 0], atol=1e-9)


def test_the_part_that_is_measured_is_covered():
    shifts = np.array([(6.5, -3.0), (2.0, 4.25), (-8.0, -1.0), (-2.5, 2.0), (0.5, 0.5)])
    ones = np.ones(len(shifts))
    placement = Placement(shifts, ones, 0 * ones, ones)
    part = covered_part(placement, (60, 70), 2, (5, 5))
    rows, columns = coverage(placement, (60, 70))
    count = (rows > 0).T.astype(int) @ (columns > 0).astype(int)
    assert count.min() < 2 <= count[part].min()
    assert count[part].size > 0.75 * count.size
    assert covered_part(Placement(0 * shifts, ones, 0 * ones, ones), (60, 70), 2, (5, 5)) is None
    # Where nothing covers it, most is measured all the same.
    far = covered_part(Placement(shifts + 100, ones, 0 * ones, ones), (60, 70), 2, (5, 5))
    assert far[0].stop - far[0].start == 42


def test_one_frame_unlike_the_others_does_not_decide_on_the_weights():
    """Frames far from a first frame full of noise are measured as if that were like the others."""
    displacements = path(91, 4)
    clean = drifting(displacements, shape=(128, 128), seed=91)
    stack = clean + noise(clean, 0.6, 92)
    spoiled = stack.copy()
    spoiled[0] += noise(clean[0], 4.0, 93)
    found, alike = (estimate_shifts(each, 5, 12, contrast="none") for each in (spoiled, stack))
    plain = estimate_shifts(stack, 5, 12, contrast="none", weighting="none")
    change = np.abs(found.shifts - alike.shifts)[1:].max()
    assert change < 0.15 * np.abs(alike.shifts - plain.shifts)[1:].max()


def test_the_scene_is_that_of_frames_not_of_their_interpolated_noise():
    rms = []
    for seed in range(3):
        displacements = path(seed, 7, 12)
        clean = drifting(displacements, shape=(160, 160), width=0.03, seed=seed)
        stack = clean + noise(clean, 2.0, seed + 50)
        rms.append([error(estimate_shifts(stack, name, 16, contrast="none").shifts, displacements) for name in NAMES])
    template, first = np.sqrt(np.mean(np.square(rms), axis=0))
    assert template < first


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
