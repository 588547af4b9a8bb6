"""Motion on a device: the answer of the CPU."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.registration.motion.test_motion import series
from tests.registration.moving.moving_definition import random_frame
from tests.registration.patches.test_motion_patches import bent
from xcorr_app.registration.warping.warp import warp_by_fields, warp_frames

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("model", ["rigid", "similarity", "affine"])
@pytest.mark.parametrize("snr", [20, 2])
def test_the_motion_is_that_of_the_cpu(cupy, model, snr):
    frames, _ = series(model, snr, 6, shape=(120, 131))
    here, there = xc.estimate_motion(frames, model), xc.estimate_motion(cupy.asarray(frames), model)
    assert there.flags == here.flags
    np.testing.assert_allclose(there.matrices, here.matrices, atol=0.01)
    np.testing.assert_allclose(there.score, here.score, atol=1e-3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32"])
def test_damaged_frames_are_flagged_as_on_the_cpu(cupy, dtype):
    frames, _ = series("similarity", 5, 2, shape=(100, 141), count=5)
    frames = (frames * 20 + 110).clip(0, 255).astype(dtype)
    frames[2] = 7
    frames[4] = np.random.default_rng(0).normal(size=(100, 141)).clip(-3, 3) * 20 + 110
    if dtype == "float32":
        frames[3, 10:15, 20:30] = np.nan
    here, there = xc.estimate_motion(frames, "similarity"), xc.estimate_motion(cupy.asarray(frames), "similarity")
    assert there.flags == here.flags
    assert "flat" in there.flags[2]
    sure = here.trusted
    np.testing.assert_allclose(there.matrices[sure], here.matrices[sure], atol=0.01)
    np.testing.assert_allclose(there.sigma[sure][1:], here.sigma[sure][1:], rtol=0.05)


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32", "float64"])
def test_matrices_and_fields_warp_as_on_the_cpu(cupy, dtype, mode, order):
    rng = np.random.default_rng(order)
    frames = np.stack([random_frame((131, 170), dtype, seed) for seed in range(5)])
    matrices = np.tile(np.eye(3), (5, 1, 1))
    matrices[1:, :2, :2] += rng.normal(size=(4, 2, 2)) * 0.1
    matrices[1:, :2, 2] = rng.uniform(-9, 9, (4, 2))
    nodes = np.linspace(0, 130, 6), np.linspace(0, 169, 8)
    fields = rng.normal(size=(5, 6, 8, 2)) * 2
    fields[0] = 0
    there = cupy.asarray(frames)
    for here, found in (
        (warp_frames(frames, matrices, order, mode, 9), warp_frames(there, matrices, order, mode, 9)),
        (
            warp_by_fields(frames, fields, nodes, order, mode, 9),
            warp_by_fields(there, fields, nodes, order, mode, 9),
        ),
    ):
        found = found.get()
        assert found.dtype == frames.dtype
        assert found[0].tobytes() == frames[0].tobytes()
        off = np.abs(found.astype(np.float64) - here) / np.abs(frames.astype(np.float64)).max()
        # Places next to an edge, or half way between pixels, may fall on either side.
        tolerance = 0 if order == 0 else 5e-5 if np.dtype(dtype).itemsize > 2 else 1.01 / np.iinfo(dtype).max
        assert (off > tolerance).mean() < 2e-3


@pytest.mark.parametrize(
    ("patch", "dtype"), [(64, "uint16"), (64, "int32"), (24, "float32"), (200, "float64"), (180, "uint8")]
)
def test_patches_are_those_of_the_cpu(cupy, patch, dtype):
    frames, _ = bent(3, 5, count=4)
    frames = (frames * 20 + 110).clip(0, 255).astype(dtype)
    here = xc.estimate_motion(frames, "patches", patch=patch)
    there = xc.estimate_motion(cupy.asarray(frames), "patches", patch=patch)
    assert there.flags == here.flags
    # Places that no pixel tells anything of are as far off as their standard error.
    off = np.abs(there.field.shifts - here.field.shifts)
    assert (off < np.maximum(0.02, 0.3 * here.field.sigma)).all()
    np.testing.assert_allclose(there.field.sigma, here.field.sigma, rtol=0.1)
    np.testing.assert_allclose(there.score, here.score, atol=1e-3)
    assert (there.field.trusted != here.field.trusted).mean() < 0.02


def test_patches_that_no_block_holds(cupy):
    frames, _ = bent(3, 5, count=3)
    options = {"patch": 64, "max_deviation": 30.0}
    here, there = (xc.estimate_motion(given, "patches", **options) for given in (frames, cupy.asarray(frames)))
    np.testing.assert_allclose(there.field.shifts, here.field.shifts, atol=0.02)


@pytest.mark.parametrize("reference", ["last", "mean", "template", 1, "image"])
def test_patches_against_every_reference(cupy, reference):
    frames, _ = bent(4, 5, amplitude=2.0, count=4)
    frames[2] = 3.0
    frames[1, 10:14, 20:30] = np.nan
    given = [stack[0] if reference == "image" else reference for stack in (frames, cupy.asarray(frames))]
    here = xc.estimate_motion(frames, "patches", given[0], patch=64)
    there = xc.estimate_motion(cupy.asarray(frames), "patches", given[1], patch=64)
    assert there.flags == here.flags
    np.testing.assert_allclose(there.field.shifts, here.field.shifts, atol=0.02)


def test_chunks_of_frames_are_those_of_all(cupy, monkeypatch):
    frames, _ = bent(3, 5, count=5)
    stack = cupy.asarray(frames)
    whole = xc.estimate_motion(stack, "patches", patch=64)
    monkeypatch.setattr("xcorr_app.registration.stack.passes._HELD_PIXELS", 2 * frames[0].size)
    parts = xc.estimate_motion(stack, "patches", patch=64)
    np.testing.assert_array_equal(parts.field.shifts, whole.field.shifts)
