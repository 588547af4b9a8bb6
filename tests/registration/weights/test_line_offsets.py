"""Rows and columns with offsets of their own are found, and levelled for measuring."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.weights.line_offsets import LevelledFrames

SHAPE = (151, 162)


@pytest.mark.parametrize("transposed", [False, True])
def test_lines_of_a_scanner_do_not_bend_the_shifts(xp, transposed):
    path = walk(4, 16, 1.0)
    rng = np.random.default_rng(8)
    lines = rng.normal(0, 2, (16, SHAPE[0], 1)) + rng.normal(0, 3, (16, 1, 1)) * np.linspace(-1, 1, SHAPE[1])
    stack = (drifting(path, SHAPE, width=0.06, noisy=0.2) + lines).astype(np.float32)
    if transposed:
        stack, path = stack.transpose(0, 2, 1).copy(), path[:, ::-1]
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    np.testing.assert_allclose(result.shifts, -path, atol=0.06)
    assert result.trusted.all()
    assert any(note.startswith("Columns" if transposed else "Rows") for note in result.notes)


def test_columns_that_stand_still_do_not_pin_a_slow_drift(xp):
    path = np.arange(24)[:, None] * np.array([0.02, -0.03])
    stack = drifting(path, SHAPE, width=0.06, noisy=1.0) + np.random.default_rng(3).normal(0, 0.8, SHAPE[1])
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    assert (result.shifts + path).std(axis=0).max() < 0.06


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_stripes_that_hold_a_scene_that_moves_by_rows(seed):
    """Broad, and shimmering, as the shadows of a light sheet: by the shifts that they hold, the scene hardly moves."""
    rng, steps = np.random.default_rng(seed), np.linspace(0, 1, 24)
    path = np.column_stack([1.6 * steps, -1.5 * steps]) + rng.normal(0, 0.1, (24, 2))
    rows = gaussian_filter1d(rng.normal(size=(25, SHAPE[0])), 1.5, axis=1)
    stripes = np.exp((0.3 * rows[:1] + 0.12 * rows[1:]) / rows.std())[..., None]
    stack = rng.poisson(60 * np.exp(0.5 * drifting(path, SHAPE, width=0.06, seed=seed)) * stripes).astype(np.uint16)
    result = estimate_shifts(stack, "first", 20)
    assert result.trusted.all()
    # Shadows scale the scene: with offsets alone taken off, shifts are a tenth too short (0.13 px).
    assert np.sqrt(np.mean((result.shifts + path - path[0]) ** 2)) < 0.02
    assert any(note.startswith("Rows") for note in result.notes)


@pytest.mark.parametrize("deviation", [0.05, 2.0])
def test_a_scene_without_such_lines_is_left_alone(deviation):
    notes = estimate_shifts(drifting(walk(4, 16, 1.0), SHAPE, width=0.06, noisy=deviation), "first", 20).notes
    assert not any("offsets of their own" in note for note in notes)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("shadows", [True, False])
def test_lines_in_shadow_get_their_contrast_back(axis, shadows, xp):
    """And lines that are brighter for another reason keep it; those without values say nothing."""
    scene = drifting(np.zeros((1, 2)), SHAPE, width=0.06)
    lines = np.random.default_rng(1).uniform(0.6, 1.4, (3, *SHAPE)).take([0], axis)
    stack = np.concatenate([(10 + scene) * lines if shadows else 10 * lines + scene, scene])
    stack[:, -20:] = np.nan
    level = LevelledFrames(ArrayFrames(xp.asarray(stack)), axis, "still").read(0, 2).frames
    assert xp.corrcoef(level[:, :-20].reshape(2, -1))[0, 1] > 0.99


def test_lines_of_the_scene_that_move_with_it_are_kept():
    path = np.round(walk(4, 16, 2.0))
    layers = np.random.default_rng(2).normal(0, 1, 400)
    clean = drifting(path, SHAPE, width=0.06)
    clean += np.stack([layers[100 - dy : 100 - dy + SHAPE[0], None] for dy in path[:, 0].astype(int)])
    result = estimate_shifts(clean + noise(clean, 0.3), "first", 20)
    assert not any("offsets of their own" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts, -path, atol=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_columns_do_not_pin_a_pair(seed):
    """Two frames tell, too: the pair was pinned at rest, without a flag."""
    path = np.array([[0, 0], [3.3, -4.6]])
    frames = drifting(path, SHAPE, width=0.06, seed=seed + 1, noisy=0.2, noise_seed=seed)
    found = estimate_shifts(frames + np.random.default_rng(seed).normal(0, 1.5, SHAPE[1]), "first", 20)
    np.testing.assert_allclose(found.shifts, -path, atol=0.06)
    assert found.trusted.all()
    assert any(note.startswith("Columns") for note in found.notes)
