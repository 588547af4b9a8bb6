"""A run of ``xcorr filter``: every series found is filtered."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xcorr_app.batch.decisions import decide_filter
from xcorr_app.batch.filter.device import filter_device
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.filter.stack import begin_filtering, filter_stack
from xcorr_app.batch.recorded_work import Facts, RecordedWork
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import OF_WORKERS
from xcorr_app.io import SeriesSpec, discover
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.state import asked_of
from xcorr_app.pipeline.work import Finished, Plan, Work

PROGRAM = "xcorr filter"


def plan_filter(
    inputs: list[Path],
    out: Path,
    options: FilterOptions,
    *,
    resume: bool = False,
    overwrite: bool = False,
    elsewhere: bool = False,
) -> Plan[FilterOptions]:
    """Find the series, choose the device (unless workers `elsewhere` do) and check the output folder."""
    device = OF_WORKERS if elsewhere else filter_device(options)
    discovery = discover(inputs, options.layout, options.limits, channel=options.channel)
    asked = asked_of(PROGRAM, options.parameters(), inputs)
    check_output(out, discovery, inputs, asked, resume=resume, overwrite=overwrite)
    return Plan(discovery, device, tuple(inputs), out, options)


def work_of(plan: Plan[FilterOptions]) -> Work[Facts]:
    """What is done to each stack of a plan."""
    return _Filter(plan)


class _Filter(RecordedWork):
    """Filters one stack, for the run loop."""

    program = PROGRAM

    def __init__(self, plan: Plan[FilterOptions]) -> None:
        self._plan = plan

    def files(self) -> dict[str, tuple[Path, ...]]:
        taps = self._plan.options.choice.file
        return {"taps_file": () if taps is None else (taps,)}

    def outputs(self, name: str) -> list[Path]:
        return [self._plan.out / name / f"{name}_filtered.tif"]

    def decide(self, spec: SeriesSpec) -> Decision:
        with spec.open() as source:
            return decide_filter(source.metadata, self._plan.options, self._plan.device.xp)

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`."""
        if self._plan.device.xp is not np:
            begin_filtering(spec, self._plan.options, self._plan.device, resources, ahead=True)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[Facts]:
        (target,) = self.outputs(spec.name)
        facts = filter_stack(spec, self._plan.options, self._plan.device, target, resources)
        return Finished(facts, [target], facts)

    def is_flagged(self, finished: Finished[Facts]) -> bool:
        return bool(finished.facts["unreadable"])
