"""Try other tunings of the filter, Im2win and pointwise kernels than the tables' on one GPU.

    python benchmarks/filter_tunings.py --kernel separable [--seconds 60] [--only "sigma 2"] [--json FILE]

Times a small grid of macro values on every case, as ``python -m benchmarks`` times the product, and prints the best.
What differs least from the table is tried first, so that a short run is of use too; every answer is checked before
it is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _filter_grids import GRIDS, Grid

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.harness.device_rates import DeviceRates, measure_rates
from benchmarks.harness.effort import Effort
from benchmarks.harness.environment import environment
from benchmarks.harness.fastest import Outcome, fastest_of, free_device_memory
from benchmarks.harness.suites import SUITES
from xcorr_app.gpu.runtime.device import require_cuda
from xcorr_app.gpu.runtime.placement import current_device

COMPILERS = 16
"""Tunings compiled at a time; the run-time compiler lets other threads of Python work."""
EFFORT = Effort(Clock(repeats=3, min_seconds=0.004))
_TOP = 6


@dataclass(frozen=True)
class Trial:
    """One tuning on one case: macros that replace the table's, the outcome, and its time over the floor."""

    case: str
    tuning: dict[str, int]
    outcome: Outcome
    multiple_of_floor: float


def sweep(grid: Grid, case: Any, rates: DeviceRates, seconds: float, xp: Any) -> Iterator[Trial]:
    """Try tunings of a case until a time is over, the table's own in any case."""
    suite, began = SUITES[grid.suite], time.monotonic()
    data = suite.data(case, xp, case.copies)
    expected = suite.expected(case, data)
    remaining = grid.tried()
    while batch := list(islice(remaining, COMPILERS)):
        compile_ahead(grid, case, batch, xp)
        for tuning in batch:
            if tuning and time.monotonic() - began > seconds:
                return
            contender = Contender("tuning", grid.attempts(tuning), choice="tuning")
            outcome = fastest_of(contender, case, data, expected, EFFORT)
            yield Trial(case.name, tuning, outcome, outcome.seconds / case.floor_seconds(rates))


def compile_ahead(grid: Grid, case: Any, batch: Sequence[dict[str, int]], xp: Any) -> None:
    """Run tunings once each, several at a time, on one small copy of the data."""
    device = current_device()

    def run(tuning: dict[str, int]) -> None:
        # What is refused says so where it is timed.
        with xp.cuda.Device(device), suppress(Exception):
            for attempt in grid.attempts(tuning)(case, data):
                attempt.run()

    data = SUITES[grid.suite].data(case, xp, 1)
    at_once = max(1, min(COMPILERS, int(30e9 / case.moved_bytes)))
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, batch))
    xp.cuda.Device().synchronize()
    free_device_memory()


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that gave a time, the fastest first."""
    return sorted((trial for trial in trials if not trial.outcome.failure), key=lambda trial: trial.outcome.seconds)


def described(trial: Trial) -> str:
    """Return a trial as a line."""
    macros = " ".join(f"{name}={value}" for name, value in trial.tuning.items()) or "(the table's own)"
    return f"  {trial.outcome.seconds * 1e6:10.2f} us {trial.multiple_of_floor:7.3f} x floor  {macros}"


def report(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the lines of a case: the best, the table's own, how many were tried and refused."""
    best = ranked(trials)
    own = next((trial for trial in best if not trial.tuning), None)
    yield f"{trials[0].case}: {len(best)} timed, {len(trials) - len(best)} refused"
    for trial in best[:_TOP]:
        yield described(trial)
    if own is not None and own not in best[:_TOP]:
        yield described(own)
    if own is None and not trials[0].tuning:
        yield f"  the table's own: {trials[0].outcome.failure}"


def summary(trials: Sequence[Trial]) -> str:
    """Return the best of a case and the table's own as one line."""
    best = ranked(trials)
    if not best:
        return f"{trials[0].case}: none timed"
    own = next((f"{trial.multiple_of_floor:.3f}" for trial in best if not trial.tuning), "refused")
    return f"{trials[0].case:44} table {own:>7} {described(best[0])}"


def main() -> None:
    """Sweep the cases asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True, choices=GRIDS, help="whose macros are varied")
    parser.add_argument("--seconds", type=float, default=120.0, help="time for all cases together (default: 120)")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--json", type=Path, help="also write every trial to this file")
    given = parser.parse_args()
    grid = GRIDS[given.kernel]
    work = [(grid, case) for case in grid.chosen(given.only)]
    if not work:
        parser.error(f"no case of {given.kernel} has a name that contains {given.only!r}")
    status = require_cuda()
    import cupy

    rates = measure_rates(EFFORT.clock, status.multiprocessors)
    free_device_memory()
    print(f"{status.name}: {rates.fma / 1e12:.1f} TFMA/s, copy {rates.copy / 1e12:.2f} TB/s", flush=True)
    everything: list[list[Trial]] = []
    for grid, case in work:
        trials = list(sweep(grid, case, rates, given.seconds / len(work), cupy))
        print(*report(trials), sep="\n", flush=True)
        everything.append(trials)
    print(*map(summary, everything), sep="\n", flush=True)
    if given.json:
        lines = [
            {
                "case": trial.case,
                "tuning": trial.tuning,
                "microseconds": None if trial.outcome.failure else trial.outcome.seconds * 1e6,
                "failure": trial.outcome.failure,
            }
            for trials in everything
            for trial in trials
        ]
        record = {"environment": environment(), "kernel": given.kernel, "trials": lines}
        given.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
