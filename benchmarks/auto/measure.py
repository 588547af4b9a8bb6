"""Time every candidate of every problem and compare the choice with the best of them."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.auto.domain import Domain, Run
from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.launch import Launch

__all__ = ["Outcome", "compile_ahead", "device_microseconds", "measure_domain", "share_within"]

GOOD = 1.1
"""A choice is good that takes at most so many times the best candidate's time."""

_READING = 400.0
_LONG = 30_000.0
"""Microseconds: of work between two readings at least, and of one call that is timed but thrice."""
_REPEATS = 7
_SPIN = r'extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }'
_CYCLES = 2000
"""At most of a microsecond."""


@dataclass(frozen=True)
class Outcome:
    """What was measured on one problem: microseconds by candidate, and what the choice expected of them."""

    domain: str
    problem: str
    chosen: str
    reason: str
    microseconds: dict[str, float]
    expected: dict[str, float | None]

    @property
    def best(self) -> str:
        """Name the fastest candidate."""
        return min(self.microseconds, key=self.microseconds.__getitem__)

    @property
    def ratio(self) -> float:
        """Time of the chosen candidate over the best one's."""
        return self.microseconds[self.chosen] / self.microseconds[self.best]


def measure_domain(domain: Domain, count: int, seed: int) -> list[Outcome]:
    """Draw problems and time all their candidates on the current device."""
    problems = domain.problems(np.random.default_rng(seed), count)
    compile_ahead(launch for problem in problems for launch in domain.launches(problem))
    return [_measured(domain, problem) for problem in problems]


def share_within(outcomes: Sequence[Outcome], limit: float = GOOD) -> float:
    """Fraction of the problems whose choice takes at most `limit` times the best candidate's time."""
    return sum(outcome.ratio <= limit for outcome in outcomes) / max(1, len(outcomes))


def device_microseconds(run: Run) -> float:
    """Median time of one call on the device: the queue is kept busy meanwhile, so that host time is not in it."""
    cupy = importlib.import_module("cupy")
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    def timed(calls: int, ahead: float) -> float:
        _spin()((1,), (1,), (np.int64(ahead * _CYCLES),))
        start.record()
        for _ in range(calls):
            run()
        stop.record()
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) * 1e3 / calls

    run()
    host = _host_microseconds(run)
    once = timed(1, 1.5 * host + 50)
    calls = max(1, min(20, int(_READING / max(once, 1.0))))
    repeats = _REPEATS if once < _LONG else 3
    return statistics.median(timed(calls, min(20_000.0, 1.5 * calls * host + 50)) for _ in range(repeats))


def compile_ahead(launches: Iterable[Launch]) -> None:
    """Compile into the cache on disk, in as many processes as there are processors."""
    wanted = {}
    for launch in launches:
        wanted[launch.kernel, tuple(sorted(launch.defines.items())), launch.shared_bytes] = None
    if not wanted:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(14, os.cpu_count() or 1, len(wanted)), mp_context=context) as pool:
        list(pool.map(_compile, wanted, chunksize=4))


def _compile(wanted: tuple[str, tuple[tuple[str, str | int], ...], int]) -> None:
    kernel, defines, shared_bytes = wanted
    with suppress(Exception):  # said again, with its problem, where the candidate runs
        kernel_function(kernel, dict(defines), shared_bytes)


def _measured(domain: Domain, problem: Any) -> Outcome:
    decision = domain.decision(problem)
    times = {name: device_microseconds(run) for name, run in domain.candidates(problem).items()}
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    expected = {candidate.name: candidate.microseconds for candidate in decision.candidates}
    return Outcome(domain.name, str(problem), decision.name, decision.reason, times, expected)


def _host_microseconds(run: Run) -> float:
    """Wall time of a call's enqueueing."""
    importlib.import_module("cupy").cuda.Device().synchronize()
    began = time.perf_counter()
    run()
    return 1e6 * (time.perf_counter() - began)


@functools.cache
def _spin() -> Any:
    return importlib.import_module("cupy").RawKernel(_SPIN, "spin")
