"""Moving frames in device memory against the definition and the CPU; memory that fails; what a call starts."""

from __future__ import annotations

import numpy as np
import pytest

import xcorr_app as xc
from tests.gpu.test_memory import Allocator, allocations
from tests.registration.moving.moving_definition import by_definition, random_frame
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.resample.problem import PIXEL_TYPES
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.interpolation import ORDERS

pytestmark = pytest.mark.gpu


def stack(count, shape, dtype):
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
        frames = stack(11, shape, dtype)
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
    frames = stack(3, (510, 514), "float32")
    shifts = rng.uniform(-20, 20, (3, 2))
    found = xc.apply_shifts(cupy.asarray(frames), shifts, interpolation=order, cval=-1).get()
    for t in range(3):
        expected = by_definition(frames[t], shifts[t], order, "constant", -1)
        np.testing.assert_allclose(found[t], expected, rtol=0, atol=2e-6 * np.abs(frames[t]).max())


@pytest.mark.parametrize("order", ORDERS)
def test_views_at_any_address_are_moved(cupy, rng, order):
    flat = cupy.asarray(rng.integers(0, 60000, 4 * 33 * 65 + 8).astype(np.uint16))
    shifts = random_shifts(rng, 4, (8, 8))
    for offset in (0, 1, 3, 4):
        view = flat[offset : offset + 4 * 33 * 65].reshape(4, 33, 65)
        out = cupy.full(4 * 33 * 65 + 8, 77, np.uint16)
        target = out[offset : offset + 4 * 33 * 65].reshape(4, 33, 65)
        shift_frames(view, shifts, order=order, out=target)
        np.testing.assert_array_equal(target.get(), xc.apply_shifts(view.copy(), shifts, interpolation=order).get())
        assert (out[:offset] == 77).all()
        assert (out[offset + 4 * 33 * 65 :] == 77).all()


@pytest.mark.parametrize("order", [3, "fourier"])
def test_memory_where_the_nth_allocation_fails(cupy, rng, order):
    frames = cupy.asarray(stack(6, (40, 50), "uint16"))
    shifts = rng.uniform(-5, 5, (6, 2))

    def moved():
        return xc.apply_shifts(frames, shifts, interpolation=order).get()

    expected = moved()
    for n in range(1, allocations(cupy, moved) + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            np.testing.assert_allclose(moved(), expected, atol=1)


def test_memory_that_does_not_suffice_is_said(cupy, rng):
    frames = cupy.asarray(stack(2, (40, 50), "uint16"))
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda _: True)),
        pytest.raises(DeviceMemoryError, match="the CPU's memory may do"),
    ):
        xc.apply_shifts(frames, (0.5, 0.5))
