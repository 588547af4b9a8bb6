"""A device whose memory runs out: shorter ranges of frames, then the CPU, and the same answer; no device needed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.device import OutOfMemoryError
from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.registration.estimate import ON_HOST as NOTE
from xcorr_app.registration.measuring import measurement
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.passes import Pass


class Device:
    """As much of CuPy as dealing with its memory needs."""

    def __init__(self, free=80 << 30):
        self.released = 0
        pool = SimpleNamespace(free_all_blocks=self.release, free_bytes=lambda: 0, get_limit=lambda: 0)
        self.get_default_memory_pool = lambda: pool
        self.fft = SimpleNamespace(config=SimpleNamespace(clear_plan_cache=lambda: None))
        self.cuda = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(free, 80 << 30)))

    def release(self):
        self.released += 1


@pytest.fixture
def device(monkeypatch):
    device = Device()
    monkeypatch.setitem(sys.modules, "cupy", device)
    return device


def ranges_where(job, count=20, pixels=1 << 22):
    return list(Pass(count, pixels, on_device=True).over("any", job))


def test_ranges_fit_what_may_be_used(device):
    """However much is free: see CUPY_GPU_MEMORY_LIMIT."""
    pool = device.get_default_memory_pool()
    pool.get_limit, pool.used_bytes = lambda: 5 * (128 << 22) + 1000, lambda: 900
    assert ranges_where(lambda start, stop: stop - start) == [5, 5, 5, 5]


def test_a_frame_that_never_fits_is_an_error_with_numbers(device):
    def job(start, stop):
        raise OutOfMemoryError("allocating 5 bytes")

    with pytest.raises(DeviceMemoryError, match=r"one image of 4194304 pixels.*85\.90 of 85\.9 GB.*--device cpu"):
        ranges_where(job)


@pytest.mark.parametrize("reference", ["first", "template", "image"])
def test_what_no_device_holds_is_measured_on_the_cpu(monkeypatch, device, reference):
    stack = drifting([(0, 0), (1.5, -2), (3, 1)]).astype(np.float32)
    expected = estimate_shifts(stack, stack[1] if reference == "image" else reference, 8, verify="all")
    real, calls = measurement.Measurement.run, []

    def run(self, *arguments, **how):
        calls.append(self.frames)
        if len(calls) == 1:
            raise OutOfMemoryError
        return real(self, *arguments, **how)

    monkeypatch.setattr(measurement.Measurement, "run", run)
    result = estimate_shifts(stack, stack[1] if reference == "image" else reference, 8, verify="all")
    assert result.notes == (*expected.notes, NOTE)
    assert result.flags == expected.flags
    np.testing.assert_array_equal(result.shifts, expected.shifts)
    np.testing.assert_array_equal(result.score, expected.score)
    assert device.released == 1
    assert isinstance(calls[1], ArrayFrames)
    assert calls[1] is not calls[0]
