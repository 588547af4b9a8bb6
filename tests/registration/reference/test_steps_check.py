"""Sums of steps that follow something else than the frame are flagged."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from tests.registration.test_contrast import moving_particles
from xcorr_app import estimate_shifts


@pytest.mark.share(2)
@pytest.mark.parametrize(("count", "size"), [(10, 160), (16, 160)])
def test_steps_drawn_along_by_particles_are_flagged_or_right(xp, count, size):
    result = estimate_shifts(xp.asarray(moving_particles(count, size)), "previous", 20)
    wrong = np.abs(result.shifts).max(axis=1) > 0.7
    assert not (wrong & result.trusted).any()
    assert np.abs(result.applied()).max() < 1.0


def test_steps_that_are_right_are_not_flagged(xp):
    drift = np.stack([3.0 * np.arange(9), 5 * np.sin(np.arange(9))], axis=1)
    clean = drifting(drift - drift[0], (120, 130))
    result = estimate_shifts(xp.asarray(clean + noise(clean, 0.3)), "previous", 30)
    np.testing.assert_allclose(result.shifts, drift[0] - drift, atol=0.2)
    assert result.trusted.all()
