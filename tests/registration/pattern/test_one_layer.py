"""Gains of one scene and what aligned frames leave; two images of a scene over a layer that stands still."""

from dataclasses import replace

import numpy as np
import pytest

import xcorr_app as xc
from benchmarks.board import cases, scenes
from tests.registration.scenes import drifting, noise
from xcorr_app.registration.pattern.one_layer import gains, left_over
from xcorr_app.registration.pattern.pair_layers import PairCells, over_still_layer

COUNT, SHAPE = 7, (149, 163)
PHASE = np.arange(COUNT) / (COUNT - 1)
DRIFT = np.stack([7.3 * np.sin(3.1 * PHASE), 4.6 * (np.cos(4 * PHASE) - 1)], axis=1)


def series(deviation, seed=1, drift=DRIFT):
    return drifting(drift, SHAPE, width=0.05, seed=seed, noisy=deviation, noise_seed=seed + 100)


@pytest.mark.parametrize("deviation", [0.05, 1.0])
@pytest.mark.parametrize("length", [0.1, 1.0])
def test_one_scene_leaves_noise(xp, deviation, length):
    ratios = []
    for seed in range(6):
        found = left_over(xp.asarray(series(deviation, seed, length * DRIFT)), -length * DRIFT)
        assert found.is_little
        ratios.append(found.share / max(found.chance, 1e-4))
    assert np.sqrt(np.mean(np.square(ratios))) < 2


def test_light_that_changes_is_not_left(xp):
    light = (1 + 0.3 * np.sin(5 * PHASE))[:, None, None]
    assert left_over(xp.asarray(series(0.05) * light), -DRIFT).is_little


@pytest.mark.parametrize("kind", ["rows", "columns", "pixels"])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_what_stands_still_is_left(xp, kind, deviation):
    shape = {"rows": (SHAPE[0], 1), "columns": (1, SHAPE[1]), "pixels": SHAPE}[kind]
    still = np.random.default_rng(4).normal(size=shape)
    strength = 0.2
    found = left_over(xp.asarray(series(deviation) + strength * still), -DRIFT)
    assert not found.is_little
    assert found.static == pytest.approx(strength**2, rel=0.5)


def test_gains_of_one_scene(rng):
    scene, bright = rng.normal(size=4000), np.array([0.5, 1.0, 2.0, 0.7])
    frames = bright[:, None] * scene + 0.3 * rng.normal(size=(4, 4000))
    np.testing.assert_allclose(gains(frames @ frames.T), bright / bright.mean(), rtol=0.03)


@pytest.mark.parametrize("scales", [[1, 1, 1e30, 1e-30], [1, 1e150, 1, 1], [1e-160, 1, 1, 1]])
def test_a_frame_brighter_by_all_digits_overflows_nothing(rng, scales):
    frames = np.array(scales)[:, None] * (rng.normal(size=4000) + 0.1 * rng.normal(size=(4, 4000)))
    found = gains(frames @ frames.T)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert found.argmax() in np.flatnonzero(np.array(scales) == max(scales))


VIEW, SHIFTS = (150, 163), np.array([(3.2, -2.4), (-1.8, 3.1), (4.6, 0.7)])


def pair(seed, layer, width=0.08):
    """Two noisy images that differ by a shift, over a still texture, or pixels, of so many times the contrast."""
    scene = drifting(np.stack([np.zeros(2), -SHIFTS[seed]]), VIEW, width=0.07, seed=seed)
    pixels = np.random.default_rng(seed + 99).normal(size=VIEW)
    still = pixels if width is None else drifting(np.zeros((1, 2)), VIEW, width=width, seed=seed + 50)
    return 1000 + 100 * (scene + layer * still + noise(scene, 0.2, seed))


