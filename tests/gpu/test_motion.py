"""Motion on a device: the answer of the CPU."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.registration.test_motion import series

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("model", ["rigid", "similarity", "affine"])
@pytest.mark.parametrize("snr", [20, 2])
def test_the_motion_is_that_of_the_cpu(cupy, model, snr):
    frames, _ = series(model, snr, 6, shape=(120, 131))
    here, there = xc.estimate_motion(frames, model), xc.estimate_motion(cupy.asarray(frames), model)
    assert there.flags == here.flags
    np.testing.assert_allclose(there.matrices, here.matrices, atol=0.01)
    np.testing.assert_allclose(there.score, here.score, atol=1e-3)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_warping_is_that_of_the_cpu(cupy, order):
    frames, _ = series("affine", 20, 2, shape=(64, 70))
    frames = np.clip(frames * 1000 + 5000, 0, 65535).astype(np.uint16)
    result = xc.estimate_motion(frames, "affine")
    here, there = result.apply(frames, order), result.apply(cupy.asarray(frames), order)
    assert isinstance(there, cupy.ndarray)
    assert (np.abs(there.get().astype(int) - here) > 1).mean() < 0.001
