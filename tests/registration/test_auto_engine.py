"""Which engine ``auto`` takes in registration, where tensor cores are the faster way to peaks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import KernelOptions, ShiftWindow, estimate_shifts
from xcorr_app.correlation.engines import Task
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.registration import device_matcher, measurement
from xcorr_app.registration.device_matcher import finds_sooner_by_halves
from xcorr_app.registration.settings import Settings

DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)])


class Asked(Exception):  # noqa: N818 - it ends the measurement
    pass


@pytest.fixture
def asked(monkeypatch):
    """Name of the engine that a measurement asks for; tensor cores are said to be there and faster."""

    def matcher(self, dtype, engine, kernel):
        raise Asked(engine)

    monkeypatch.setattr(measurement, "finds_sooner_by_halves", lambda *_: True)
    monkeypatch.setattr(measurement.Measurement, "_matcher", matcher)

    def engine_of(stack, **options):
        with pytest.raises(Asked) as found:
            estimate_shifts(stack, max_shift=8, verify="none", **options)
        return found.value.args[0]

    return engine_of


def test_tensor_cores_where_frames_share_a_reference(asked):
    stack = drifting(DRIFT).astype(np.float32)
    assert asked(stack, weighting="none") == "tensor"
    assert asked(stack, weighting="none", engine="fft") == "fft"
    assert asked(stack, weighting="none", reference="previous") == "fft"
    assert asked(stack.astype(np.float64), weighting="none") == "fft"


def test_weighted_frames_need_planes(asked):
    stack = drifting(DRIFT)
    noise = np.random.default_rng(2).normal(scale=2 * stack.std(), size=stack.shape)
    assert asked((stack + noise).astype(np.float32)) == "fft"


@pytest.fixture
def device(monkeypatch):
    """An H200, as far as the choice looks at it; what stands for CuPy."""
    monkeypatch.setattr(device_matcher, "current_device", lambda: 0)
    monkeypatch.setattr(device_matcher, "device_limits", lambda _: DeviceLimits(132, 232448))
    monkeypatch.setattr(device_matcher, "finds_peaks", lambda _: True)
    monkeypatch.setattr(device_matcher, "multiplies_by_groups", lambda: True)
    return object()


def frames(count, size):
    window = ShiftWindow.symmetric(16, 16)
    return Task((size, size), (size, size), window, np.dtype(np.float32), rights=count, rights_per_left=count)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 64])
def test_few_frames_are_enough_where_they_are_large(device, count):
    assert finds_sooner_by_halves(frames(count, 1024), Settings(), device)
    assert not finds_sooner_by_halves(frames(min(count, 4), 64), Settings(), device)


def test_never_where_they_are_missing_or_other_things_are_asked_for(device, monkeypatch):
    task = frames(1, 1024)
    assert not finds_sooner_by_halves(task, Settings(), np)
    assert not finds_sooner_by_halves(task, Settings(subpixel="dft"), device)
    assert not finds_sooner_by_halves(task, Settings(normalization="none"), device)
    assert not finds_sooner_by_halves(task, Settings(kernel_options=KernelOptions(variant="combined")), device)
    monkeypatch.setattr(device_matcher, "multiplies_by_groups", lambda: False)
    assert not finds_sooner_by_halves(task, Settings(), device)
