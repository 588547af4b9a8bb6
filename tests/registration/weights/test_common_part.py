"""Frames that lack pixels at their rims are measured by what all of them show."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.weights.borders import finite_part

COUNT, SHAPE = 12, (131, 143)
DRIFT = walk(11, COUNT, 0.8)
MOVED = np.random.default_rng(12).integers(-8, 9, (COUNT, 2))


def moved_before(fill, deviation=0.1, width=0.02, seed=4):
    """Frames with borders as another program's whole-pixel shifts leave them, each its own."""
    clean = drifting(DRIFT, SHAPE, width=width, seed=seed)
    stack = (500 + 100 * (clean + noise(clean, deviation))).astype(np.float32)
    for frame, (dy, dx) in zip(stack, MOVED, strict=True):
        frame[: max(dy, 0)] = frame[SHAPE[0] + min(dy, 0) :] = fill
        frame[:, : max(dx, 0)] = frame[:, SHAPE[1] + min(dx, 0) :] = fill
    return stack


def rms(result):
    return np.sqrt(np.mean((result.shifts + DRIFT) ** 2))


@pytest.mark.parametrize(("deviation", "limit"), [(0.02, 0.01), (0.3, 0.1)])
def test_borders_without_values_pull_no_shift(xp, deviation, limit):
    result = estimate_shifts(xp.asarray(moved_before(np.nan, deviation)), max_shift=16)
    assert rms(result) < limit
    assert result.trusted.all()
    assert not result.non_finite.any()
    assert any(note.startswith("Measured within rows") for note in result.notes)


@pytest.mark.parametrize("seed", [4, 5])
def test_borders_of_one_value_pull_no_shift(seed):
    result = estimate_shifts(moved_before(0, 0.02, seed=seed), max_shift=16)
    assert rms(result) < 0.01
    assert any("borders of a single value" in note for note in result.notes)


def test_the_common_part_is_where_all_frames_have_values():
    stack = moved_before(np.nan)
    lacking = (~np.isfinite(stack)).sum(axis=(1, 2))
    rows, columns = finite_part(ArrayFrames(stack), lacking, None)
    assert np.isfinite(stack[:, rows, columns]).all()
    high, low = MOVED.max(axis=0), MOVED.min(axis=0)
    assert (rows.start, columns.start) == tuple(np.maximum(high, 0))
    assert (rows.stop, columns.stop) == tuple(np.add(SHAPE, np.minimum(low, 0)))
    inner = slice(3, 121), slice(20, 140)
    within = (~np.isfinite(stack[:, *inner])).sum(axis=(1, 2))
    rows, columns = finite_part(ArrayFrames(stack), within, inner)
    assert (rows.start, rows.stop, columns.start) == (max(3, high[0]), min(121, SHAPE[0] + low[0]), 20)
