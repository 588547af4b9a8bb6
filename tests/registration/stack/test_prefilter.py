"""Prefilters against their definitions, one frame at a time."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.stack.prefilter import Prefilter


def filtered(xp, frames, text):
    return to_host(Prefilter.parse(text)(xp.asarray(frames)))


def gaussian_taps(sigma, order=0):
    reach = int(4 * sigma + 0.5)
    x = np.arange(-reach, reach + 1)
    taps = np.exp(-(x**2) / (2 * sigma**2))
    taps /= taps.sum()
    return taps * (x**2 / sigma**4 - 1 / sigma**2) if order == 2 else taps


def along(frame, taps, axis):
    """Symmetric taps applied along one axis of a frame continued by reflection."""
    reach = len(taps) // 2
    padded = np.pad(frame, [(reach, reach) if a == axis else (0, 0) for a in range(2)], mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(taps), axis=axis)
    return windows @ taps


def smooth(frame, sigma, orders=(0, 0)):
    return along(along(frame, gaussian_taps(sigma, orders[0]), 0), gaussian_taps(sigma, orders[1]), 1)


def sobel(frame):
    def derivative(axis):
        other = along(frame, np.array([1.0, 2.0, 1.0]), 1 - axis)
        padded = np.pad(other, [(1, 1) if a == axis else (0, 0) for a in range(2)], mode="symmetric")
        return (
            np.diff(padded, axis=axis)[tuple(slice(1, None) if a == axis else slice(None) for a in range(2))]
            + np.diff(padded, axis=axis)[tuple(slice(None, -1) if a == axis else slice(None) for a in range(2))]
        )

    return np.hypot(derivative(0), derivative(1))


def median(frame, size):
    padded = np.pad(frame, size // 2, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
    return np.median(windows, axis=(-2, -1))


DEFINITIONS = {
    "none": lambda frame: frame,
    "gaussian:1.2": lambda frame: smooth(frame, 1.2),
    "highpass:2": lambda frame: frame - smooth(frame, 2),
    "dog:1,2.5": lambda frame: smooth(frame, 1) - smooth(frame, 2.5),
    "log:1.5": lambda frame: -smooth(frame, 1.5, (2, 0)) - smooth(frame, 1.5, (0, 2)),
    "median:3": lambda frame: median(frame, 3),
    "sobel": sobel,
    "box:3": lambda frame: along(along(frame, np.full(3, 1 / 3), 0), np.full(3, 1 / 3), 1),
    "laplacian": lambda frame: along(frame, np.array([1.0, -2, 1]), 0) + along(frame, np.array([1.0, -2, 1]), 1),
    "unsharp:1.5,0.7": lambda frame: 1.7 * frame - 0.7 * smooth(frame, 1.5),
}


@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
def test_every_frame_is_filtered_by_itself(xp, rng, text, dtype):
    frames = (1000 * rng.random((3, 30, 26))).astype(dtype)
    expected = np.stack([DEFINITIONS[text](frame.astype(float)) for frame in frames])
    result = filtered(xp, frames, text)
    if text != "none":
        assert result.dtype == (np.float64 if dtype == "float64" else np.float32)
    # The taps of a second derivative are brought to a zero sum by the library, by hand they are not quite.
    tolerance = 2.0 if text.startswith("log") else 0.01
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e30), ("float32", 1e-30), ("float64", 1e300)])
def test_huge_and_tiny_values_are_filtered_alike(xp, rng, text, dtype, scale):
    frames = rng.random((1, 20, 20)) + 0.5
    expected = filtered(xp, frames, text)
    result = filtered(xp, (frames * scale).astype(dtype), text).astype(float) / scale
    np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("text", [text for text in DEFINITIONS if text != "none"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "uint32"])
def test_frames_of_every_type_are_filtered_in_float32(xp, rng, text, dtype):
    frames = (200 * rng.random((2, 25, 31))).astype(dtype)
    result = Prefilter.parse(text)(xp.asarray(frames))
    assert result.dtype == np.float32
    expected = filtered(np, frames.astype(np.float64), text)
    np.testing.assert_allclose(to_host(result), expected, rtol=0, atol=2e-6 * 200 * 16)


@pytest.mark.parametrize("text", ["gaussian:251", "log:0.01", "box:2.5", "unsharp:300,1"])
def test_numbers_that_the_filter_does_not_take(text):
    with pytest.raises(ArgumentError, match=f"prefilter '{text}': (sigma|the size)"):
        Prefilter.parse(text)
