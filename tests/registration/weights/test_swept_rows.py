"""Rows that a scanner sweeps to and fro: found where they lie otherwise, and joined for measuring."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts

SHAPE = (151, 162)


def swept(offset, seed=1, deviation=0.3, count=12):
    drift = walk(seed, count, 0.8)
    there, back = (drifting(drift + np.array([0, aside]), SHAPE, width=0.06, seed=seed) for aside in (0, offset))
    there[:, 1::2] = back[:, 1::2]
    return 100 + 20 * (there + noise(there, deviation)), drift


@pytest.mark.share(2)
@pytest.mark.parametrize("offset", [2.0, -1.4])
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_that_are_swept_backwards_do_not_bend_the_shifts(offset, seed):
    stack, drift = swept(offset, seed)
    result = estimate_shifts(stack, "first", 20)
    assert any(note.startswith("Every other row") for note in result.notes)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.12)
    assert result.trusted.all()


@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_rows_that_lie_where_they_should_are_left_alone(deviation):
    stack, _ = swept(0.0, deviation=deviation)
    assert not any("other row" in note for note in estimate_shifts(stack, "first", 20).notes)


@pytest.mark.parametrize("seed", [1, 2])
def test_interlaced_rows_do_not_bend_the_shifts(xp, seed):
    """Odd rows are taken half a frame later, while the camera shakes."""
    drift = np.cumsum(np.random.default_rng(seed).normal(0, 1.0, (13, 2)), axis=0)
    later = (drift[:-1] + drift[1:]) / 2
    stack, odd = (drifting(path, SHAPE, width=0.06, seed=seed) for path in (drift[:-1], later))
    stack[:, 1::2] = odd[:, 1::2]
    result = estimate_shifts(xp.asarray(stack + noise(stack, 0.2)), "first", 20)
    middle = (drift[:-1] + later) / 2
    np.testing.assert_allclose(result.shifts, middle[0] - middle, atol=0.06)
    assert any("interlaced" in note for note in result.notes)
