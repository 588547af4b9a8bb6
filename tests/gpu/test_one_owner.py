"""One thread owns a device: copies in, the same out, whoever works beside; and a device that fails ends a run well.

All with memory that is overwritten the moment it is freed (tests/poisoned_memory.py).
"""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import xcorr_app as xc
from tests import poisoned_memory
from tests.device import NEEDS_DEVICE
from tests.gpu.copies import COMMANDS, prepared, results_of, stack_of
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.download import Download

pytestmark = NEEDS_DEVICE
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def memory_is_poisoned():
    """In this file, whatever the run does elsewhere."""
    with poisoned_memory.poisoned():
        yield


def test_what_is_freed_is_overwritten(cupy):
    values = cupy.arange(1000, dtype=np.float32)
    freed = values.data.ptr
    del values
    again = cupy.empty(1000, np.float32)
    assert again.data.ptr == freed
    assert np.isnan(again.get()).all()


@pytest.mark.parametrize("command", COMMANDS)
def test_copies_of_a_stack_come_out_the_same(tmp_path, command):
    prepared(tmp_path, 4 if command == "unmix" else 24, 192 if "motion" in command else 128)
    alone, printed = results_of(command, ["s0"], tmp_path)
    assert alone["s0"], printed
    for names in (["s0", "s1", "s2", "s3", "s4", "s5"], ["s4", "s1", "s0", "s2", "s5", "s3"]):
        found, printed = results_of(command, names, tmp_path)
        assert set(found.values()) == {alone["s0"]}, printed


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_call_at_once_get_the_same_bits(tmp_path, cupy, threads):
    stack = stack_of(20, 128)
    frames, taps = cupy.asarray(stack), xc.filters.gaussian(1.5)
    shifts = np.random.default_rng(0).normal(0, 3, (20, 2))
    prepared(tmp_path, 12, 128)

    def everything(number):
        out = tmp_path / f"out{number}"
        xc.align(tmp_path / "one.tif", out, max_shift=16, device="cuda", overwrite=True)
        measured = xc.estimate_shifts(frames, max_shift=16, verify="all")
        moved, smooth = xc.apply_shifts(frames, shifts), xc.convolve(frames, taps)
        tables = [(out / "one" / name).read_bytes() for name in ("shifts.csv", "one_aligned.tif")]
        return tables, measured.shifts, measured.sigma, measured.fft_shifts, moved.get(), smooth.get()

    expected = everything(0)
    gate = threading.Barrier(threads)

    def again(number):
        gate.wait(60)
        return [everything(number) for _ in range(3)]

    with ThreadPoolExecutor(threads) as pool:
        for results in pool.map(again, range(1, threads + 1)):
            for tables, *arrays in results:
                assert tables == expected[0]
                for found, wanted in zip(arrays, expected[1:], strict=True):
                    np.testing.assert_array_equal(found, wanted)


def test_arrays_arrive_though_they_are_freed_and_later_work_goes_on(cupy):
    values = cupy.random.rand(1 << 16)
    expected = values.get()
    arriving = Download(values)
    del values
    poisoned_memory.delay(cupy, cupy.cuda.get_current_stream())
    np.testing.assert_array_equal(arriving(), expected)


def test_constants_are_read_by_any_stream_and_outlive_their_last_reader(cupy):
    """They are freed while another stream still has them to read, and that memory is nobody else's before it has."""
    kept = [constants(cupy, lambda: cupy.arange(1 << 16))]
    stream = cupy.cuda.Stream(non_blocking=True)
    poisoned_memory.delay(cupy, stream)
    with stream:
        found = kept[0] + 0
    kept.clear()
    others = [cupy.full(1 << 16, -1) for _ in range(4)]
    stream.synchronize()
    np.testing.assert_array_equal(found.get(), np.arange(1 << 16))
    assert len(others) == 4


_FAILING = """
import sys
import cupy, numpy as np
from xcorr_app.batch.align import stack
from xcorr_app.cli import main

real, calls = stack.estimate_from, []
def estimate(*arguments, **options):
    calls.append(1)
    if len(calls) == 3 and options["xp"] is cupy:
        bad = cupy.RawKernel('extern "C" __global__ void bad(float* p) { p[threadIdx.x] = 1; }', "bad")
        bad((1,), (32,), (np.uint64(64),))
    return real(*arguments, **options)
stack.estimate_from = estimate
main(sys.argv[1:])
"""


def _run_failing(folder, out, *more):
    paths = [str(folder / f"s{number}.tif") for number in range(6)]
    command = [sys.executable, "-c", _FAILING, "align", *paths, "-o", str(out), "--max-shift", "16", *more]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=300)


@pytest.fixture
def six(tmp_path):
    prepared(tmp_path, 12, 128)
    for number in range(6):
        (tmp_path / f"s{number}.tif").hardlink_to(tmp_path / "one.tif")
    return tmp_path


def test_a_device_that_fails_ends_the_run_with_one_line_and_resume_goes_on(six):
    out = six / "out"
    run = _run_failing(six, out, "--device", "cuda")
    assert run.returncode == 1
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("xcorr:")]
    assert "stopped working at s2" in line
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in line or "cudaErrorIllegalAddress" in line
    assert "2 of 6 stacks are finished" in line
    assert "--resume" in line
    for word in ("Traceback", "Exception ignored", "__dealloc__"):
        assert word not in run.stderr + run.stdout
    assert sorted(path.stem for path in (out / ".xcorr").glob("*.json")) == ["s0", "s1"]
    before = (out / "s0" / "shifts.csv").stat().st_mtime_ns
    again = [sys.executable, "-m", "xcorr_app", "align", *(str(six / f"s{n}.tif") for n in range(6)), "-o", str(out)]
    again += ["--max-shift", "16", "--device", "cuda", "--resume"]
    run = subprocess.run(again, cwd=ROOT, text=True, capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert (out / "s0" / "shifts.csv").stat().st_mtime_ns == before
    assert json.loads((out / "run.json").read_text())["resumed"] == ["s0", "s1"]


def test_where_the_device_was_not_asked_for_the_cpu_goes_on_and_says_so(six):
    out = six / "out"
    run = _run_failing(six, out)
    assert run.returncode == 0, run.stderr
    assert "Exception ignored" not in run.stderr
    assert "Computed by the CPU: the GPU stopped working at s2" in run.stdout
    tables = [np.genfromtxt(out / f"s{n}" / "shifts.csv", delimiter=",", skip_header=1)[:, 3:5] for n in range(6)]
    for table in tables[1:]:
        np.testing.assert_allclose(table, tables[0], atol=1e-3)
