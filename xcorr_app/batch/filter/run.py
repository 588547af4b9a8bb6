"""A run of ``xcorr filter``: every series found is filtered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.filter.stack import bank_positions, filter_stack
from xcorr_app.batch.shared_options import explains_another, limits_for
from xcorr_app.batch.written import OneFile
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.choice import check_device_engine, decide_filter
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.kernel_names import kernel_name
from xcorr_app.filtering.request import checked_request
from xcorr_app.filtering.taps import correlation_kernel
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, StackMetadata
from xcorr_app.io.source import plane_positions
from xcorr_app.pipeline.planes import Begun, HostPlanes, begin_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Facts, Finished
from xcorr_app.registration.stack.passes import Pass


def filter_device(options: FilterOptions) -> Device:
    """Choose the device, and refuse an engine that cannot run there or on such taps, before any image is read."""
    device = Device(np, "CPU") if options.device == "auto" and options.engine == "opencv" else None
    device = device or select_device(options.device)
    if explains_another(options):
        return device
    options.computes_on(device, engine=options.engine if options.engine == "reuse" else "auto")
    if device.xp is not np and options.engine == "opencv":
        raise ArgumentError(f"engine {options.engine!r} runs on the CPU: leave --device {options.device} out")
    if options.choice.bank is not None:
        if options.engine != "auto":
            raise ArgumentError(f"a bank is computed as a whole: leave --engine {options.engine} out")
    elif device.xp is not np:
        check_device_engine(correlation_kernel(options.choice.taps, 0, flip=True, tolerance=1e-12), options.engine)
    elif options.engine != "auto":
        filter_frames(np.zeros((1, 1), np.float32), options.choice.taps, engine=options.engine)
    return device


class Filter(OneFile[FilterOptions]):
    """Filters stacks."""

    program = "xcorr filter"
    done = "filtered"

    @classmethod
    def device(cls, options: FilterOptions) -> Device:
        """Choose the device, and refuse what cannot run there."""
        return filter_device(options)

    def files(self) -> dict[str, tuple[Path, ...]]:
        """See `Work`."""
        taps = self.options.choice.file
        return {"taps_file": () if taps is None else (taps,)}

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        with spec.open() as source:
            return _decision(source.metadata, self.options, self.plan.device.xp)

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> Begun[HostPlanes] | None:
        """See `Work`."""
        source = spec.open()
        in_order = plane_positions if self.options.choice.bank is None else bank_positions
        return begin_planes(source, in_order(source.metadata), self.plan.device.xp, resources, ahead=ahead)

    def process(self, spec: SeriesSpec, resources: StackResources, begun: Begun[HostPlanes]) -> Finished:
        """See `Work`."""
        target = self.target(spec.name)
        facts = filter_stack(spec, self.options, self.plan.device, target, resources, begun)
        return Finished(facts, [target], facts)

    def is_flagged(self, result: Facts) -> bool:
        """See `Work`."""
        return bool(result["unreadable"])


def _decision(metadata: StackMetadata, options: FilterOptions, xp: Any) -> Decision:
    """What filters the planes of a stack."""
    rows, columns = metadata.shape[-2:]
    bank, limits = options.choice.bank, limits_for(options, xp)
    pixels = rows * columns * (1 if bank is None else len(bank.filters))
    together = Pass(metadata.planes, pixels, on_device=limits is not None).images_at_once
    if bank is not None:
        from xcorr_app.filtering.array_choice import decide_bank
        from xcorr_app.gpu.im2win.options import kernel_and_macros

        count, height, width = bank.filters.shape
        images, filters = (together, 1, rows, columns), (count, 1, height, width)
        how_cut: Any = (options.mode, options.stride, kernel_and_macros(options.asked_kernel)[0])
        return decide_bank(images, metadata.dtype, filters, limits, *how_cut)
    shape, taps = (together, rows, columns), options.choice.taps
    how: Any = {name: getattr(options, name) for name in ("mode", "cval", "engine")}
    how["dtype"] = options.result_type(metadata.dtype)
    request = checked_request(shape, metadata.dtype, taps, origin=0, flip=True, **how)
    named = kernel_name(options.asked_kernel)
    return decide_filter(request, taps, shape, metadata.dtype, limits, options.engine, named=named)
