"""TIFF files whose pages are colour images: red, green and blue, decoded together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.source import ImageFile, StackMetadata, make_metadata
from xcorr_app.io.tiff.imagej import ImageJInfo, is_imagej, parse_imagej, pixel_size
from xcorr_app.io.tiff.ome import OmeInfo, is_ome, parse_ome
from xcorr_app.io.tiff.tiff import TiffImage, opened, stamp
from xcorr_app.io.tiff.tiff_directory import DirectoryReader
from xcorr_app.io.tiff.tiff_scan import Pages, check_parses, walk_pages
from xcorr_app.io.tiff.tifffile_shape import is_shaped, parse_shaped

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits

COLOUR_NAMES = ("red", "green", "blue")
_SAMPLES = 277


def scan_colour_tiff(path: Path, limits: Limits) -> ImageFile:
    """Check a TIFF file of colour images against everything it declares, without reading pixels."""
    with opened(path) as descriptor:
        reader = DirectoryReader(descriptor, path)
        (samples,) = reader.numbers(next(iter(reader.directories(limits))), _SAMPLES) or (len(COLOUR_NAMES),)
        pages = walk_pages(reader, limits, colour=True)
        mark = stamp(descriptor)
    check_parses(path)
    metadata, page_map = _stack(pages, samples)
    # What OME says of its channels holds for colours, not for what becomes of them.
    description = b"" if metadata.kind == "ome" else pages.tags.description
    image = TiffImage(
        path=path,
        metadata=replace(
            metadata,
            channel_names=COLOUR_NAMES,
            tiff=replace(pages.tags, photometric=1, description=description),
        ),
        directory_offsets=np.array(pages.directory_offsets, np.int64),
        data_offsets=np.array(pages.data_offsets, np.int64),
        page_map=page_map,
        byteorder=pages.tags.byteorder,
        stamp=mark,
        samples=samples,
    )
    return image if samples == len(COLOUR_NAMES) else OpaqueImage(image)


@dataclass(frozen=True)
class OpaqueImage:
    """Colour images whose fourth value a pixel, the opacity, must be full everywhere, and is left out."""

    image: TiffImage

    @property
    def path(self) -> Path:
        """The file."""
        return self.image.path

    @property
    def metadata(self) -> StackMetadata:
        """Axes, type and calibration."""
        return self.image.metadata

    @property
    def page_count(self) -> int:
        """Number of images."""
        return self.image.page_count

    @property
    def samples(self) -> int:
        """Values a pixel that are read."""
        return len(COLOUR_NAMES)

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of an image."""
        return self.image.page_at(t, z, c)

    def read(self, page: int) -> np.ndarray:
        """Read an image, (3, Y, X)."""
        values = self.image.read(page)
        full = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1
        if (values[3] != full).any():
            raise InputError(
                f"{self.path}: page {page} has a fourth value a pixel that is not full opacity; save it without "
                "transparency, or, if the values are images of their own, one page each (tifffile: "
                "photometric='minisblack')"
            )
        return np.ascontiguousarray(values[:3])


def _stack(pages: Pages, samples: int) -> tuple[StackMetadata, np.ndarray]:
    """Axes, calibration and the page of [t, z, 0]; pages follow each other along T unless a description says more."""
    first, found, description = pages.first, len(pages.data_offsets), pages.tags.description
    sizes = {"T": found, "Z": 1, "C": len(COLOUR_NAMES), "Y": first.height, "X": first.width}
    if is_ome(description):
        ome = parse_ome(pages.path, description, found, samples)
        if (ome.sizes["Y"], ome.sizes["X"]) != (first.height, first.width):
            raise DamagedFileError(
                f"{pages.path}: its OME-XML declares planes of {ome.sizes['Y']} x {ome.sizes['X']}, the pages are "
                f"{first.height} x {first.width}"
            )
        metadata = make_metadata(ome.sizes | {"C": len(COLOUR_NAMES)}, ome.order, first.dtype, "ome")
        return _calibrated(metadata, ome, ome.pixel_size), ome.pages
    in_order = np.arange(found)
    if is_imagej(description):
        imagej = parse_imagej(pages.path, description, found)
        if imagej.sizes["C"] > 1:
            raise InputError(f"{pages.path}: has {imagej.sizes['C']} channels of colour images; save each as one file")
        _check_count(pages, imagej.sizes["T"] * imagej.sizes["Z"])
        sizes |= {"T": imagej.sizes["T"], "Z": imagej.sizes["Z"]}
        metadata = make_metadata(sizes, "TZCYX", first.dtype, "imagej")
        size = pixel_size(pages.tags.resolution) if imagej.unit else None
        return _calibrated(metadata, imagej, size), in_order.reshape(sizes["T"], sizes["Z"], 1)
    if is_shaped(description):
        declared = parse_shaped(pages.path, description, first.height, first.width)
        _check_count(pages, declared.planes // samples)
    return make_metadata(sizes, "TCYX", first.dtype, "tiff"), in_order.reshape(found, 1, 1)


def _calibrated(metadata: StackMetadata, info: ImageJInfo | OmeInfo, size: tuple[float, float] | None) -> StackMetadata:
    z_unit = info.z_unit if isinstance(info, OmeInfo) else info.unit
    return replace(
        metadata,
        pixel_size=size,
        unit=info.unit,
        z_step=info.z_step,
        z_unit=z_unit if info.z_step else None,
        time_increment=info.time_increment,
        time_unit=info.time_unit if info.time_increment else None,
    )


def _check_count(pages: Pages, declared: int) -> None:
    found = len(pages.data_offsets)
    if declared != found:
        raise DamagedFileError(f"{pages.path}: declares {declared} colour images, the file has {found} pages")
