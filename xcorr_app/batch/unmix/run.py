"""A run of ``xcorr unmix`` over many stacks: the channels of every series found are mixed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from xcorr_app.batch.decisions import decide_unmix
from xcorr_app.batch.recorded_work import Facts, RecordedWork
from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.batch.unmix.stack import UnmixPlan, channels_in_order, mix, mixing_of, plan_stack, write_record
from xcorr_app.correlation.engines import limits_of
from xcorr_app.decision import Decision
from xcorr_app.errors import OutputError
from xcorr_app.gpu.runtime.select import select_device
from xcorr_app.io import SeriesSpec, discover
from xcorr_app.io.channels import scan_with_colours
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.planes import begin_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.state import asked_of
from xcorr_app.pipeline.work import Finished, Plan, Work
from xcorr_app.registration.stack.frames import Frames

PROGRAM = "xcorr unmix"


def plan_unmix(
    inputs: list[Path], out: Path, options: UnmixOptions, *, resume: bool = False, overwrite: bool = False
) -> Plan[UnmixOptions]:
    """Find the series, choose the device, check the matrix and the output folder; nothing is written.

    Files with one page are a stack each, unless the layout says otherwise, T holds the channels, or names number them.
    """
    device = options.computes_on(select_device(options.device))
    mixing_of(options)
    single: Literal["frames", "stacks"] = "frames" if options.channel_axis == "T" else "stacks"
    discovery = discover(inputs, options.layout, options.limits, scan_with_colours, single=single)
    asked = asked_of(PROGRAM, options.parameters(), inputs)
    check_output(out, discovery, inputs, asked, resume=resume, overwrite=overwrite)
    if any(out.resolve() == path.parent.resolve() for spec in discovery.series for path in spec.paths):
        raise OutputError(f"{out}: holds the input itself; results must go elsewhere: choose another -o")
    return Plan(discovery, device, tuple(inputs), out, options)


def work_of(plan: Plan[UnmixOptions]) -> Work[Facts]:
    """What is done to each stack of a plan."""
    return _Unmix(plan)


class _Begun(NamedTuple):
    """A stack of which reading has begun."""

    plan: UnmixPlan
    brought: Frames | None
    """Its planes, on the way to a device."""


class _Unmix(RecordedWork):
    """Mixes the channels of one stack, for the run loop."""

    program = PROGRAM

    def __init__(self, plan: Plan[UnmixOptions]) -> None:
        self._plan = plan
        self._mixing = mixing_of(plan.options)

    def files(self) -> dict[str, tuple[Path, ...]]:
        matrix = self._plan.options.file
        return {"matrix_file": () if matrix is None else (matrix,)}

    def outputs(self, name: str) -> list[Path]:
        stems = [self._plan.out / f"{name}_unmixed{ending}" for ending in (".tif", ".ome.tif")]
        return [path for stem in stems for path in (stem, stem.with_name(stem.name + ".json"))]

    def decide(self, spec: SeriesSpec) -> Decision:
        return decide_unmix(self._planned(spec), limits_of(self._plan.device.xp))

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`."""
        if self._plan.device.xp is not np:
            self._begun(spec, resources, ahead=True)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[Facts]:
        begun = self._begun(spec, resources)
        stack = begun.plan
        with resources.step("unmix"):
            done = mix(stack, resources.writer(stack.out, stack.metadata), resources.progress, begun.brought)
        resources.close()
        facts = {
            "output": stack.out.name,
            "shape": list(stack.metadata.shape),
            "axes": stack.metadata.axes,
            "dtype": stack.metadata.dtype.name,
            "channels": list(stack.names),
            "clipped_values": done.clipped,
            "notes": [*spec.notes, *done.notes, *resources.notes],
        }

        def keep() -> dict[str, Any]:
            write_record(stack, done)
            return {}

        return Finished(facts, [stack.out, stack.record], facts, keep)

    def _begun(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> Any:
        """Plan a stack and begin to read it, unless that was done; None where it is not to be done `ahead`."""

        def begin() -> _Begun | None:
            plan, xp = self._planned(spec), self._plan.device.xp
            if plan.stack.colour:
                # Its planes are read whole: three channels at once.
                return None if ahead else _Begun(plan, None)
            planes = begin_planes(plan.stack.source, channels_in_order(plan.stack), xp, resources, ahead=ahead)
            if planes is None:
                return None
            plan = replace(plan, stack=replace(plan.stack, source=planes.source))
            return _Begun(plan, None if xp is np else planes.there)

        return resources.begun(begin)

    def _planned(self, spec: SeriesSpec) -> UnmixPlan:
        ending = ".ome.tif" if spec.paths[0].name.lower().endswith((".ome.tif", ".ome.tiff")) else ".tif"
        target = self._plan.out / f"{spec.name}_unmixed{ending}"
        return plan_stack(spec, target, self._mixing, self._plan.device, self._plan.options)
