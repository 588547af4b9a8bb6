"""Frames moved, warped and measured as more than shifts on a device: the answer of the CPU and the definition."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.gpu.test_memory import Allocator, allocations
from tests.registration.motion.test_motion import series
from tests.registration.moving.moving_definition import by_definition, random_frame
from tests.registration.patches.test_motion_patches import bent
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.resample.problem import PIXEL_TYPES
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.interpolation import METHODS, ORDERS
from xcorr_app.registration.warping.warp import warp_by_fields, warp_frames

pytestmark = pytest.mark.gpu


def frames_of(count, shape, dtype):
    return np.stack([random_frame(shape, dtype, seed) for seed in range(count)])


def random_shifts(rng, count, shape):
    shifts = rng.uniform(-1.2, 1.2, (count, 2)) * shape
    shifts[::2] = rng.uniform(-9, 9, (len(shifts[::2]), 2))
    shifts[1::5, 0] = np.rint(shifts[1::5, 0])
    shifts[2::7] = np.rint(shifts[2::7])
    return shifts


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("mode", ["constant", "nearest"])
def test_device_and_cpu_agree(cupy, rng, mode, dtype, order):
    for shape in ((67, 93), (128, 512), (5, 1201)):
        frames = frames_of(11, shape, dtype)
        shifts = random_shifts(rng, 11, shape)
        expected, clipped = shift_frames(frames, shifts, order=order, mode=mode, cval=5)
        found, count = shift_frames(cupy.asarray(frames), shifts, order=order, mode=mode, cval=5)
        found = found.get()
        if frames.dtype.kind == "f":
            tolerance = {2: 2e-3, 4: 4e-6, 8: 1e-11}[frames.itemsize] * float(np.abs(frames).max())
            np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=tolerance)
        else:
            off = np.abs(found.astype(np.float64) - expected)
            assert off.max() <= 1
            assert np.count_nonzero(off) <= 1e-2 * off.size
            assert abs(count - clipped) <= 1e-3 * off.size
        whole = (shifts == np.rint(shifts)).all(axis=1)
        assert whole.any()
        assert found[whole].tobytes() == expected[whole].tobytes()


@pytest.mark.parametrize("order", [1, 3, "lanczos", "fourier"])
def test_large_stacks_equal_the_definition(cupy, rng, order):
    frames = frames_of(3, (510, 514), "float32")
    shifts = rng.uniform(-20, 20, (3, 2))
    found = xc.apply_shifts(cupy.asarray(frames), shifts, interpolation=order, cval=-1).get()
    for t in range(3):
        expected = by_definition(frames[t], shifts[t], order, "constant", -1)
        np.testing.assert_allclose(found[t], expected, rtol=0, atol=2e-6 * np.abs(frames[t]).max())


@pytest.mark.parametrize("order", METHODS)
def test_views_at_any_address_are_moved(cupy, rng, order):
    flat = cupy.asarray(rng.integers(0, 60000, 4 * 33 * 65 + 8).astype(np.uint16))
    shifts = random_shifts(rng, 4, (8, 8))
    for offset in (0, 1, 3, 4):
        view = flat[offset : offset + 4 * 33 * 65].reshape(4, 33, 65)
        out = cupy.full(4 * 33 * 65 + 8, 77, np.uint16)
        target = out[offset : offset + 4 * 33 * 65].reshape(4, 33, 65)
        translate_on_device(view, shifts, METHODS[order], outside=0.0, out=target)
        np.testing.assert_array_equal(target.get(), xc.apply_shifts(view.copy(), shifts, interpolation=order).get())
        assert (out[:offset] == 77).all()
        assert (out[offset + 4 * 33 * 65 :] == 77).all()


@pytest.mark.parametrize("order", [3, "fourier"])
def test_memory_where_the_nth_allocation_fails(cupy, rng, order):
    frames = cupy.asarray(frames_of(6, (40, 50), "uint16"))
    shifts = rng.uniform(-5, 5, (6, 2))

    def moved():
        return xc.apply_shifts(frames, shifts, interpolation=order).get()

    expected = moved()
    for n in range(1, allocations(cupy, moved) + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            np.testing.assert_allclose(moved(), expected, atol=1)


def test_memory_that_does_not_suffice_is_said(cupy, rng):
    frames = cupy.asarray(frames_of(2, (40, 50), "uint16"))
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda _: True)),
        pytest.raises(DeviceMemoryError, match="the CPU's memory may do"),
    ):
        xc.apply_shifts(frames, (0.5, 0.5))


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
