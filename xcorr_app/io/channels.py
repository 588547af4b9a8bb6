"""Files with channels for mixing: stacks with an axis of channels, and colour images, whose channels are R, G and B."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.discover import scan_file
from xcorr_app.io.found import SeriesSpec
from xcorr_app.io.imagej import is_imagej, parse_imagej, pixel_size
from xcorr_app.io.integrity import is_colour
from xcorr_app.io.limits import Limits
from xcorr_app.io.ome import is_ome
from xcorr_app.io.png import SIGNATURE, scan_png
from xcorr_app.io.source import ImageFile, Source, StackMetadata, make_metadata
from xcorr_app.io.tiff import TiffImage, opened, stamp
from xcorr_app.io.tiff_directory import DirectoryReader
from xcorr_app.io.tiff_scan import Pages, check_parses, walk_pages
from xcorr_app.io.tifffile_shape import is_shaped, parse_shaped

if TYPE_CHECKING:
    from pathlib import Path

COLOUR_NAMES = ("red", "green", "blue")
_PNG_KIND, _PNG_RGB = 25, 2


@dataclass(frozen=True)
class ChannelSource:
    """A stack, and the axis (T, Z or C) that holds its channels."""

    source: Source
    axis: str
    colour: bool
    """Whether its planes are colour images, which are read whole: red, green and blue at once."""

    @property
    def path(self) -> Path:
        """The file, or the first of them."""
        return self.source.paths[0]

    @property
    def metadata(self) -> StackMetadata:
        """Axes, type and calibration; colour images have an axis C of size three."""
        return self.source.metadata

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.metadata.sizes[self.axis]

    def read(self, at: dict[str, int]) -> np.ndarray:
        """Read all channels at one place of the other axes, (C, Y, X) in native byte order."""
        place = {"T": 0, "Z": 0, "C": 0} | at
        if self.colour:
            return self.source.plane(place["T"], place["Z"], 0)
        planes = np.empty((self.channels, *self.metadata.shape[-2:]), self.metadata.dtype)
        for channel in range(self.channels):
            place[self.axis] = channel
            planes[channel] = self.source.plane(place["T"], place["Z"], place["C"])
        return planes


def channels_of(spec: SeriesSpec, axis: str) -> ChannelSource:
    """Open a series that `scan_with_colours` scanned, whose channels are along `axis`; no pixel is read."""
    source = spec.open()
    path, axes, colour = spec.paths[0], source.metadata.axes, spec.samples > 1
    if axis not in axes:
        others = [other for other in axes[:-2] if other in "TZC"]
        choice = (
            f"choose the one that holds them with --channel-axis {' or '.join(others)}"
            if others
            else "it is a single image"
        )
        raise InputError(f"{path}: has axes {axes} and no axis {axis} of channels; {choice}")
    if colour and axis != "C":
        raise InputError(f"{path}: is a colour image, whose channels are its colours; use --channel-axis C")
    return ChannelSource(source, axis, colour)


def scan_with_colours(path: Path, limits: Limits | None = None) -> ImageFile:
    """Check a TIFF or PNG file, of grey values or colours, without reading pixels."""
    limits = limits or Limits()
    with opened(path) as descriptor:
        head = os.pread(descriptor, _PNG_KIND + 1, 0)
        if head[:8] == SIGNATURE:
            colour = head[_PNG_KIND:] == bytes([_PNG_RGB])
        else:
            reader = DirectoryReader(descriptor, path)
            colour = is_colour(reader, next(iter(reader.directories(limits))))
    if not colour:
        return scan_file(path, limits)
    return scan_png(path, limits, colour=True) if head[:8] == SIGNATURE else _scan_colour_tiff(path, limits)


def _scan_colour_tiff(path: Path, limits: Limits) -> TiffImage:
    with opened(path) as descriptor:
        pages = walk_pages(DirectoryReader(descriptor, path), limits, colour=True)
        mark = stamp(descriptor)
    check_parses(path)
    metadata = _metadata(pages)
    sizes = metadata.sizes
    return TiffImage(
        path=path,
        metadata=replace(metadata, channel_names=COLOUR_NAMES, tiff=replace(pages.tags, photometric=1)),
        directory_offsets=np.array(pages.directory_offsets, np.int64),
        data_offsets=np.array(pages.data_offsets, np.int64),
        page_map=np.arange(len(pages.data_offsets)).reshape(sizes["T"], sizes["Z"], 1),
        byteorder=pages.tags.byteorder,
        stamp=mark,
        samples=len(COLOUR_NAMES),
    )


def _metadata(pages: Pages) -> StackMetadata:
    """Axes and calibration of colour pages; they follow each other along T unless ImageJ says otherwise."""
    first, found, description = pages.first, len(pages.data_offsets), pages.tags.description
    sizes = {"T": found, "Z": 1, "C": len(COLOUR_NAMES), "Y": first.height, "X": first.width}
    if is_ome(description):
        raise InputError(f"{pages.path}: is a colour OME-TIFF, which is not read; save it with one plane a channel")
    if not is_imagej(description):
        if is_shaped(description):
            declared = parse_shaped(pages.path, description, first.height, first.width)
            _check_count(pages, declared.planes // len(COLOUR_NAMES))
        return make_metadata(sizes, "TCYX", first.dtype, "tiff")
    info = parse_imagej(pages.path, description)
    _check_count(pages, info.sizes["T"] * info.sizes["Z"])
    sizes |= {"T": info.sizes["T"], "Z": info.sizes["Z"]}
    return replace(
        make_metadata(sizes, "TZCYX", first.dtype, "imagej"),
        pixel_size=pixel_size(pages.tags.resolution) if info.unit else None,
        unit=info.unit,
        z_step=info.z_step,
        z_unit=info.unit if info.z_step else None,
        time_increment=info.time_increment,
        time_unit=info.time_unit if info.time_increment else None,
    )


def _check_count(pages: Pages, declared: int) -> None:
    found = len(pages.data_offsets)
    if declared > found:
        raise DamagedFileError(f"{pages.path}: declares {declared} colour images, the file has {found} pages")
