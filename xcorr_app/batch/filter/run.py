"""A run of ``xcorr filter``: every series found is filtered, plane by plane, a few planes at a time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.filter.choice import FilterBank
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.correlation.engines import limits_of
from xcorr_app.decision import Decision
from xcorr_app.errors import DamagedFileError, ShapeError
from xcorr_app.filtering.choice import decide_filter
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.filter_bank import filter_bank
from xcorr_app.filtering.kernel_names import kernel_name
from xcorr_app.filtering.request import checked_request
from xcorr_app.gpu.runtime.arrays import Array, is_device_array
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, StackMetadata
from xcorr_app.io.source import plane_positions
from xcorr_app.pipeline.new_channels import with_new_channels
from xcorr_app.pipeline.planes import HostPlanes, over_planes, write_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Facts, OneFile, StackResult
from xcorr_app.registration.stack.passes import Pass

_SHOWN = 5
"""Planes that cannot be read and are named, of those that are listed."""


class Filter(OneFile[FilterOptions]):
    """Filters stacks."""

    program = "xcorr filter"
    done = "filtered"

    @classmethod
    def chosen_device(cls, options: FilterOptions) -> Device:
        """Choose the device, and refuse a kernel that cannot run there, before any image is read."""
        return options.computes_on(select_device(options.device))

    def files(self) -> dict[str, tuple[Path, ...]]:
        """See `Work`."""
        taps = self.options.choice.file
        return {"taps_file": () if taps is None else (taps,)}

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        with spec.open() as source:
            return _decision(source.metadata, self.options, self.device.xp)

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> HostPlanes | None:
        """See `Work`."""
        source = spec.open()
        # The results of a bank are written with C last.
        axes = None if self.options.choice.bank is None else _result_axes(source.metadata)
        return resources.begin(
            HostPlanes(source, plane_positions(source.metadata, axes)), self.device.xp, once=True, ahead=ahead
        )

    def process(self, spec: SeriesSpec, resources: StackResources, opened: HostPlanes) -> StackResult:
        """See `Work`: a plane that cannot be read is written as zeros and named in the result.

        Where the memory of a device does not suffice for one plane, the CPU filters the rest.
        """
        options, target, bank = self.options, self.target(spec.name), self.options.choice.bank
        unreadable: dict[str, str] = {}
        notes: list[str] = [*spec.notes]
        clipped = non_finite = 0
        source, positions = opened.source, opened.positions
        if bank is None:
            metadata = written_metadata(source.metadata, options)
        else:
            metadata = bank_metadata(source.metadata, bank, options)

        def job(start: int, stop: int, xp: Any) -> tuple[Array, int, dict[int, str]]:
            chunk = opened.read_for(xp, start, stop)
            after, count = _filtered(chunk.frames, options)
            after = after.astype(metadata.dtype, copy=False)
            for plane in chunk.unreadable:
                after[plane - start] = 0
            return after, count, chunk.unreadable

        with resources.step("filter"), resources.writer(target, metadata) as writer:
            rows, columns = source.metadata.shape[-2:]
            pixels = rows * columns * (1 if bank is None else len(bank.filters))
            results = over_planes(
                self.device.xp, len(positions), pixels, job, ("filter", "filtered"), resources.progress, notes
            )
            for after, beyond, damaged in results:
                clipped += beyond
                unreadable |= {str(plane): reason for plane, reason in damaged.items()}
                if len(unreadable) == len(positions):
                    raise DamagedFileError(next(iter(unreadable.values())))
                non_finite += write_planes(writer, after, counted=True)
        resources.close()
        if clipped:
            what = f"{metadata.dtype.name} and took the nearest end of its range; --dtype float32 keeps their values"
            notes.append(f"{clipped} of the pixels did not fit {what}")
        if non_finite:
            notes.append(f"{non_finite} of the pixels are NaN or infinite")
        shown = list(unreadable.items())[:_SHOWN]
        notes += [f"plane {plane} is unreadable and was written as zeros: {reason}" for plane, reason in shown]
        if len(shown) < len(unreadable):
            notes.append(f"... and {len(unreadable) - len(shown)} more planes; run.json lists them all")
        decided = _decision(source.metadata, options, self.device.xp)
        facts = {
            "planes": len(positions),
            "shape": list(metadata.shape),
            "axes": metadata.axes,
            "dtype": metadata.dtype.name,
            "engine": "bank" if bank is not None else decided.kernel or decided.engine,
            "clipped_pixels": clipped,
            "non_finite_pixels": non_finite,
            "unreadable": unreadable,
            "notes": [*notes, *resources.notes],
        }
        return StackResult(facts, [target], facts)

    def is_flagged(self, result: Facts) -> bool:
        """See `Work`."""
        return bool(result["unreadable"])


def _filtered(images: Array, options: FilterOptions) -> tuple[Array, int]:
    """Filtered images, and number of clipped pixels."""
    # The CPU takes over where memory runs out, and has no kernels by name.
    named: Any = options.asked_kernel if is_device_array(images) else "auto"
    if options.choice.bank is not None:
        how = {"mode": options.border, "cval": options.cval, "method": named}
        return filter_bank(images, options.choice.bank.filters, **how), 0
    return filter_frames(images, options.choice.taps, kernel=named, **_how(options, images.dtype))


def _how(options: FilterOptions, pixels: np.dtype[Any]) -> dict[str, Any]:
    """How single filters are applied to images of a type."""
    dtype = options.result_type(pixels)
    return {"mode": options.border, "cval": options.cval, "dtype": dtype}


def written_metadata(metadata: StackMetadata, options: FilterOptions) -> StackMetadata:
    """Metadata of the filtered stack: what was read, but for the size of planes and the type of pixels."""
    metadata = metadata.with_plane_shape(*_left(metadata, options, options.choice.taps.shape))
    dtype = options.result_type(metadata.dtype)
    if dtype == "same" or metadata.dtype.name == dtype:
        return metadata
    tags = metadata.tiff
    if tags is not None and tags.colormap is not None:
        # A palette is indexed by integers; other values of grey have none.
        tags = replace(tags, photometric=1, colormap=None)
    return replace(metadata, dtype=np.dtype(dtype), tiff=tags)


def bank_metadata(metadata: StackMetadata, bank: FilterBank, options: FilterOptions) -> StackMetadata:
    """Metadata of the result: the other axes, then C with a plane for every channel and filter, then Y and X."""
    count, height, width = bank.filters.shape
    channels, old_names = metadata.sizes["C"], metadata.channel_names
    prefixes = [f"{name} " for name in old_names] or ([f"{c} " for c in range(channels)] if channels > 1 else [""])
    names = tuple(prefix + name for prefix in prefixes for name in bank.names)
    wide = (
        options.result_type(metadata.dtype) == "same" and metadata.dtype.itemsize >= 4 and metadata.dtype != np.float32
    )
    dtype = np.dtype(np.float64 if wide else np.float32)
    result = with_new_channels(metadata, "C", channels * count, names, dtype)
    if channels * count == 1:
        result = replace(result, channel_names=())
    return result.with_plane_shape(*_left(metadata, options, (height, width)))


def _left(metadata: StackMetadata, options: FilterOptions, taps: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of what taps leave of a plane. Raises ShapeError where that is nothing."""
    rows, columns = metadata.shape[-2:]
    if options.border != "valid":
        return rows, columns
    if rows < taps[0] or columns < taps[1]:
        raise ShapeError(
            f"planes of {rows} x {columns} are smaller than the filter of {taps[0]} x {taps[1]}: nothing is left with "
            "--border valid"
        )
    return rows - taps[0] + 1, columns - taps[1] + 1


