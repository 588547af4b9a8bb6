"""The client's side of stacks that are measured by several workers: which these are, and pass after pass of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from distributed import CancelledError

from xcorr_app.cluster.blocks import joined, stage_of
from xcorr_app.cluster.handing_out import LOST
from xcorr_app.cluster.task import MOVE, Job, described, end_sessions, measure_part, number_of_blocks
from xcorr_app.errors import ClusterError
from xcorr_app.io import SeriesSpec

if TYPE_CHECKING:
    from distributed import Client, Future

BLOCKS_A_TASK = 4
"""Fewest that are worth a task: 128 frames of 512 x 512 on a CPU, about a second of its time; on a device 4096."""
_MANY = 4
"""Stacks for each worker from which workers that are idle at the end are idle for a small part of the time."""
_TASKS_PER_WORKER = 4
"""In a pass: so that workers which are slower, or are started again, do not hold up the others by much."""


def measured_in_parts(client: Client, job: Job, series: Sequence[SeriesSpec], known: set[str]) -> dict[int, list[Any]]:
    """Measure stacks that would leave workers idle; of each, by number, futures of its passes, which stay with workers.

    Of as many stacks as workers each has one. Of more, those beyond a multiple of that number are divided, the largest
    first, if they have blocks for two tasks at least; of many, none. Those in `known` are finished. A stack of which a
    part fails is left to be computed whole, by which it fails or not as without a cluster.

    Raises
    ------
    ClusterError
        The scheduler is lost.
    """
    waiting = [number for number, spec in enumerate(series) if spec.name not in known]
    workers = len(client.nthreads())
    beyond = len(waiting) % workers if workers > 1 and len(waiting) < _MANY * workers else 0
    measured: dict[int, list[Any]] = {}
    address = client.scheduler_info()["address"]
    try:
        asked = [client.submit(number_of_blocks, job, series[number], pure=False) for number in waiting if beyond]
        blocks = {n: task.result() for n, task in zip(waiting, asked, strict=False) if task.exception() is None}
        for number in sorted(blocks, key=lambda number: -blocks[number])[:beyond]:
            parts = min(blocks[number] // BLOCKS_A_TASK, _TASKS_PER_WORKER * workers)
            if parts <= 1:
                continue
            try:
                passes = _passes(client, job, series[number], parts)
            finally:
                # They hold files open, and memory of devices.
                if client.status == "running":
                    client.run(end_sessions, on_error="ignore")
            if passes is not None:
                measured[number] = passes
    except CancelledError as error:
        raise ClusterError(LOST.format(address=address)) from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, ClusterError) or client.status == "running":
            raise
        raise ClusterError(LOST.format(address=address)) from error
    return measured


def _passes(client: Client, job: Job, spec: SeriesSpec, parts: int) -> list[Future[Any]] | None:
    """Futures of what the passes over a stack came to; None where a part failed."""
    passes: list[Future[Any]] = []
    of = client.submit(described, job, spec, pure=False)
    while True:
        name = f"xcorr-{job.run}-{spec.name}-{len(passes)}"
        tasks = [
            client.submit(measure_part, of, passes, part, parts, key=f"{name}-{part}", pure=False)
            for part in range(parts)
        ]
        both = client.submit(joined, tasks, key=f"{name}-joined", pure=False)
        stage = client.submit(stage_of, both, key=f"{name}-stage", pure=False)
        try:
            come_to = stage.result()
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - whoever computes the stack whole fails by the same, and says so
            client.cancel(tasks)
            return None
        if come_to is not None:
            passes.append(both)
        if come_to in (None, MOVE):
            return passes
