"""Compile what the contenders of a suite launch, in as many processes as there are processors.

The run-time compiler takes one kernel at a time in a process; what it makes is found again in the cache on disk.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial

from benchmarks.harness.case import Work
from benchmarks.harness.suite import Suite

_MAX_PROCESSES = 12
"""They share the device's memory."""


def compile_ahead(suite: Suite, cases: Sequence[Work]) -> None:
    """Run every contender of the cases once, on one copy of its data."""
    names = [case.name for case in cases]
    processes = min(_MAX_PROCESSES, os.cpu_count() or 1, len(names))
    context = multiprocessing.get_context("spawn")
    # A kernel that ends its process is told of where it is timed.
    with ProcessPoolExecutor(processes, context) as pool, suppress(BrokenProcessPool):
        list(pool.map(partial(run_share, suite.name, names, processes), range(processes)))


def run_share(suite_name: str, names: Sequence[str], shares: int, share: int) -> None:
    """Run one share of the contenders. What is refused says so where it is timed."""
    from benchmarks.suites import ALL_SUITES

    cupy, suite = importlib.import_module("cupy"), ALL_SUITES[suite_name]
    by_name = {case.name: case for case in suite.cases}
    works = [(by_name[name], contender) for name in names for contender in suite.contenders(by_name[name])]
    for case, contender in works[share::shares]:
        with suppress(Exception):
            for attempt in contender.attempts(case, suite.data(case, cupy, 1)):
                attempt.run()
        cupy.get_default_memory_pool().free_all_blocks()
