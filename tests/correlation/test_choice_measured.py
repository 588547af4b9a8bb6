"""The choice of planes held to recorded call times of random problems, and that of peaks to recorded trials.

The constants of the choice were fitted to the very problems recorded in ``auto_fit_planes.json``, so this says that
the fit is kept, not how good the choice is elsewhere: ``python -m benchmarks auto`` measures that, on fresh problems.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.correlation.cases import CASES
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.gpu.direct import costs
from xcorr_app.gpu.direct.costs import unflattened
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
RECORDED = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "auto_fit_planes.json").read_text())
HOST_THEN = 19.0
"""Microseconds that the host took to start a direct kernel when the calls were recorded."""


def ratios(times_of, recorded=RECORDED):
    """Time of what is chosen over the best one's, of every recorded problem, the worst first."""
    found = []
    for row in recorded["problems"]:
        problem, times = unflattened(row["problem"]), times_of(row)
        chosen = decide_planes.__wrapped__(problem, limits=H200).name
        found.append(times[chosen] / min(times.values()))
    return sorted(found, reverse=True)


def test_choices_are_the_best_by_recorded_call_times(monkeypatch):
    """With the host's time of then. Of one problem the fastest kernel alone was timed while the host was slower."""
    monkeypatch.setattr(costs, "_HOST", HOST_THEN)
    behind = ratios(lambda row: row["call_us"])
    assert len(behind) == 60
    assert sum(ratio <= 1.1 for ratio in behind) >= 0.95 * len(behind)
    assert behind[0] < 1.7
    assert behind[1] <= 1.3


def test_choices_are_the_best_by_recorded_device_times_and_what_the_host_takes_now():
    """A call among many takes as long as the device, or as the host where that is longer."""

    def times(row):
        problem = unflattened(row["problem"])
        return {name: max(time, host_of(name, problem)) for name, time in row["device_us"].items()}

    def host_of(name, problem):
        engine, _, kernel = name.partition(":")
        if engine == "direct":
            return 26.0 if KERNELS[kernel].launch(problem, device=H200).segments > 1 else 14.0
        return {"fft": 380.0, "tensor:small-planes": 7.0}.get(name, 60.0)

    behind = ratios(times)
    assert sum(ratio <= 1.1 for ratio in behind) >= 0.95 * len(behind)
    assert behind[0] <= 1.3


def test_choices_are_the_best_by_the_calls_of_a_later_run():
    behind = ratios(lambda row: row["call_us"], RECORDED["later"])
    assert len(behind) == 60
    assert sum(ratio <= 1.1 for ratio in behind) >= 0.95 * len(behind)
    assert behind[0] <= 1.35
    assert behind[1] <= 1.3


def peaks_of(size, shifts, *, frames=None, pairs=None):
    batch = {"lefts": pairs, "rights": pairs} if pairs else {"rights": frames, "rights_per_left": frames}
    return Problem((size, size), (size, size), (-(shifts // 2),) * 2, (shifts, shifts), **batch)


TRIALS = [
    (peaks_of(512, 17, frames=256), True, 274.0, 900.0),
    (peaks_of(512, 33, frames=64), True, 179.5, 872.0),
    (peaks_of(1024, 9, frames=4), True, 50.6, 33.6),
    (peaks_of(2048, 9, frames=4), True, 136.4, 95.1),
    (peaks_of(16, 9, pairs=16384), False, 132.7, 61.9),
    (peaks_of(16, 31, pairs=64), False, 7.6, 11.8),
    (peaks_of(16, 9, pairs=64), False, 6.4, 9.4),
    (peaks_of(32, 9, pairs=64), False, 7.1, 9.9),
    (peaks_of(32, 9, pairs=1024), False, 14.5, 21.1),
    (peaks_of(32, 33, pairs=1), False, 9.4, 12.7),
    (peaks_of(64, 9, pairs=64), False, 10.0, 13.6),
]
"""Problem, whether of scores, microseconds of the batch on tensor cores and by direct kernels: ``kernel_trials.json``
and ``correlation_bench.json``."""


@pytest.mark.parametrize(("problem", "normalize", "tensor", "direct"), TRIALS, ids=str)
def test_peaks_are_left_to_the_faster_engine_of_recorded_trials(problem, normalize, tensor, direct):
    faster = "tensor" if tensor < direct else "direct"
    assert decide_peaks(problem, normalize=normalize, limits=H200).engine == faster


ON_TENSOR_CORES = [
    "registration 256 frames 512^2 +-8 zncc peak",
    "registration 512 frames 512^2 32x32 zncc peak",
    "registration 512 uint16 frames 512^2 32x32 zncc peak",
    "registration 128 frames 1024^2 32x32 zncc peak",
    "registration 128 frames 1024^2 64x64 zncc peak",
    "registration 32 frames 2048^2 32x32 zncc peak",
    "registration 2048 frames 256^2 32x32 zncc peak",
    "registration 1 frame 1024^2 32x32 zncc peak",
    "n-to-mn 16384 x 64^2 +-16 peak",
    "n-to-mn 16384 x 32^2 full peak",
]
"""Peaks in the table "On tensor cores" of ``docs/benchmarks.md``."""


@pytest.mark.parametrize("name", ON_TENSOR_CORES)
def test_the_table_on_tensor_cores_is_of_what_is_chosen(name):
    case = next(case for case in CASES if case.name == name)
    dtypes = case.left_type, case.right_type
    assert decide_peaks(case.problem, dtypes=dtypes, normalize=case.task == "zncc-peak", limits=H200).engine == "tensor"
