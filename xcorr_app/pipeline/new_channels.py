"""What a result with new channels says of itself: the input's calibration, and nothing of its channels.

Names, colours, wavelengths, lookup tables and display ranges belong to the channels that were read; those of the result
are others.
"""

import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial

import numpy as np

from xcorr_app.io import StackMetadata
from xcorr_app.io.source import TiffTags
from xcorr_app.io.tiff.descriptions import is_imagej
from xcorr_app.io.tiff.ome import edited, is_ome

_OF_THE_AXIS = {"T": ("TimeIncrement", "TimeIncrementUnit"), "Z": ("PhysicalSizeZ", "PhysicalSizeZUnit"), "C": ()}


def with_new_channels(
    old: StackMetadata, axis: str, channels: int, names: tuple[str, ...], dtype: np.dtype
) -> StackMetadata:
    """Metadata of a result whose `axis` became channels: the other axes in the input's order, C if several, Y, X."""
    others = [other for other in old.axes[:-2] if other != axis]
    if old.kind == "imagej":
        others.sort(key="TZC".index)
    axes = "".join(others) + ("C" if channels > 1 else "") + "YX"
    sizes = old.sizes | {"C": channels}
    kept = replace(
        old,
        axes=axes,
        shape=tuple(sizes[axis] for axis in axes),
        dtype=dtype,
        channel_names=names,
        tiff=None if old.tiff is None else _tags_kept(old.tiff, axis),
    )
    if axis == "T":
        return replace(kept, time_increment=None, time_unit=None)
    return replace(kept, z_step=None, z_unit=None) if axis == "Z" else kept


def _tags_kept(tags: TiffTags, axis: str) -> TiffTags:
    description = tags.description
    if is_imagej(description):
        lines = description.split(b"\n")
        ranges = (b"min=", b"max=") + ((b"finterval=", b"fps=") if axis == "T" else ())
        description = b"\n".join(line for line in lines if not line.startswith(ranges))
    elif is_ome(description):
        description = edited(description, partial(_forget_channels, axis=axis))
    photometric = tags.photometric if tags.photometric in (0, 1) else 1
    return replace(tags, description=description, photometric=photometric, colormap=None, imagej=None)


def _forget_channels(pixels: ET.Element, axis: str) -> None:
    for name in _OF_THE_AXIS[axis]:
        pixels.attrib.pop(name, None)
    for child in [*pixels.iterfind("{*}Channel"), *pixels.iterfind("{*}Plane")]:
        pixels.remove(child)
