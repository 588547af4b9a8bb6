"""A run of ``xcorr filter``: every series found is filtered."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xcorr_app.batch.decisions import decide_filter
from xcorr_app.batch.filter.device import filter_device
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.filter.stack import begin_filtering, filter_stack
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Facts, Finished, Work


class Filter(Work[FilterOptions]):
    """Filters stacks."""

    program = "xcorr filter"

    @classmethod
    def device(cls, options: FilterOptions) -> Device:
        """Choose the device, and refuse what cannot run there."""
        return filter_device(options)

    def files(self) -> dict[str, tuple[Path, ...]]:
        """See `Work`."""
        taps = self.options.choice.file
        return {"taps_file": () if taps is None else (taps,)}

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        return [self.plan.out / name / f"{name}_filtered.tif"]

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        with spec.open() as source:
            return decide_filter(source.metadata, self.options, self.plan.device.xp)

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`."""
        if self.plan.device.xp is not np:
            begin_filtering(spec, self.options, self.plan.device, resources, ahead=True)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished:
        """See `Work`."""
        (target,) = self.outputs(spec.name)
        facts = filter_stack(spec, self.options, self.plan.device, target, resources)
        return Finished(facts, [target], facts)

    def is_flagged(self, result: Facts) -> bool:
        """See `Work`."""
        return bool(result["unreadable"])
