"""How bright one scene is in each frame, where brightness differs by more than numbers have digits."""

import numpy as np
import pytest

from xcorr_app.registration.pattern.layers import gains


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
