"""Rows and columns with offsets of their own are found, and levelled for measuring."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d, shift

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.artefacts.line_offsets import LevelledFrames
from xcorr_app.registration.stack.frames import ArrayFrames

SHAPE = (151, 162)


def drift(step, seed=4, count=16):
    path = np.cumsum(np.random.default_rng(seed).normal(0, step, (count, 2)), axis=0)
    return path - path[0]


@pytest.mark.parametrize("transposed", [False, True])
def test_lines_of_a_scanner_do_not_bend_the_shifts(xp, transposed):
    path = drift(1.0)
    rng = np.random.default_rng(8)
    clean = drifting(path, SHAPE, width=0.06)
    lines = rng.normal(0, 2, (16, SHAPE[0], 1)) + rng.normal(0, 3, (16, 1, 1)) * np.linspace(-1, 1, SHAPE[1])
    stack = (clean + noise(clean, 0.2) + lines).astype(np.float32)
    if transposed:
        stack, path = stack.transpose(0, 2, 1).copy(), path[:, ::-1]
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    np.testing.assert_allclose(result.shifts, -path, atol=0.06)
    assert result.trusted.all()
    assert any(note.startswith("Columns" if transposed else "Rows") for note in result.notes)


def test_columns_that_stand_still_do_not_pin_a_slow_drift(xp):
    path = np.arange(24)[:, None] * np.array([0.02, -0.03])
    clean = drifting(path, SHAPE, width=0.06)
    stack = clean + noise(clean, 1.0) + np.random.default_rng(3).normal(0, 0.8, SHAPE[1])
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    error = result.shifts + path
    assert np.sqrt(np.mean((error - error.mean(axis=0)) ** 2)) < 0.06


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_stripes_that_hold_a_scene_that_moves_by_rows(seed):
    """Broad, and shimmering, as the shadows of a light sheet: by the shifts that they hold, the scene hardly moves."""
    rng, steps = np.random.default_rng(seed), np.linspace(0, 1, 24)
    path = np.column_stack([1.6 * steps, -1.5 * steps]) + rng.normal(0, 0.1, (24, 2))
    clean = np.exp(0.5 * drifting(path, SHAPE, width=0.06, seed=seed))

    def stripes(spread, count=1):
        rows = gaussian_filter1d(rng.normal(size=(count, SHAPE[0])), 1.5, axis=1)
        return np.exp(spread * rows / rows.std())[..., None]

    stack = rng.poisson(60 * clean * stripes(0.3) * stripes(0.12, 24)).astype(np.uint16)
    result = estimate_shifts(stack, "first", 20)
    error = (result.shifts + path)[result.trusted]
    assert len(error) == 24
    assert (error - error.mean(axis=0)).std() < 0.1
    assert any(note.startswith("Rows") for note in result.notes)


def test_layers_that_hardly_move_are_measured_once(monkeypatch):
    """Broad rows of a scene that is nearly still may be stripes that hold it: a few levelled frames tell."""
    rng = np.random.default_rng(3)
    path = drift(0.03, count=40)
    canvas = gaussian_filter1d(rng.normal(size=SHAPE[0] + 32), 2)
    layers = np.stack([shift(canvas, dy)[16:-16, None] for dy in path[:, 0]]) / canvas.std()
    clean = 0.3 * drifting(path, SHAPE, width=0.06) + layers
    stack = (300 + 100 * clean + rng.normal(0, 10, clean.shape)).astype(np.uint16)
    numbers, changed = [], LevelledFrames.changed

    def counted(self, chunk):
        numbers.append(len(chunk.frames))
        return changed(self, chunk)

    monkeypatch.setattr(LevelledFrames, "changed", counted)
    result = estimate_shifts(stack, "first", 20)
    assert 0 < sum(numbers) < 40
    assert not any("offsets of their own" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts, -path, atol=0.06)


@pytest.mark.parametrize("deviation", [0.05, 2.0])
def test_a_scene_without_such_lines_is_left_alone(deviation):
    clean = drifting(drift(1.0), SHAPE, width=0.06)
    notes = estimate_shifts(clean + noise(clean, deviation), "first", 20).notes
    assert not any("offsets of their own" in note for note in notes)


def test_lines_of_the_scene_that_move_with_it_are_kept():
    path = np.round(drift(2.0))
    clean = drifting(path, SHAPE, width=0.06)
    layers = np.random.default_rng(2).normal(0, 1, 400)
    for frame, (dy, _) in zip(clean, path.astype(int), strict=True):
        frame += layers[100 - dy : 100 - dy + SHAPE[0], None]
    result = estimate_shifts(clean + noise(clean, 0.3), "first", 20)
    assert not any("offsets of their own" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts, -path, atol=0.05)


@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
@pytest.mark.parametrize("axis", [1, 2])
def test_levelled_frames(xp, rng, dtype, axis):
    stack = (100 * rng.random((4, 37, 41))).astype(dtype)
    stack[2] = 7
    if dtype != "uint16":
        stack[1, 3, 5] = np.nan
    frames = LevelledFrames(ArrayFrames(xp.asarray(stack)), axis, "changing")
    found = to_host(frames.read(0, 4).frames)
    assert found.dtype == frames.dtype
    expected = stack - np.nanmean(stack.astype(np.float64), axis=axis, keepdims=True)
    place = np.arange(stack.shape[axis]) - (stack.shape[axis] - 1) / 2
    along = place[None, None] if axis == 2 else place[None, :, None]
    known = np.nan_to_num(expected)
    slope = (known * along).mean(axis=(1, 2), keepdims=True) / (place**2).mean()
    expected = expected - slope * along
    expected[2] = 7
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_rows_and_columns_that_both_change_are_levelled():
    path, rng = drift(0.8), np.random.default_rng(8)
    clean = drifting(path, SHAPE, width=0.06)
    lines = rng.normal(0, 1, (16, SHAPE[0], 1)) + rng.normal(0, 1, (16, 1, SHAPE[1]))
    result = estimate_shifts(clean + noise(clean, 0.3) + lines, "first", 20)
    np.testing.assert_allclose(result.shifts, -path, atol=0.08)
    assert {note.split()[0] for note in result.notes} >= {"Rows", "Columns"}


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_a_smooth_scene_without_noise_has_no_lines(xp, speed):
    """Its rows differ from those beside them by more than noise, wherever it is."""
    walk = speed * np.array([(0, 0), (2, -2), (3, 1), (-4, 6), (2, 3), (0, -5)], float)
    stack = drifting(walk, shape=(128, 136), width=0.005).astype(np.float32)
    result = estimate_shifts(xp.asarray(stack), "first", 10)
    assert not any("offsets of their own" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts, -walk, atol=0.02)
