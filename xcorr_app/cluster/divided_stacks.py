"""The client's side of stacks that are measured by several workers: which these are, and pass after pass of each."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributed import CancelledError

from xcorr_app.cluster import kept_parts
from xcorr_app.cluster.blocks import joined, told_of
from xcorr_app.cluster.scheduling import LOST
from xcorr_app.cluster.task import MOVE, Job, described, end_sessions, measure_part, number_of_blocks
from xcorr_app.errors import ClusterError
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.state import begun_folder

if TYPE_CHECKING:
    from distributed import Client, Future

BLOCKS_A_TASK = 4
"""Fewest that are worth a task: 128 frames of 512 x 512 on a CPU, about a second of its time."""
_BLOCKS_A_TASK_OF_DEVICE = 12
"""The same of a device: 12 288 frames, about half a second; to divide a stack takes about as long."""
_MANY = 4
"""Stacks for each worker from which workers that are idle at the end are idle for a small part of the time."""
_JOINTS = 4
"""In a pass, at most: their results are joined one after the other."""
_TASKS_PER_WORKER = 4
"""In a pass: so that workers which are slower, or are started again, do not hold up the others by much."""


@dataclass(frozen=True)
class Measured:
    """What became of a stack that was divided."""

    passes: list[Future[Any]]
    """Of what they came to, which stays with workers."""
    kept: int
    """Blocks that an earlier run had computed."""
    key: str
    """Of what is kept."""
    steps: list[dict[str, Any]]
    """For ``run.json``: what each pass took, and the decisions after the last one."""


def measured_in_parts(
    client: Client, job: Job, series: Sequence[SeriesSpec], known: set[str], key: str
) -> dict[int, Measured]:
    """Measure, move and write stacks that would leave workers idle; what became of each, by number.

    Of as many stacks as workers each has one. Of more, those beyond a multiple of that number are divided, the largest
    first, if they have blocks for two tasks at least; of many, none. Those in `known` are finished. A stack of which a
    part fails is left to be computed whole, by which it fails or not as without a cluster. What is computed is kept
    with the `key` of all that decides the results, the stacks' own files aside; with ``job.resume`` it is not computed
    again.

    Raises
    ------
    ClusterError
        The scheduler is lost.
    """
    waiting = [number for number, spec in enumerate(series) if spec.name not in known]
    workers = len(client.nthreads())
    beyond = len(waiting) % workers if workers > 1 and len(waiting) < _MANY * workers else 0
    measured: dict[int, Measured] = {}
    address = client.scheduler_info()["address"]
    try:
        asked = [client.submit(number_of_blocks, job, series[number], pure=False) for number in waiting if beyond]
        blocks = {n: task.result() for n, task in zip(waiting, asked, strict=False) if task.exception() is None}
        for number in sorted(blocks, key=lambda number: -blocks[number][1])[:beyond]:
            parts = tasks_of(*blocks[number], workers)
            if parts <= 1:
                continue
            spec = series[number]
            own_key = _key_of(spec, key) or job.run
            try:
                kept_parts.begin(begun_folder(job.out, spec.name), own_key, resume=job.resume)
            except OSError:
                continue  # whoever computes the stack whole says what is wrong
            try:
                found = _passes(client, job, spec, parts, own_key)
            finally:
                # They hold files open, and memory of devices.
                if client.status == "running":
                    client.run(end_sessions, on_error="ignore")
            if found is not None:
                measured[number] = found
    except CancelledError as error:
        raise ClusterError(LOST.format(address=address)) from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, ClusterError) or client.status == "running":
            raise
        raise ClusterError(LOST.format(address=address)) from error
    return measured


def tasks_of(on_device: bool, blocks: int, workers: int) -> int:
    """Into how many tasks a stack of so many blocks is divided; it stays whole where that is one, or none."""
    worth = blocks // (_BLOCKS_A_TASK_OF_DEVICE if on_device else BLOCKS_A_TASK)
    return min(worth, _TASKS_PER_WORKER * workers)


def _key_of(spec: SeriesSpec, key: str) -> str | None:
    """Tells a stack from others, by dates and sizes of its files; None where it has none."""
    try:
        found = {str(path): [(stat := path.stat()).st_size, stat.st_mtime_ns] for path in spec.paths}
    except OSError:
        return None
    return hashlib.sha256(json.dumps([key, repr(spec), found]).encode()).hexdigest()


def _passes(client: Client, job: Job, spec: SeriesSpec, parts: int, key: str) -> Measured | None:
    """What the passes over a stack came to; None where a part failed."""
    passes: list[Future[Any]] = []
    all_kept, steps = 0, list[dict[str, Any]]()
    of = client.submit(described, job, spec, key, pure=False)
    while True:
        name = f"{job.run}-{spec.name}-{len(passes)}"
        # Neighbours to one worker, in their order: it reads on where it was. Another one may take them over.
        workers = list(client.nthreads())  # none, where all are being started again
        both: Any = None
        begin = time.perf_counter()
        # Some at a time, in the order of the stack: what is joined takes no memory any more.
        for some in range(0, parts, together := -(-parts // _JOINTS)):
            tasks = [
                client.submit(
                    measure_part,
                    of,
                    passes,
                    part,
                    parts,
                    key=f"xcorr_part-{name}-{part}",
                    pure=False,
                    workers=workers[part * len(workers) // parts] if workers else None,
                    allow_other_workers=bool(workers),
                    priority=-part,
                )
                for part in range(some, min(some + together, parts))
            ]
            both = client.submit(joined, tasks, both, key=f"xcorr_joined-{name}-{some}", pure=False)
            del tasks
        told = client.submit(told_of, both, key=f"xcorr_told-{name}", pure=False)
        try:
            found = told.result()
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - whoever computes the stack whole fails by the same, and says so
            return None
        all_kept += found.kept
        seconds, of_all = round(time.perf_counter() - begin, 3), round(found.seconds, 3)
        steps.append({"pass": found.stage or "end", "seconds": seconds, "seconds_of_all_workers": of_all})
        if found.stage is not None:
            passes.append(both)
        if found.stage in (None, MOVE):
            return Measured(passes, all_kept, key, steps)
