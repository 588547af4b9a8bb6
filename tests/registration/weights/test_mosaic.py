"""Raw frames of a colour camera are measured without its mosaic."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.weights.alternating import has_mosaic

DRIFT = np.stack([np.linspace(0, 5.3, 9), np.linspace(0, -3.7, 9)], axis=1)


def raw(gains, shape=(127, 141), seed=4):
    clean = 60 + 15 * drifting(DRIFT, shape, width=0.06, seed=seed)
    seen = clean.copy()
    for k, gain in enumerate(gains):
        seen[:, k // 2 :: 2, k % 2 :: 2] *= gain
    return np.rint(512 + seen + noise(seen, 1.0, seed)).astype(np.uint16)


@pytest.mark.parametrize("gains", [(0.5, 1, 1, 0.7), (1, 0.6, 0.45, 1)])
def test_raw_frames_of_a_colour_camera(xp, gains):
    stack = raw(gains)
    plain = estimate_shifts(xp.asarray(stack), max_shift=16, contrast="none")
    assert not plain.trusted[1:].any()
    found = estimate_shifts(xp.asarray(stack), max_shift=16)
    assert found.trusted.all()
    np.testing.assert_allclose(found.shifts, -DRIFT, atol=0.03)
    assert any("colour camera" in note for note in found.notes)


def test_scenes_stripes_and_noise_are_no_mosaic(rng):
    assert not has_mosaic(drifting(DRIFT[:1], (99, 101), width=0.06)[0])
    assert not has_mosaic(rng.normal(size=(99, 101)))
    assert not has_mosaic(rng.normal(size=(99, 101)) + np.arange(99)[:, None] % 2)
    assert has_mosaic(raw((0.5, 1, 1, 0.7))[0].astype(float))
