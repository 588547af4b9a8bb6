"""TIFF files whose pages are colour images: red, green and blue, decoded together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.imagej import is_imagej, parse_imagej, pixel_size
from xcorr_app.io.ome import is_ome
from xcorr_app.io.source import StackMetadata, make_metadata
from xcorr_app.io.tiff import TiffImage, opened, stamp
from xcorr_app.io.tiff_directory import DirectoryReader
from xcorr_app.io.tiff_scan import Pages, check_parses, walk_pages
from xcorr_app.io.tifffile_shape import is_shaped, parse_shaped

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits

COLOUR_NAMES = ("red", "green", "blue")


def scan_colour_tiff(path: Path, limits: Limits) -> TiffImage:
    """Check a TIFF file of colour images against everything it declares, without reading pixels."""
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
    info = parse_imagej(pages.path, description, len(pages.data_offsets))
    if info.sizes["C"] > 1:
        raise InputError(f"{pages.path}: has {info.sizes['C']} channels of colour images; save them as one file each")
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
    if declared != found:
        raise DamagedFileError(f"{pages.path}: declares {declared} colour images, the file has {found} pages")
