"""The client's side of a run on a cluster: hands out stacks, learns what became of them, keeps count of workers.

Few more tasks are out at any time than there are workers: neither the client nor the scheduler holds more for ten
thousand stacks than for a hundred.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distributed import CancelledError, KilledWorker, as_completed

from xcorr_app.cluster.task import STARTED, compute_stack
from xcorr_app.errors import ClusterError
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.resources import Resources
from xcorr_app.pipeline.stack_steps import outcome_of
from xcorr_app.pipeline.stages import own_version
from xcorr_app.pipeline.work import Outcome, Watcher, Work, reason_of

if TYPE_CHECKING:
    from distributed import Client


_OUT_PER_WORKER = 2
"""One that is computed, and one that waits at the worker, so that it never waits for the client."""
_SECONDS_BETWEEN_COUNTS = 2.0
LOST = "the scheduler {address} is lost; what was finished is kept: start the cluster again, and go on with --resume"


def handed_out(
    client: Client, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Call a function with each of some arguments on workers; in the order in which they end.

    Yields
    ------
    number : int
        Place of the arguments.
    result : Any
        What the function returned, or the exception that it raised, or that befell it.

    Raises
    ------
    ClusterError
        The scheduler is lost.
    """
    address = client.scheduler_info()["address"]
    run, waiting = uuid.uuid4().hex[:12], iter(range(len(arguments)))
    numbers: dict[str, int] = {}
    counted, room = -math.inf, 0
    tasks = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        while True:
            if time.monotonic() - counted > _SECONDS_BETWEEN_COUNTS:
                room = _OUT_PER_WORKER * max(1, sum(client.nthreads().values()))
                counted = time.monotonic()
            while len(numbers) < room and (number := next(waiting, None)) is not None:
                key = f"xcorr-{run}-{number}"
                numbers[key] = number
                tasks.add(client.submit(function, *arguments[number], key=key, pure=False))
            if not numbers:
                return
            future, result = next(tasks)
            if isinstance(result, CancelledError):
                raise ClusterError(LOST.format(address=address))
            number = numbers.pop(future.key)
            yield number, result[1] if future.status == "error" else result
            # The cluster forgets a task once nobody here knows it.
            del future, result
    except (OSError, RuntimeError) as error:
        if isinstance(error, ClusterError) or client.status == "running":
            raise
        raise ClusterError(LOST.format(address=address)) from error
    finally:
        if client.status == "running":
            client.cancel(list(tasks.futures))


_SECONDS_TO_APPEAR = 10.0
"""That a network's file system may take to show here what a worker wrote."""
_INVISIBLE = (
    "worker {host} has finished it, but {out} shows nothing of it here: the folder must be on a disk that the client "
    "and all workers share, under one name"
)
_WORKERS_DIED = (
    "{count} workers ended while they computed it, the last on {host}: perhaps for want of memory; give them more, or "
    "this stack to one worker alone"
)


class Workers:
    """Workers of a cluster, as `run_stacks` wants them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._started: dict[str, list[str]] = {}
        self._workers: dict[str, dict[str, Any]] = {}
        client.subscribe_topic(STARTED, self._take_note)

    def compute_stacks(
        self,
        work: Work[Any],
        resources: Resources,
        watcher: Watcher | None = None,
    ) -> list[Outcome]:
        """Let workers compute every series of a plan.

        Raises
        ------
        ClusterError
            The scheduler is lost; what was finished stays, and ``--resume`` goes on from it.
        """
        series, known = work.discovery.series, dict[int, Outcome]()
        sent = replace(work, discovery=replace(work.discovery, series=())), own_version()
        progress = watcher("cluster") if watcher is not None else None
        with resources.stages.waiting("workers"):
            for number, result in handed_out(self._client, compute_stack, [(*sent, spec) for spec in series]):
                known[number] = self._outcome(result, series[number], work)
                if progress is not None:
                    progress("stacks", len(known), len(series))
        return [known[number] for number in range(len(series))]

    def as_record(self) -> dict[str, Any]:
        """Who computed how many stacks, and on what; and which were started more than once."""
        retried = {name: workers for name, workers in sorted(self._started.items()) if len(workers) > 1}
        return {"workers": dict(sorted(self._workers.items())), "retried": retried}

    def _outcome(self, result: Any, spec: SeriesSpec, work: Work[Any]) -> Outcome:
        """What became of a stack: its record, read from the output folder, or why it failed, in words."""
        if isinstance(result, BaseException):
            return Outcome(spec.name, failure=self._reason(result, spec, work))
        found, device, host = result
        worker = self._started.get(spec.name, [host])[-1]
        self._workers.setdefault(worker, {"device": device, "stacks": 0})["stacks"] += 1
        if found.failure is not None:
            return Outcome(spec.name, failure=f"{found.failure} (on worker {host})", inputs=found.inputs)
        until = time.monotonic() + _SECONDS_TO_APPEAR
        while (record := work.state.record_of(spec.name)) is None and time.monotonic() < until:
            time.sleep(0.1)
        outcome = outcome_of(work, spec.name, record or {}, found.inputs, resumed=found.resumed)
        invisible = _INVISIBLE.format(host=host, out=work.out)
        return outcome or Outcome(spec.name, failure=invisible, inputs=found.inputs)

    def _reason(self, error: BaseException, spec: SeriesSpec, work: Work[Any]) -> str:
        if isinstance(error, KilledWorker):
            started = self._started.get(spec.name, [])
            return _WORKERS_DIED.format(count=len(started), host=started[-1] if started else "an unknown machine")
        if isinstance(error, ModuleNotFoundError):
            return f"a worker lacks a module ({error}): install the same xcorr-app on all machines"
        if work.options.debug or not isinstance(error, Exception):
            raise error
        return reason_of(error, work.less_memory)

    def _take_note(self, event: tuple[float, dict[str, Any]]) -> None:
        """A worker says that it begins a stack."""
        task = event[1]
        self._started.setdefault(task["stack"], []).append(f"{task['host']}, process {task['pid']}")
