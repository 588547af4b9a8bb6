"""What the result of a bank of filters says of itself: a channel for every filter.

Where the images have channels already, each of them becomes as many as there are filters, one after the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xcorr_app.batch.filter.banks import FilterBank
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.errors import ShapeError
from xcorr_app.io import StackMetadata
from xcorr_app.io.source import Resolution
from xcorr_app.pipeline.new_channels import with_new_channels


def bank_positions(metadata: StackMetadata) -> list[dict[str, int]]:
    """Position (t, z, c) of every plane that is read, in the order in which a bank's results are written: C last."""
    axes = _result_axes(metadata)
    sizes = [metadata.sizes[axis] for axis in axes]
    return [
        {"t": 0, "z": 0, "c": 0} | dict(zip(axes.lower(), map(int, index), strict=True)) for index in np.ndindex(*sizes)
    ]


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
    rows, columns = metadata.shape[-2:]
    if options.mode == "valid":
        rows, columns = rows - height + 1, columns - width + 1
    if rows < 1 or columns < 1:
        raise ShapeError(
            f"planes of {metadata.shape[-2]} x {metadata.shape[-1]} are smaller than the filters of "
            f"{height} x {width}: nothing is left with --mode valid"
        )
    if options.stride > 1:
        rows, columns = ((size - 1) // options.stride + 1 for size in (rows, columns))
        result = _coarser(result, options.stride)
    return result.with_plane_shape(rows, columns)


def _coarser(metadata: StackMetadata, stride: int) -> StackMetadata:
    """The same stack with pixels so many times as large."""
    size, tiff = metadata.pixel_size, metadata.tiff
    if size is not None:
        metadata = replace(metadata, pixel_size=(size[0] * stride, size[1] * stride))
    if tiff is None or tiff.resolution is None:
        return metadata
    (x, across), (y, down), unit = tiff.resolution
    resolution = Resolution((x, across * stride), (y, down * stride), unit)
    return replace(metadata, tiff=replace(tiff, resolution=resolution))


def _result_axes(metadata: StackMetadata) -> str:
    others = [axis for axis in metadata.axes[:-2] if axis != "C"]
    if metadata.kind == "imagej":
        others.sort(key="TZ".index)
    return "".join(others) + ("C" if "C" in metadata.axes else "")