def test_slopes_are_those_of_the_cost():
    cells = PairCells.of(pair(0, 0.7) / 1000 - 1, SHIFTS[0])
    at = cells.begun(SHIFTS[0] + 0.3)
    at = replace(at, s=0.7 * at.s, p=0.8 * at.p)
    slopes = cells.normal(cells.view(at), layer=True, moves=True)[0].sum(axis=1)
    for found, name, along in zip(slopes[[0, 1, 2, 5]], "spde", (1, 1, [1, 0], [0, 1]), strict=True):
        low, high = (replace(at, **{name: getattr(at, name) + step * np.array(along)}) for step in (-1e-5, 1e-5))
        assert found == pytest.approx((cells.view(high).cost - cells.view(low).cost).sum() / 2e-5, rel=1e-3, abs=0.1)


@pytest.mark.parametrize(("layer", "width"), [(0.8, 0.08), (2.0, None)])
@pytest.mark.parametrize("seed", range(3))
def test_a_layer_does_not_hold_the_scene_back(seed, layer, width):
    """By one layer, shifts are held back by a fifth to a half; by single pixels, which no optics draws, by all."""
    found = xc.estimate_shifts(pair(seed, layer, width))
    assert found.trusted.all()
    assert any("fitted together" in note for note in found.notes)
    assert np.abs(found.shifts[1] - SHIFTS[seed]).max() < min(0.25, 4 * found.sigma[1].max())


def test_without_a_layer_nothing_changes():
    found = xc.estimate_shifts(pair(1, 0.0))
    assert found.trusted.all()
    assert not found.notes
    np.testing.assert_allclose(found.shifts[1], SHIFTS[1], atol=0.03)


@pytest.mark.parametrize(("seed", "reference"), [(17, "first"), (5, "template")])
def test_pairs_that_leave_open_which_layer_is_the_scene_do_not_doubt_the_others(seed, reference):
    (series,) = {case.name: case for case in cases.CASES}["pattern/spots/5"].series(seed)
    np.testing.assert_allclose(xc.estimate_shifts(series.frames, reference).applied(), series.shifts, atol=0.1)


@pytest.mark.parametrize("reference", ["first", "template"])
@pytest.mark.parametrize("contrast", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("seed", [5, 7])
def test_a_still_texture_as_strong_as_the_scene_is_not_followed_unseen(seed, contrast, reference):
    """Both fill the picture: which is the scene no picture tells, and the stronger is not taken for it unsaid."""
    drift, shape = np.cumsum(np.random.default_rng(seed).normal(0, 1.8, (7, 2)), axis=0), (150, 163)
    scene, still = drifting(drift, shape, width=0.09, seed=seed), drifting(np.zeros((1, 2)), shape, 0.16, seed + 9)
    found = xc.estimate_shifts(scene + contrast * still + noise(scene, 0.1, seed), reference)
    wrong = np.abs(found.shifts + drift - drift[0]).max(axis=1) > 0.5
    assert not (wrong & found.trusted).any()


@pytest.mark.parametrize("frames", [[0, 7], [0, 13], range(20)])
def test_particles_that_drift_over_a_scene_do_not_move_it(frames):
    found = xc.estimate_shifts(scenes.still(np.random.default_rng(0), "particles", 5.0).frames[frames])
    assert found.trusted.all()
    assert np.abs(found.shifts).max() < 0.1


def test_a_rim_that_stands_still_is_not_followed():
    """A third of the picture, brighter than the scene, which moves by 20 to 30 pixels."""
    series = scenes.framed(np.random.default_rng([3, 0]), 12, 10.0)
    np.testing.assert_allclose(xc.estimate_shifts(series.frames).shifts, series.shifts, atol=0.2)


@pytest.mark.parametrize("size", [64, 200])
def test_lines_and_stripes_that_leave_most_frequencies_empty(size):
    y, x = np.mgrid[:size, :size]
    for image in (y % 2, x == 5, np.sin(x / 3)):
        images = np.float32([image, np.roll(image, 1, axis=0)])
        assert over_still_layer(images, np.array([1.0, 0.0]), np.full(2, 0.1)) is None
