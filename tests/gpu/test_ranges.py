"""A stack on a device: the same bits however many frames a range has, and few launches and waits for a plain one."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime import arrays, download
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.registration.stack import passes

pytestmark = pytest.mark.gpu

FRAMES, SIDE = 150, 256
PLAIN = {"contrast": "none", "weighting": "none"}


@pytest.fixture(scope="module")
def stack():
    """Frames of one scene, moved by whole pixels, with noise."""
    rng = np.random.default_rng(8)
    scene = gaussian_filter(rng.normal(size=(SIDE + 40, SIDE + 40)), 2)
    scene = (scene - scene.min()) / np.ptp(scene) * 900 + 100
    frames = np.stack([scene[y : y + SIDE, x : x + SIDE] for y, x in rng.integers(12, 28, (FRAMES, 2))])
    return (frames + rng.normal(size=frames.shape) * 15).clip(0).astype(np.uint16)


@pytest.mark.parametrize(
    "how",
    [
        PLAIN,
        {**PLAIN, "engine": "tensor"},
        {**PLAIN, "engine": "direct"},
        {**PLAIN, "verify": "all"},
        {**PLAIN, "reference": "previous"},
        {"contrast": "none"},
        {},
    ],
    ids=["plain", "tensor", "direct", "checked", "previous", "weighted", "defaults"],
)
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_the_same_bits_however_much_memory_there_is(cupy, stack, monkeypatch, how, dtype):
    frames = cupy.asarray(stack.astype(dtype))
    whole = estimate_shifts(frames, max_shift=16, **how)
    assert np.isfinite(whole.shifts).all()
    for at_once in (64, 37, 1):
        pixels = at_once * SIDE * SIDE * passes._DEVICE_BYTES_PER_PIXEL
        monkeypatch.setattr(passes, "bytes_within_limit", lambda pixels=pixels: pixels)
        found = estimate_shifts(frames, max_shift=16, **how)
        for name in ("shifts", "score", "sigma", "peak_ratio", "fft_shifts"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=f"{name}, {at_once}")
        assert (found.flags, found.notes) == (whole.flags, whole.notes)


@pytest.mark.parametrize(("how", "launches", "waits"), [(PLAIN, 36, 4), ({}, 60, 15)], ids=["plain", "defaults"])
def test_launches_and_waits_of_a_call(cupy, stack, monkeypatch, how, launches, waits):
    frames = cupy.asarray(stack)
    estimate_shifts(frames, max_shift=16, **how)
    started, waited = [], []
    begin = BoundLaunch.__call__

    def counted(self, *given, **more):
        started.append(self)
        begin(self, *given, **more)

    monkeypatch.setattr(BoundLaunch, "__call__", counted)
    for original in (arrays.to_host, download.download):

        def told(array, original=original):
            if not isinstance(array, np.ndarray):
                waited.append(array.shape)
            return original(array)

        for name, module in list(sys.modules.items()):
            if name.startswith("xcorr_app.") and getattr(module, original.__name__, None) is original:
                monkeypatch.setattr(module, original.__name__, told)
    estimate_shifts(frames, max_shift=16, **how)
    assert 0 < len(started) <= launches
    assert 0 < len(waited) <= waits, waited
