"""Whole runs of the three commands with NumPy in the place of the device: tables, peers, goals, means and the file."""

import contextlib
import json
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from benchmarks.filters import own as filters_own
from benchmarks.harness import clock, device_rates, fastest, record
from benchmarks.harness.clock import Measured
from benchmarks.harness.suites import SUITES
from benchmarks.im2win import own as im2win_own
from benchmarks.pointwise import own as pointwise_own
from benchmarks.work import benchmark
from tests.benchmarks.runner import run_benchmarks
from tests.benchmarks.small_work import FILTERS, OTHER_FILTERS
from tests.kernels.im2win_definition import convolution_by_definition
from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.pointwise.blocking import StoredMatrix
from xcorr_app.gpu.runtime.device import DeviceStatus


def into(out, values, like):
    """Write values as a kernel would: rounded for integers."""
    result = np.rint(values).astype(like) if np.dtype(like).kind == "u" else values.astype(like)
    if out is None:
        return result
    out[...] = result
    return out


def filtered(stack, taps, *, boundary, kernel, tuning, out):
    taps = taps.reshape((1,) * (stack.ndim - 2) + taps.shape)
    return into(out, ndimage.correlate(stack.astype(float), taps.astype(float), mode=boundary), stack.dtype)


def separated(stack, terms, *, boundary, kernel, tuning, out):
    ((column, row),) = terms
    down = ndimage.correlate1d(stack.astype(float), column, axis=1, mode=boundary)
    return into(out, ndimage.correlate1d(down, row, axis=2, mode=boundary), stack.dtype)


def slid(stack, rows, columns, *, boundary, tuning, out):
    return into(out, ndimage.gaussian_filter(stack.astype(float), (0, rows, columns), mode=boundary), stack.dtype)


def public(stack, taps, mode):
    if isinstance(taps, np.ndarray):
        return filtered(stack, taps, boundary=mode, kernel="", tuning={}, out=None)
    return separated(stack, taps.terms, boundary=mode, kernel="auto", tuning=None, out=None)


def convolved(images, filters, stride, **options):
    problem = Im2winProblem(*images.shape, filters.shape[0], *filters.shape[2:], stride)
    return convolution_by_definition(images, filters, problem)


def mixed(stack, matrix, axis, *, target, kernel, tuning, out):
    if kernel == "blocking":
        raise ValueError("not for these sizes")
    if isinstance(matrix, StoredMatrix):
        filters, channels = matrix.shape
        matrix = matrix.values[:channels, :filters].T
    values = np.einsum("fc,nc...->nf...", matrix.astype(float), stack.astype(float))
    return into(out, np.clip(values, 0, 65535) if np.dtype(target).kind == "u" else values, target)


class HostDevice(contextlib.nullcontext):
    def synchronize(self):
        pass


@pytest.fixture
def numpy_device(monkeypatch):
    """A device made of NumPy, on which every call takes as long as its contender's turn."""
    cupy = ModuleType("cupy")
    cupy.__dict__.update({name: value for name, value in vars(np).items() if not name.startswith("__")})
    cupy.cuda = SimpleNamespace(Device=HostDevice)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.ndimage", ndimage)
    status = DeviceStatus(available=True, name="A host", driver="13.0", multiprocessors=2)
    monkeypatch.setattr(record, "cuda_status", lambda: status)
    monkeypatch.setattr("benchmarks.work.command.select_device", lambda text: None)
    rates = device_rates.DeviceRates(1e12, 1e12, 1e-6)
    monkeypatch.setattr(benchmark, "measure_rates", lambda *_: rates)
    monkeypatch.setattr(benchmark, "current_device", lambda: 0)
    for module in (benchmark, fastest):
        monkeypatch.setattr(module, "free_device_memory", lambda: None)
    monkeypatch.setattr(fastest, "memory_of", lambda run, clocking: 1_000_000)
    timed = []

    def planted(_, run, *waits):
        timed.append(run())
        return Measured(1e-6 * len(timed), "replay")

    monkeypatch.setattr(clock.Clock, "on_device", planted)
    monkeypatch.setattr(clock.Clock, "by_call", planted)
    cupy.cuda.get_current_stream = HostDevice
    monkeypatch.setattr(filters_own, "filter_on_device", filtered)
    monkeypatch.setattr(filters_own, "separable_on_device", separated)
    monkeypatch.setattr(filters_own, "sliding_gaussian_on_device", slid)
    monkeypatch.setattr(filters_own, "filter_taps", public)
    monkeypatch.setattr(im2win_own, "im2win_on_device", convolved)
    monkeypatch.setattr(pointwise_own, "pointwise_on_device", mixed)
    return timed


def run_of(monkeypatch, tmp_path, suite, cases, *options, torch=None):
    """Run a command on small cases; `torch` takes the cases and the search and returns PyTorch's outcomes."""
    monkeypatch.setitem(SUITES, suite, replace(SUITES[suite], cases=tuple(cases)))
    monkeypatch.setattr(benchmark, "has_torch", lambda: torch is not None)
    asked = []

    def outcomes(name, wanted, effort, device, *, search):
        assert name == suite
        asked.append(search)
        return torch(wanted, search)

    monkeypatch.setattr(benchmark, "torch_outcomes", outcomes)
    path = tmp_path / "results.json"
    run = run_benchmarks(suite, "--json", path, "--debug", *options)
    assert run.code == 0, run.stderr
    return run.stdout, json.loads(path.read_text(), parse_constant=pytest.fail), asked


@pytest.mark.usefixtures("numpy_device")
def test_filters(monkeypatch, tmp_path):
    cases = [*FILTERS, *OTHER_FILTERS]
    text, read, _ = run_of(monkeypatch, tmp_path, "filter", cases)
    assert not [timing for timing in read["timings"] if timing["failure"]]
    assert [case["name"] for case in read["cases"]] == [case.name for case in cases]
    assert read["benchmark"] == "filter"
    assert not read["pytorch"]
    assert {timing["what"] for timing in read["timings"]} >= {
        "filter_taps", "filter_on_device", "separable_on_device", "sliding_gaussian_on_device", "CuPy correlate",
        "CuPy gaussian_filter",
    }  # fmt: skip
    assert "one of many widths" in text
    assert "at most" in text


@pytest.mark.usefixtures("numpy_device")
def test_a_wrong_kernel_is_a_line_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(
        filters_own, "filter_on_device", lambda stack, taps, *, out, **_: into(out, stack * 0.9, stack.dtype)
    )
    text, read, _ = run_of(monkeypatch, tmp_path, "filter", FILTERS[:1])
    (wrong,) = [timing for timing in read["timings"] if timing["failure"]]
    assert wrong["what"] == "filter_on_device"
    assert "wrong answer" in wrong["failure"]
    assert wrong["microseconds"] is None
    assert "wrong answer" in text
