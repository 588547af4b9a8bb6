"""A run of ``xcorr unmix`` over many stacks: the channels of every series found are mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.batch.unmix.stack import UnmixPlan, channels_in_order, decision_of, mix, mixing_of, plan_stack, record_of
from xcorr_app.decision import Decision
from xcorr_app.errors import OutputError
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import Discovery, SeriesSpec, discover
from xcorr_app.io.channels import scan_with_colours
from xcorr_app.pipeline.planes import Begun, HostPlanes, begin_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Finished, Plan, Work


class _Begun(NamedTuple):
    """A stack of which reading has begun."""

    plan: UnmixPlan
    planes: Begun[HostPlanes] | None
    """Its planes, some of them on the way to a device; None of colour images."""


class Unmix(Work[UnmixOptions]):
    """Mixes the channels of stacks."""

    program = "xcorr unmix"

    def __init__(self, plan: Plan[UnmixOptions]) -> None:
        super().__init__(plan)
        self._mixing = mixing_of(plan.options)

    @classmethod
    def device(cls, options: UnmixOptions) -> Device:
        """Choose the device, and refuse what cannot run there, or a matrix that cannot be used."""
        device = options.computes_on(select_device(options.device))
        mixing_of(options)
        return device

    @classmethod
    def found(cls, inputs: Sequence[Path], options: UnmixOptions) -> Discovery:
        """Find the stacks.

        Files with one page are one each, unless the layout says otherwise, T holds the channels, or names number them.
        """
        single: Literal["frames", "stacks"] = "frames" if options.channel_axis == "T" else "stacks"
        return discover(inputs, options.layout, options.limits, scan_with_colours, single=single)

    @classmethod
    def check(cls, plan: Plan[UnmixOptions]) -> Plan[UnmixOptions]:
        """Refuse to write where the inputs are."""
        out = plan.out.resolve()
        if any(out == path.parent.resolve() for spec in plan.discovery.series for path in spec.paths):
            raise OutputError(f"{plan.out}: holds the input itself; results must go elsewhere: choose another -o")
        return plan

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        stems = [self.plan.out / f"{name}_unmixed{ending}" for ending in (".tif", ".ome.tif")]
        return [path for stem in stems for path in (stem, stem.with_name(stem.name + ".json"))]

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        return decision_of(self._planned(spec))

    def process(self, spec: SeriesSpec, resources: StackResources, begun: _Begun) -> Finished:
        """See `Work`."""
        stack = begun.plan
        with resources.step("unmix"):
            done = mix(stack, resources.writer(stack.out, stack.metadata), resources.progress, begun.planes)
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
        resources.write_text(stack.record, record_of(stack, done))
        return Finished(facts, [stack.out, stack.record], facts)

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> _Begun | None:
        """See `Work`."""
        plan, xp = self._planned(spec), self.plan.device.xp
        if plan.stack.colour:
            # Its planes are read whole: three channels at once.
            return None if ahead else _Begun(plan, None)
        planes = begin_planes(plan.stack.source, channels_in_order(plan.stack), xp, resources, ahead=ahead)
        if planes is None:
            return None
        return _Begun(replace(plan, stack=replace(plan.stack, source=planes.host.source)), planes)

    def _planned(self, spec: SeriesSpec) -> UnmixPlan:
        ending = ".ome.tif" if spec.paths[0].name.lower().endswith((".ome.tif", ".ome.tiff")) else ".tif"
        target = self.plan.out / f"{spec.name}_unmixed{ending}"
        return plan_stack(spec, target, self._mixing, self.plan.device, self.options)
