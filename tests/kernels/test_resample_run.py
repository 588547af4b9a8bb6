"""Stacks moved and summed up as on a device, with NumPy in CuPy's place and the kernels' own source on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.moving.moving_definition import by_definition, random_frame
from xcorr_app.gpu.resample.problem import PIXEL_TYPES
from xcorr_app.registration.moving import device_moving
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.device_moving import move_on_device

ORDERS = [0, 1, 3, "lanczos", "fourier"]
SHIFTS = np.array([(0.25, -0.5), (3.0, -2.0), (0.0, 1.75), (-2.5, 0.0), (40.3, 2.4), (-1.2, 3.7), (0.0, 0.0)])


def stack(shape, dtype):
    return np.stack([random_frame(shape[1:], dtype, seed) for seed in range(shape[0])])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("outside", [None, 9])
@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32", "float64"])
def test_device_and_cpu_agree(device, dtype, outside, order):
    frames = stack((len(SHIFTS), 19, 26), dtype)
    mode = {"mode": "nearest"} if outside is None else {"cval": outside}
    expected, clipped = shift_frames(frames, SHIFTS, order=order, workers=1, **mode)
    found, count = move_on_device(frames, SHIFTS, order, outside, None, counts=True)
    assert device
    assert found.dtype == frames.dtype
    if frames.dtype.kind == "f":
        tolerance = (3e-6 if dtype == "float32" else 1e-12) * np.abs(frames).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    else:
        off = np.abs(found.astype(np.float64) - expected)
        assert off.max() <= 1
        assert np.count_nonzero(off) <= (0.02 if order == "fourier" else 0.002) * off.size
        assert abs(count - clipped) <= 3
        assert (clipped > 0) == (order in (3, "lanczos", "fourier"))
    for t in (1, 6):  # whole pixels
        np.testing.assert_array_equal(found[t], expected[t])


@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("outside", [None, 3])
def test_fourier_in_parts_equals_the_definition(device, monkeypatch, outside, dtype):
    for shape in ((13, 18), (1, 7), (70, 33), (5, 131), (1, 1)):
        frames = stack((len(SHIFTS), *shape), dtype)
        itemsize = 8 if dtype in ("int32", "uint32", "float64") else 4
        monkeypatch.setattr(device_moving, "FOURIER_BYTES", 3 * 8 * itemsize * shape[0] * shape[1])
        found, clipped = move_on_device(frames, SHIFTS, "fourier", outside, None, counts=True)
        mode, cval = ("nearest", 0) if outside is None else ("constant", outside)
        sure = perhaps = 0
        for moved, frame, shift in zip(found, frames, SHIFTS, strict=True):
            expected = by_definition(frame, shift, "fourier", mode, cval)
            if frames.dtype.kind == "f":
                tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-12}[frames.itemsize] * np.abs(frame).max()
                np.testing.assert_allclose(moved, expected, rtol=0, atol=float(tolerance))
                continue
            limits = np.iinfo(dtype)
            precision = (1e-6 if itemsize == 4 else 1e-14) * (float(limits.max) - float(limits.min))
            assert np.abs(moved - np.clip(expected, limits.min, limits.max)).max() <= 0.5 + precision
            beyond = np.maximum(limits.min - expected, expected - limits.max)
            sure += np.count_nonzero(beyond > 0.5 + precision)
            perhaps += np.count_nonzero(beyond > 0.5 - precision)
        assert sure <= clipped <= perhaps
