"""The kernels that say what aligned frames leave, on the host, against the array operations of the CPU."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.registration.scenes import drifting, noise
from xcorr_app.gpu.peaks import left_over as kernels
from xcorr_app.registration.parts.tile_bins import binned
from xcorr_app.registration.pattern import one_layer
from xcorr_app.registration.stack.frames import ArrayFrames


@pytest.fixture
def in_place(host_builds, monkeypatch):
    """What decides on a device, run by the host."""
    run_on_host(monkeypatch, host_builds, kernels)
    monkeypatch.setattr(kernels, "download", np.array)
    monkeypatch.setattr(one_layer, "is_device_array", lambda _: True)
    return one_layer.left_over_in_place


def series(shape, dtype, drift, deviation, still=0.0):
    clean = drifting(drift, shape, width=0.05, seed=3)
    frames = clean + noise(clean, deviation, 5)
    frames += still * np.sin(np.arange(shape[1]) * 0.9)
    frames *= (1 - 0.1 * np.arange(len(frames)))[:, None, None]
    top, middle = (110, 120) if dtype == "uint8" else (3000, 9000)
    return np.rint(middle + top / 5 * frames).clip(0, 2 * middle).astype(dtype)


def assert_as_array_operations_say(found, frames, shifts):
    images = frames.astype(np.float64)
    if min(images.shape[1:]) >= one_layer._LARGE:
        images, shifts = binned(images), shifts / 2
    expected = one_layer.left_over(images, shifts)
    np.testing.assert_allclose(astuple(found)[:4], astuple(expected)[:4], rtol=2e-3, atol=1e-6)
    assert found.is_little == expected.is_little


@pytest.mark.parametrize(("dtype", "shape"), [("uint8", (61, 90)), ("uint16", (97, 71)), ("int16", (203, 195))])
@pytest.mark.parametrize("still", [0.0, 0.5])
@pytest.mark.parametrize("few", [(0, 2), (1, 2, 4, 5, 6)])
def test_as_array_operations_say(in_place, rng, dtype, shape, still, few):
    drift = rng.normal(0, 2.5, (7, 2))
    frames, numbers = series(shape, dtype, drift, 0.3, still), np.array(few)
    found = in_place(ArrayFrames(frames), numbers, -drift[numbers])
    assert_as_array_operations_say(found, frames[numbers], -drift[numbers])
    assert not (found.is_little and still)


def test_nothing_is_said_where_kernels_cannot_read_or_frames_share_too_little(in_place):
    frames = series((61, 90), "uint16", np.zeros((3, 2)), 1.0)
    floats = ArrayFrames(frames.astype(np.float32))
    assert in_place(floats, np.arange(3), np.zeros((3, 2))) is None
    far = np.array([[0.0, 0.0], [45.0, 0.0], [0.0, 0.0]])
    assert in_place(ArrayFrames(frames), np.arange(3), far) == one_layer.UNKNOWN
    assert in_place(ArrayFrames(frames), np.arange(1), far[:1]) == one_layer.UNKNOWN