def _result_axes(metadata: StackMetadata) -> str:
    others = [axis for axis in metadata.axes[:-2] if axis != "C"]
    if metadata.kind == "imagej":
        others.sort(key="TZ".index)
    return "".join(others) + ("C" if "C" in metadata.axes else "")


def _decision(metadata: StackMetadata, options: FilterOptions, xp: Any) -> Decision:
    """What filters the planes of a stack."""
    rows, columns = metadata.shape[-2:]
    bank, limits = options.choice.bank, limits_of(xp)
    pixels = rows * columns * (1 if bank is None else len(bank.filters))
    together = Pass(metadata.planes, pixels, on_device=limits is not None).images_at_once
    if bank is not None:
        from xcorr_app.filtering.array_choice import decide_bank
        from xcorr_app.gpu.im2win.options import kernel_and_macros

        count, height, width = bank.filters.shape
        images, filters = (together, 1, rows, columns), (count, 1, height, width)
        how_cut: Any = (options.border, 1, kernel_and_macros(options.asked_kernel)[0])
        return decide_bank(images, metadata.dtype, filters, limits, *how_cut)
    shape, taps = (together, rows, columns), options.choice.taps
    how = _how(options, metadata.dtype)
    request = checked_request(shape, metadata.dtype, taps, origin=0, flip=True, **how)
    named = kernel_name(options.asked_kernel)
    return decide_filter(request, taps, shape, metadata.dtype, limits, named=named)
