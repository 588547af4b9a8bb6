"""Time every candidate of every problem and compare the choice with the best of them.

Two times are taken of a call. That on the device: a kernel keeps the queue busy until the host has started several
calls, so that no host time is in it. And that of a call among many: calls in a row, where the host's time counts as far
as it is the longer one, as it does in a user's loop. What a choice is held to is the second.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.auto.domain import Domain, Run
from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.launch import Launch

__all__ = ["Outcome", "call_times", "compile_ahead", "measure_domain", "share_within"]

GOOD = 1.1
"""A choice is good that takes at most so many times the best candidate's time."""

_READING = 400.0
_LONG = 10_000.0
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
    device_microseconds: dict[str, float]
    expected: dict[str, float | None]

    @property
    def best(self) -> str:
        """Name the fastest candidate."""
        return min(self.microseconds, key=self.microseconds.__getitem__)

    @property
    def ratio(self) -> float:
        """Time of the chosen candidate over the best one's."""
        return self.microseconds[self.chosen] / self.microseconds[self.best]

    @property
    def device_ratio(self) -> float:
        """The same of times on the device alone."""
        return self.device_microseconds[self.chosen] / min(self.device_microseconds.values())


def measure_domain(domain: Domain, count: int, seed: int) -> list[Outcome]:
    """Draw problems and time all their candidates on the current device."""
    problems = domain.problems(np.random.default_rng(seed), count)
    compile_ahead(launch for problem in problems for launch in domain.launches(problem))
    return [_measured(domain, problem) for problem in problems]


def share_within(outcomes: Sequence[Outcome], limit: float = GOOD) -> float:
    """Fraction of the problems whose choice takes at most `limit` times the best candidate's time."""
    return sum(outcome.ratio <= limit for outcome in outcomes) / max(1, len(outcomes))


def call_times(run: Run) -> tuple[float, float]:
    """Median microseconds of a call among many, and of the device alone."""
    cupy = importlib.import_module("cupy")
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    def timed(calls: int, ahead: float) -> float:
        if ahead:
            _spin()((1,), (1,), (np.int64(ahead * _CYCLES),))
        start.record()
        for _ in range(calls):
            run()
        stop.record()
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) * 1e3 / calls

    timed(2, 0)
    once = timed(3, 0)
    calls = max(2, min(20, int(_READING / max(once, 1.0))))
    repeats = _REPEATS if once < _LONG else 3
    among_many = statistics.median(timed(calls, 0) for _ in range(repeats))
    if among_many > _LONG:
        return among_many, among_many
    ahead = min(20_000.0, 1.5 * calls * among_many + 50)
    return among_many, min(among_many, statistics.median(timed(calls, ahead) for _ in range(repeats)))


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
    times = {name: call_times(run) for name, run in domain.candidates(problem).items()}
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    expected = {candidate.name: candidate.microseconds for candidate in decision.candidates}
    of_call, of_device = ({name: round(time[i], 2) for name, time in times.items()} for i in range(2))
    return Outcome(domain.name, str(problem), decision.name, decision.reason, of_call, of_device, expected)


@functools.cache
def _spin() -> Any:
    return importlib.import_module("cupy").RawKernel(_SPIN, "spin")
