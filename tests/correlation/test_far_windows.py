"""Windows far outside the matrices: zeros, in memory for the plane alone; by both ways of transforming."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft

from xcorr_app import ShiftWindow
from xcorr_app.correlation.engines import fft_device, overlapping
from xcorr_app.correlation.engines.fft import FFTCorrelator
from xcorr_app.correlation.engines.fft_device import DeviceFFTCorrelator

FAR = 10**6

OUTSIDE = [
    ShiftWindow(FAR, FAR + 3, FAR, FAR + 3),
    ShiftWindow(-FAR - 3, -FAR, -2, 2),
    ShiftWindow(-2, 2, FAR, FAR + 3),
    ShiftWindow(9, 9, 0, 3),  # touches the matrices from outside
]


class OnHost:
    """The correlator of devices, computed by NumPy and SciPy."""

    def __init__(self, monkeypatch):
        libraries = {"cupy": np, "cupyx.scipy.fft": scipy.fft}
        monkeypatch.setattr(fft_device, "importlib", SimpleNamespace(import_module=libraries.__getitem__))
        monkeypatch.setattr(fft_device, "_product", lambda: lambda left, right, scale: left * right.conj() * scale)

    def __call__(self, left_shape, right_shape, window):
        return DeviceFFTCorrelator(left_shape, right_shape, window)


@pytest.fixture(params=["host", "device"])
def bound(request, monkeypatch):
    """Makes a correlator over any window."""
    if request.param == "device":
        make = OnHost(monkeypatch)
    else:

        def make(left_shape, right_shape, window):
            return FFTCorrelator(left_shape, right_shape, window, np)

    def bind(left_shape, right_shape, window):
        return overlapping.over_overlaps(
            lambda part: make(left_shape, right_shape, part), left_shape, right_shape, window, np
        )

    return bind


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", OUTSIDE, ids=str)
def test_outside_there_are_zeros(bound, rng, window, dtype):
    lefts, rights = rng.normal(size=(2, 1, 9, 8)).astype(dtype), rng.normal(size=(2, 3, 7, 6)).astype(dtype)
    correlator = bound((9, 8), (7, 6), window)
    planes = correlator.sums(correlator.left(lefts), correlator.right(rights))
    assert planes.shape == (2, 3, *window.shape)
    assert planes.dtype == dtype
    assert not planes.any()
