"""The share of a machine's cores that a worker of ours keeps to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin

_THREADS = Path("/proc/self/task")


class KeepToCores(WorkerPlugin):  # type: ignore[misc,unused-ignore]
    """Keeps a worker to some cores, also one that is begun in the place of another; nothing where there are none."""

    name = "xcorr-cores"

    def __init__(self, cores: list[int]) -> None:
        self._cores = cores

    def setup(self, worker: Any) -> None:
        """Keep the process's threads, and those that they start, to the cores."""
        if self._cores and _THREADS.is_dir():
            for thread in _THREADS.iterdir():
                os.sched_setaffinity(int(thread.name), self._cores)


def shares(count: int) -> list[list[int]]:
    """Cores of each of `count` workers; several share one where there are fewer cores. Empty where none are known."""
    if not hasattr(os, "sched_getaffinity"):
        return [[]] * count
    cores = sorted(os.sched_getaffinity(0))
    return [cores[number::count] or [cores[number % len(cores)]] for number in range(count)]
