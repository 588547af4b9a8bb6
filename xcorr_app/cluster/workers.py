"""The client's side of a run on a cluster: hands out stacks, learns what became of them, keeps count of workers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distributed import KilledWorker

from xcorr_app.cluster.divided_stacks import measured_in_parts
from xcorr_app.cluster.scheduling import handed_out
from xcorr_app.cluster.task import BEGUN, Job, compute_stack
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.environment import own_version, versions
from xcorr_app.pipeline.failures import reason_of
from xcorr_app.pipeline.outcome import Known, Outcome
from xcorr_app.pipeline.resources import Resources
from xcorr_app.pipeline.state import State
from xcorr_app.pipeline.work import Finished, Options, Plan, ResultT, Watcher, Work

if TYPE_CHECKING:
    from distributed import Client

    from xcorr_app.gpu.runtime.select import Device

_SECONDS_TO_APPEAR = 10.0
"""That a network's file system may take to show here what a worker wrote."""
_NOT_SEEN = (
    "worker {host} has finished it, but {out} shows nothing of it here: the folder must be on a disk that the client "
    "and all workers share, under one name"
)
_WORKERS_DIED = (
    "{count} workers ended while they computed it, the last on {host}: perhaps for want of memory; give them more, or "
    "this stack to one worker alone"
)


class Workers:
    """Workers of a cluster, as `run_stacks` wants them."""

    def __init__(self, client: Client, choose_device: Callable[[Any], Device]) -> None:
        self._client, self._choose_device = client, choose_device
        self._begun: dict[str, list[str]] = {}
        self._devices: dict[str, str] = {}
        self._stacks: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._steps: dict[str, list[dict[str, Any]]] = {}
        client.subscribe_topic(BEGUN, self._take_note)

    def compute_stacks(
        self,
        plan: Plan[Options],
        work: Work[ResultT],
        resources: Resources,
        files: dict[str, dict[str, str]],
        *,
        resume: bool = False,
        stop_at_defects: bool = False,
        watcher: Watcher | None = None,
        finished: Callable[[int, Outcome[ResultT]], Outcome[ResultT]] | None = None,
    ) -> list[Known[ResultT]]:
        """Let workers compute every series of a plan.

        Raises
        ------
        ClusterError
            The scheduler is lost; what was finished stays, and ``--resume`` goes on from it.
        """
        series, known = plan.discovery.series, dict[int, Known[ResultT]]()
        job = Job(
            type(work), self._choose_device, plan.options, plan.out, resources.memory.limit, resources.compression,
            resources.pyramid, resume, stop_at_defects, uuid.uuid4().hex[:12], own_version(),
        )  # fmt: skip
        progress = watcher("cluster") if watcher is not None else None
        with resources.stages.waiting("workers"):
            before = {spec.name for spec in series if resume and State(plan.out).knows(spec.name)}
            key = json.dumps([work.program, plan.options.parameters(), files, versions(), job.compression, job.pyramid])
            measured = measured_in_parts(self._client, job, series, before, key)
            self._kept = {series[number].name: found.kept for number, found in measured.items() if found.kept}
            self._steps = {series[number].name: found.steps for number, found in measured.items()}
            divided = {number: (found.passes, found.key) for number, found in measured.items()}
            tasks = [(job, spec, *divided.get(number, (None, ""))) for number, spec in enumerate(series)]
            for number, told in handed_out(self._client, compute_stack, tasks):
                one = self._known(told, series[number], plan, work, stop_at_defects=stop_at_defects)
                known[number] = one if finished is None else replace(one, outcome=finished(number, one.outcome))
                if progress is not None:
                    progress("stacks", len(known), len(series))
        return [known[number] for number in range(len(series))]

    def as_record(self) -> dict[str, Any]:
        """Who computed how many stacks, and parts of large ones, on what; and which were begun more than once."""
        return {
            "workers": {
                worker: {"device": device, "stacks": self._stacks.get(worker, 0), "parts": self._parts.get(worker, 0)}
                for worker, device in sorted(self._devices.items())
            },
            "divided": self._steps,
            "resumed_blocks": self._kept,
            "retried": {name: workers for name, workers in sorted(self._begun.items()) if len(workers) > 1},
        }

    def _known(
        self, told: Any, spec: SeriesSpec, plan: Plan[Options], work: Work[ResultT], *, stop_at_defects: bool
    ) -> Known[ResultT]:
        """What became of a stack: its record, read from the output folder, or why it failed, in words."""
        if isinstance(told, BaseException):
            reason = self._reason(told, spec, work, stop_at_defects=stop_at_defects)
            return Known(Outcome(spec.name, failure=reason), {})
        worker = self._begun.get(spec.name, [told.host])[-1]
        self._devices[worker] = told.device
        self._stacks[worker] = self._stacks.get(worker, 0) + 1
        if told.failure is not None:
            return Known(Outcome(spec.name, failure=f"{told.failure} (on worker {told.host})"), told.inputs)
        record, until = None, time.monotonic() + _SECONDS_TO_APPEAR
        while (record := State(plan.out).record_of(spec.name)) is None and time.monotonic() < until:
            time.sleep(0.1)
        result = None if record is None else work.restored(spec.name, record)
        if record is None or result is None:
            return Known(Outcome(spec.name, failure=_NOT_SEEN.format(host=told.host, out=plan.out)), told.inputs)
        flagged = work.is_flagged(Finished(record["facts"], [], result))
        outcome = Outcome(spec.name, record["facts"], result, flagged=flagged, resumed=told.resumed)
        return Known(outcome, told.inputs)

    def _reason(self, error: BaseException, spec: SeriesSpec, work: Work[Any], *, stop_at_defects: bool) -> str:
        if isinstance(error, KilledWorker):
            begun = self._begun.get(spec.name, [])
            return _WORKERS_DIED.format(count=len(begun), host=begun[-1] if begun else "an unknown machine")
        if isinstance(error, ModuleNotFoundError):
            return f"a worker lacks a module ({error}): install the same xcorr-app on all machines"
        if stop_at_defects or not isinstance(error, Exception):
            raise error
        return reason_of(error, work.less_memory)

    def _take_note(self, event: tuple[float, dict[str, Any]]) -> None:
        """A worker says that it begins a stack, or a part of one."""
        said = event[1]
        worker = f"{said['host']}, process {said['pid']}"
        self._begun.setdefault(said["stack"], []).append(worker)
        if "device" in said:
            self._devices[worker] = said["device"]
            self._parts[worker] = self._parts.get(worker, 0) + 1
