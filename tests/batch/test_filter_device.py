"""``xcorr filter`` on a device, with NumPy in CuPy's place: records, and memory that runs out on the way."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from tests.batch.filter_runs import assert_rounded, expected, result
from tests.batch.movies import record, xcorr
from tests.device import OutOfMemoryError
from tests.io.samples import noise, write_plain
from xcorr_app.batch.filter import run as filter_run
from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.pipeline import planes as chunks
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.stack import passes


@pytest.fixture
def gpu(monkeypatch):
    """A device whose arrays are NumPy's, in ranges of four planes; lists what was filtered there."""
    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(use=lambda: None))
    xp = SimpleNamespace(cuda=cuda)
    told = SimpleNamespace(ranges=[], most=99, dies=99)
    real = filter_run.filter_frames

    def filter_frames(images, taps, **how):
        if not isinstance(images, OnDevice):
            return real(images, taps, **how)
        if len(images) > told.most or len(told.ranges) >= told.dies:
            raise OutOfMemoryError
        told.ranges.append(len(images))
        after, count = real(np.asarray(images), taps, **how)
        return after.view(OnDevice), count

    class OnDevice(np.ndarray):
        pass

    class Brought:
        def __init__(self, frames):
            self.frames = frames

        def read(self, start, stop):
            chunk = self.frames.read(start, stop)
            return replace(chunk, frames=chunk.frames.view(OnDevice))

    monkeypatch.setattr(filter_run, "select_device", lambda _: Device(xp, "a GPU that is none"))
    monkeypatch.setattr(StackResources, "fits_on_device", lambda *_: True)
    monkeypatch.setattr(StackResources, "on_device", lambda _, frames, xp: frames if xp is np else Brought(frames))
    monkeypatch.setattr(chunks, "release_unused", lambda: None)
    monkeypatch.setattr(filter_run, "filter_frames", filter_frames)
    monkeypatch.setattr(filter_run, "is_device_array", lambda images: isinstance(images, OnDevice))
    monkeypatch.setattr(filter_run, "limits_of", lambda _: None)
    monkeypatch.setattr(filter_run, "planned", lambda *_, **__: Decision("reuse"))
    monkeypatch.setattr(passes, "_PIXELS_PER_DEVICE_CHUNK", 4 * 30 * 31)
    monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
    monkeypatch.setattr(memory, "release_unused", lambda: None)

    def with_second_try(job, *arguments, what):
        try:
            return job(*arguments)
        except OutOfMemoryError as error:
            raise DeviceMemoryError(what) from error

    monkeypatch.setattr(memory, "with_second_try", with_second_try)
    return told


@pytest.fixture
def stack(tmp_path):
    frames = noise((10, 30, 31), "uint8", seed=3)
    write_plain(tmp_path / "m.tif", frames)
    return tmp_path / "m.tif", frames


def filtering(stack, out):
    run = xcorr("filter", stack, "-o", out, "--sobel", "y", "--dtype", "same", "--device", "cuda")
    assert run.code == 0
    return run, record(out)


def check(out, frames):
    clipped = assert_rounded(result(out), expected(frames, lambda frame: ndimage.sobel(frame, 0)))
    assert record(out)["stacks"]["m"]["clipped_pixels"] == clipped > 1000


@pytest.mark.parametrize("dies", [0, 2])
def test_the_cpu_goes_on_where_no_plane_fits_and_that_is_said_once(tmp_path, stack, gpu, dies):
    gpu.dies = dies
    run, found = filtering(stack[0], tmp_path / "out")
    check(tmp_path / "out", stack[1])
    done = 4 * dies
    note = f"The device's memory did not suffice for the stack: the CPU filtered it from plane {done} on."
    assert found["stacks"]["m"]["notes"][0] == note
    assert run.stdout.count(note) == 1
    assert found["stacks"]["m"]["engine"] == ("reuse, opencv" if dies else "opencv")
