"""Time every candidate of every problem and compare the choice with the best of them.

Two times are taken of a call. That on the device: a kernel keeps the queue busy until the host has started several
calls, so that no host time is in it. And that of a call among many: calls in a row, where the host's time counts as far
as it is the longer one, as it does in a user's loop. What a choice is held to is the second. All candidates of a
problem are read in turns, and of each the least reading counts: a host that is slower for a while is so for all. Turns
go on until the least readings hardly fall any more, as those of a host with other work still do after a dozen.
"""

from __future__ import annotations

import functools
import gc
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.tuning.domain import Domain, Run

__all__ = ["Outcome", "call_times", "compile_ahead", "measure_domain", "measured", "share_within"]

GOOD = 1.1
"""A choice is good that takes at most so many times the best candidate's time."""

_READING = 1500.0
_LONG = 5_000.0
"""Microseconds: of work between two readings, and of one call from which on the host is not told apart."""
_REPEATS, _MOST_REPEATS, _FEW_REPEATS = 7, 40, 2
"""Turns: at least so many, none after so many, and of long calls."""
_CALM, _SETTLED = 5, 0.01
"""So many turns in a row in which no least reading fell by more than this share end the readings."""
_MIN_CALLS, _MAX_CALLS = 2, 50
_TELL_EVERY = 10
"""Problems."""
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


def measure_domain(domain: Domain, count: int, seed: int, tell: Callable[[str], None]) -> list[Outcome]:
    """Draw problems and time all their candidates on the current device; `tell` is told how far it has come."""
    began = time.perf_counter()

    def progress(text: str) -> None:
        tell(f"{domain.name}: {text} after {time.perf_counter() - began:.1f} s")

    problems = domain.problems(np.random.default_rng(seed), count)
    kernels = compile_ahead(launch for problem in problems for launch in domain.launches(problem))
    progress(f"{count} problems drawn, {kernels} kernels compiled")
    outcomes = []
    for problem in problems:
        outcomes.append(measured(domain, problem))
        if len(outcomes) % _TELL_EVERY == 0:
            progress(f"{len(outcomes)} problems measured")
    return outcomes


def share_within(outcomes: Sequence[Outcome], limit: float = GOOD) -> float:
    """Fraction of the problems whose choice takes at most `limit` times the best candidate's time."""
    return sum(outcome.ratio <= limit for outcome in outcomes) / max(1, len(outcomes))


def call_times(runs: Mapping[str, Run]) -> dict[str, tuple[float, float]]:
    """Least microseconds of a call among many, and of the device alone, of each."""
    with _no_collection():
        once = {name: _reading(run, 1 if _reading(run, 1) > _LONG else 3) for name, run in runs.items()}
        calls = {name: max(_MIN_CALLS, min(_MAX_CALLS, int(_READING / max(each, 1.0)))) for name, each in once.items()}
        among_many, alone = dict(once), dict(once)
        for name in (name for name in runs if once[name] > _LONG):
            readings = [_reading(runs[name], _MIN_CALLS) for _ in range(_FEW_REPEATS)]
            among_many[name] = alone[name] = min(once[name], *readings)
        short = [name for name in runs if once[name] <= _LONG]
        turns = calm = 0
        while short and (turns < _REPEATS or (calm < _CALM and turns < _MOST_REPEATS)):
            before = dict(among_many)
            for name in short:
                among_many[name] = min(among_many[name], _reading(runs[name], calls[name]))
                if turns < _REPEATS:  # the device's own time hardly varies
                    ahead = 1.5 * calls[name] * among_many[name] + 50
                    alone[name] = min(alone[name], _reading(runs[name], calls[name], ahead))
            fell = any(among_many[name] < (1 - _SETTLED) * before[name] for name in short)
            turns, calm = turns + 1, 0 if fell else calm + 1
            short = short[1:] + short[:1]  # none is always read after the same other
    return {name: (among_many[name], min(among_many[name], alone[name])) for name in runs}


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collection of garbage, which takes milliseconds now and then, out of what is read."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _reading(run: Run, calls: int, ahead: float = 0.0) -> float:
    """Microseconds of a call of several in a row, which a kernel may keep waiting for `ahead` microseconds."""
    cuda = importlib.import_module("cupy").cuda
    start, stop = cuda.Event(), cuda.Event()
    if ahead:
        _spin()((1,), (1,), (np.int64(ahead * _CYCLES),))
    start.record()
    for _ in range(calls):
        run()
    stop.record()
    stop.synchronize()
    return float(cuda.get_elapsed_time(start, stop)) * 1e3 / calls


def compile_ahead(launches: Iterable[Launch]) -> int:
    """Compile into the cache on disk, in as many processes as there are processors; how many kernels they are."""
    wanted: dict[tuple[str, tuple[tuple[str, str | int], ...]], int] = {}
    for launch in launches:  # which differ in shared memory alone, as searches do, are one kernel
        kernel = launch.kernel, tuple(sorted(launch.defines.items()))
        wanted[kernel] = max(launch.shared_bytes, wanted.get(kernel, 0))
    if wanted:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(14, os.cpu_count() or 1, len(wanted)), mp_context=context) as pool:
            list(pool.map(_compile, ((*kernel, shared_bytes) for kernel, shared_bytes in wanted.items())))
    return len(wanted)


def _compile(wanted: tuple[str, tuple[tuple[str, str | int], ...], int]) -> None:
    kernel, defines, shared_bytes = wanted
    with suppress(Exception):  # said again, with its problem, where the candidate runs
        kernel_function(kernel, dict(defines), shared_bytes)


def measured(domain: Domain, problem: Any, *, only_expected: bool = False) -> Outcome:
    """Time all candidates of a problem on the current device, or only the chosen one and those with an expected time.

    Of the others a table learns nothing, and a library may take a hundred times as long.
    """
    decision = domain.decision(problem)
    expected = {candidate.name: candidate.microseconds for candidate in decision.candidates}
    runs = domain.candidates(problem)
    if only_expected:
        runs = {name: run for name, run in runs.items() if expected.get(name) or name == decision.name}
    times = call_times(runs)
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    of_call, of_device = ({name: round(time[i], 2) for name, time in times.items()} for i in range(2))
    return Outcome(domain.name, str(problem), decision.name, decision.reason, of_call, of_device, expected)


@functools.cache
def _spin() -> Any:
    return importlib.import_module("cupy").RawKernel(_SPIN, "spin")
