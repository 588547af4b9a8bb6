"""Two images of a scene over a layer that stands still: the shift of the scene."""

from dataclasses import replace

import numpy as np
import pytest

import xcorr_app as xc
from benchmarks.board import cases, scenes
from tests.registration.scenes import drifting, noise
from xcorr_app.registration.pattern.pair_layers import PairCells, over_still_layer

SHAPE, SHIFTS = (150, 163), np.array([(3.2, -2.4), (-1.8, 3.1), (4.6, 0.7)])


def pair(seed, layer, width=0.08):
    """Two noisy images that differ by a shift, over a still texture, or pixels, of so many times the contrast."""
    scene = drifting(np.stack([np.zeros(2), -SHIFTS[seed]]), SHAPE, width=0.07, seed=seed)
    pixels = np.random.default_rng(seed + 99).normal(size=SHAPE)
    still = pixels if width is None else drifting(np.zeros((1, 2)), SHAPE, width=width, seed=seed + 50)
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
    drift = np.cumsum(np.random.default_rng(seed).normal(0, 1.8, (7, 2)), axis=0)
    scene, still = drifting(drift, SHAPE, width=0.09, seed=seed), drifting(np.zeros((1, 2)), SHAPE, 0.16, seed + 9)
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
