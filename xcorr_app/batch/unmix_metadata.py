"""What a file of mixed channels says of itself: the input's calibration, and nothing of its channels.

Names, colours, wavelengths, lookup tables and display ranges belong to the channels that were read; those of the result
are others.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.channels import ChannelFile
from xcorr_app.io.imagej import is_imagej
from xcorr_app.io.ome import is_ome
from xcorr_app.io.source import StackMetadata, TiffTags

_OF_THE_AXIS = {"T": ("TimeIncrement", "TimeIncrementUnit"), "Z": ("PhysicalSizeZ", "PhysicalSizeZUnit"), "C": ()}


def mixed_metadata(file: ChannelFile, channels: int, names: tuple[str, ...], dtype: np.dtype) -> StackMetadata:
    """Metadata of the result: the other axes in the input's order, then C (where there are several channels), Y, X.

    Raises
    ------
    InputError
        If the channels are along T or Z and there is an axis C besides.
    """
    old = file.metadata
    others = [axis for axis in old.axes[:-2] if axis != file.axis]
    if "C" in others:
        raise InputError(
            f"{file.path}: has axes {old.axes}; with --channel-axis {file.axis} the result would have two axes of "
            "channels: save one part of C as a file of its own"
        )
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
        tiff=None if old.tiff is None else _tags_kept(old.tiff, file.axis),
    )
    if file.axis == "T":
        return replace(kept, time_increment=None, time_unit=None)
    return replace(kept, z_step=None, z_unit=None) if file.axis == "Z" else kept


def _tags_kept(tags: TiffTags, axis: str) -> TiffTags:
    description = tags.description
    if is_imagej(description):
        lines = description.split(b"\n")
        ranges = (b"min=", b"max=") + ((b"finterval=", b"fps=") if axis == "T" else ())
        description = b"\n".join(line for line in lines if not line.startswith(ranges))
    elif is_ome(description):
        description = _without_channels(description, axis)
    photometric = tags.photometric if tags.photometric in (0, 1) else 1
    return replace(tags, description=description, photometric=photometric, colormap=None, imagej=None)


def _without_channels(description: bytes, axis: str) -> bytes:
    root = ET.fromstring(description.rstrip(b"\0"))  # noqa: S314 - checked when it was read
    for pixels in root.iterfind("{*}Image/{*}Pixels"):
        for name in _OF_THE_AXIS[axis]:
            pixels.attrib.pop(name, None)
        for child in [*pixels.iterfind("{*}Channel"), *pixels.iterfind("{*}Plane")]:
            pixels.remove(child)
    # Written with the main name space as the default one, by which OME-XML is known.
    space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
    if space:
        for element in root.iter():
            element.tag = element.tag.removeprefix(space)
        root.set("xmlns", space[1:-1])
    return ET.tostring(root)
