"""The benchmark of a suite: every case, every contender, checked and timed in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from benchmarks.harness.contender import Contender
from benchmarks.harness.contenders import has_torch
from benchmarks.harness.device_rates import DeviceRates, measure_rates
from benchmarks.harness.effort import QUICK, THOROUGH, Effort
from benchmarks.harness.fastest import Outcome, free_device_memory
from benchmarks.harness.record import require_device, run_record
from benchmarks.work.case import Work
from benchmarks.work.means import group_means
from benchmarks.work.records import WorkResult, WorkTiming
from benchmarks.work.suite import Suite, outcomes_of
from benchmarks.work.torch_run import torch_outcomes
from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["WorkBenchmark", "better_of"]

_COMPILERS, _COMPILERS_OF_LARGE = 16, 2
_LARGE_BYTES = 3e9
"""Cases that move more run few at a time ahead, for their memory."""


class WorkBenchmark:
    """One run of a suite on the current device.

    Parameters
    ----------
    suite : Suite
        What is run.
    quick : bool
        Fewer repetitions and attempts.
    effort : Effort, optional
        How thoroughly times are taken, in place of what `quick` says.

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

    def __init__(self, suite: Suite, *, quick: bool = False, effort: Effort | None = None) -> None:
        self.status = require_device()
        effort = effort or (QUICK if quick else replace(THOROUGH, clock=suite.clock))
        self._suite, self._effort = suite, effort
        self.rates: DeviceRates = measure_rates(effort.clock, self.status.multiprocessors)
        self._of_torch: dict[str, list[Outcome]] = {}
        free_device_memory()

    def time_torch(self, cases: Sequence[Work], say: Callable[[str], object] = str) -> None:
        """Time what runs in PyTorch, in fresh processes: with cuDNN's own choice of algorithm, and with its search."""
        if not has_torch():
            return
        for search in (True,) if self._effort.quick else (True, False):
            wanted = [case for case in cases if any(self._suite.of_torch(case, search))]
            if not wanted:
                continue
            say(f"timing PyTorch in a fresh process, cuDNN's search for the fastest algorithm {_on_off(search)} ...")
            found = torch_outcomes(self._suite.name, wanted, self._effort, current_device(), search=search)
            for name, outcomes in found.items():
                self._of_torch[name] = better_of(self._of_torch.get(name, []), outcomes)

    def compile_ahead(self, cases: Sequence[Work]) -> None:
        """Run the product's own contenders once, several at a time, so that no case waits for the compiler."""
        cupy = importlib.import_module("cupy")
        device = current_device()

        def run(work: tuple[Any, Contender]) -> None:
            case, contender = work
            with cupy.cuda.Device(device), suppress(Exception):  # what fails is reported where it is timed
                for attempt in contender.attempts(case, self._suite.data(case, cupy, 1)):
                    attempt.run()

        works = [(case, each) for case in cases for each in self._suite.contenders(case) if each.own]
        large = [work for work in works if work[0].moved_bytes > _LARGE_BYTES]
        small = [work for work in works if work[0].moved_bytes <= _LARGE_BYTES]
        for workers, some in ((_COMPILERS, small), (_COMPILERS_OF_LARGE, large)):
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, some))
        cupy.cuda.Device().synchronize()
        free_device_memory()

    def measure(self, case: Any) -> WorkResult:
        """Check and time every contender of a case in this process, and gather what PyTorch's processes found."""
        cupy = importlib.import_module("cupy")
        contenders = self._suite.contenders(case)
        outcomes = outcomes_of(self._suite, case, contenders, cupy, self._effort) + self._of_torch.get(case.name, [])
        free_device_memory()
        return WorkResult(
            case.name,
            case.group,
            case.goals,
            case.fma,
            case.moved_bytes,
            case.floor_seconds(self.rates) * 1e6,
            tuple(WorkTiming.of(outcome, case, self.rates) for outcome in outcomes),
        )

    def record(self, results: Sequence[WorkResult]) -> dict[str, Any]:
        """Gather what a file of results holds."""
        means = group_means(results, self._suite.mean_goals)
        return run_record(self.status, self.rates, quick=self._effort.quick, has_torch=has_torch()) | {
            "benchmark": self._suite.name,
            "cases": [result.as_dict() for result in results],
            "means": [asdict(mean) for mean in means],
            "timings": [asdict(timing) for result in results for timing in result.timings],
        }


def better_of(first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Outcome]:
    """Keep the faster outcome of each contender."""
    best: dict[str, Outcome] = {}
    for outcome in (*first, *second):
        known = best.get(outcome.what)
        if known is None or (not outcome.failure and (known.failure or outcome.seconds < known.seconds)):
            best[outcome.what] = outcome
    return list(best.values())


def _on_off(flag: bool) -> str:
    return "on" if flag else "off"
