"""What a worker does: one stack, by the same code as without a cluster, from disk to disk.

Only names, checksums and words travel. Pixels, tables and pictures go to the output folder, which all workers and the
client see.
"""

from __future__ import annotations

import os
import platform
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin

from xcorr_app.errors import ClusterError
from xcorr_app.io import Discovery, SeriesSpec
from xcorr_app.io.writing.atomic import remove_abandoned
from xcorr_app.pipeline.run import compute_stacks
from xcorr_app.pipeline.stages import own_version
from xcorr_app.pipeline.work import Outcome, Work

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


STARTED = "xcorr-started"
"""Topic of the event by which a worker says that it begins a task: of one that dies nothing else is known."""

_ONE_AT_A_TIME = threading.Lock()
"""A stack takes all cores, and the device, of its process."""


def compute_stack(work: Work[Any], version: str, spec: SeriesSpec) -> tuple[Outcome, str, str]:
    """Compute one stack on a worker, which has a program of the client's `version`: another might give other results.

    Returns what became of it, without the results themselves, the device and the machine.
    """
    from distributed import get_worker

    host = platform.node()
    get_worker().log_event(STARTED, {"stack": spec.name, "host": host, "pid": os.getpid()})
    if own_version() != version:
        raise ClusterError(f"worker {host} has xcorr {own_version()}, the client {version}: install the same")
    with _ONE_AT_A_TIME:
        device = replace(work.chosen_device(work.options), is_asked_for=True)  # another worker may have one that works
        work = replace(work, discovery=Discovery(spec.layout, (spec,), ()), device=device)
        for path in (*work.outputs(spec.name), work.state.attachment(spec.name, ".json")):
            # Of a worker that was killed in mid-task.
            remove_abandoned(path)
        (found,) = compute_stacks(work, work.options.resources())
    return replace(found, facts={}, result=None), device.description, host
