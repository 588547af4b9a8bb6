"""The benchmark of a suite: every case, every contender, checked, timed, recorded and printed in one run."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness.clock import Clock
from benchmarks.harness.compile import compile_ahead
from benchmarks.harness.device_rates import measure_rates
from benchmarks.harness.environment import environment
from benchmarks.harness.fastest import free_device_memory
from benchmarks.harness.record import has_torch, require_device, write_json
from benchmarks.harness.result import Result
from benchmarks.harness.suite import Suite
from benchmarks.harness.tables import print_ceilings, print_result, say
from xcorr_app.gpu.runtime.placement import current_device

_TIMED = ("numpy", "scipy", "cupy", "torch")
"""The libraries that a time depends on: none of them reads files."""


class Benchmark:
    """One run of a suite on the current device.

    Parameters
    ----------
    suite : Suite
        What is run.
    clock : Clock
        How thoroughly times are taken.

    Attributes
    ----------
    status : DeviceStatus
        What it runs on.
    rates : DeviceRates
        The ceilings, measured at the start.

    Raises
    ------
    DeviceError
        Without a CUDA device.
    """

    def __init__(self, suite: Suite, clock: Clock) -> None:
        self.status = require_device()
        self._suite, self._clock = suite, clock
        self.rates = measure_rates(clock, self.status.multiprocessors)
        if has_torch():
            _prepare_torch()
        free_device_memory()

    def measure(self, case: Any) -> Result:
        """Check and time every contender of a case."""
        contenders = [*self._suite.contenders(case), *(self._suite.of_torch(case) if has_torch() else ())]
        outcomes = self._suite.outcomes(case, contenders, importlib.import_module("cupy"), self._clock)
        free_device_memory()
        return Result(case, self.rates, tuple(outcomes), self._suite.auto(case))

    def record(self, results: Sequence[Result]) -> dict[str, Any]:
        """Gather what a file of results holds; with each case, how many readings its times are of, and when taken."""
        about = environment()
        taken = {"readings": self._clock.repeats, "date": about["date"]}
        return {
            "environment": about,
            "device": asdict(self.status),
            "rates": {
                "tfma_per_second": self.rates.fma / 1e12,
                "copy_terabytes_per_second": self.rates.copy / 1e12,
                "empty_kernel_microseconds": self.rates.empty * 1e6,
            },
            "pytorch": has_torch(),
            "benchmark": self._suite.name,
            "cases": [result.as_dict() | taken for result in results],
            "timings": [timing for result in results for timing in result.timings()],
        }


def run_suite(console: Console, suite: Suite, only: str, path: Path | None, *, quick: bool) -> None:
    """Check and time the cases whose name contains a text, and print their tables.

    The record is written after each case. It keeps what an earlier run on the same device and versions
    measured besides, so that a run that is broken off loses nothing.
    """
    cases = suite.cases_named(only, quick=quick)
    clock = suite.quick if quick else suite.clock
    benchmark = Benchmark(suite, clock)
    print_ceilings(console, benchmark.status, benchmark.rates, in_turn=any(case.copies > 1 for case in cases))
    compile_ahead(suite, cases)
    results = []
    for case in cases:
        results.append(benchmark.measure(case))
        print_result(console, results[-1])
        if path is not None:
            write_json(joined(benchmark.record(results), path, suite), path)
    if path is not None:
        say(console, f"Written: {path}")


def _prepare_torch() -> None:
    """Settings that count only if they are made before the first call: what cuDNN answers then, it keeps."""
    torch = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    torch.cuda.set_device(current_device())


def joined(record: dict[str, Any], path: Path, suite: Suite) -> dict[str, Any]:
    """Add to a record the cases that the file of an earlier run has besides, in the order of the suite.

    Cases of another device, driver or version of a library that is timed are left out: their times would not compare.
    So are cases that the suite no longer has.
    """
    earlier = json.loads(path.read_text()) if path.is_file() else None
    if earlier is None or _measured_on(earlier) != _measured_on(record):
        return record
    order = {case.name: i for i, case in enumerate(suite.cases)}
    new = {case["name"] for case in record["cases"]}
    kept = {case["name"] for case in earlier["cases"]} & order.keys() - new
    cases = record["cases"] + [case for case in earlier["cases"] if case["name"] in kept]
    timings = record["timings"] + [each for each in earlier["timings"] if each["case"] in kept]
    return record | {
        "cases": sorted(cases, key=lambda case: order[case["name"]]),
        "timings": sorted(timings, key=lambda timing: order[timing["case"]]),
    }


def _measured_on(record: Mapping[str, Any]) -> tuple[Any, ...]:
    environment = record["environment"]
    versions = {name: environment["versions"].get(name) for name in _TIMED}
    return environment["devices"][:1], versions, record["device"]
