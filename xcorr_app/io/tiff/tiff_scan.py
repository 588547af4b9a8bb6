"""A TIFF file checked as a whole: every page, and what ImageJ, OME or tifffile say of them.

A cut-off file often reads as fewer frames or as zeros, without an error. So the pages found are compared with
every promise that the file makes, before the first pixel is used.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.opened import Stamp, opened, stamp
from xcorr_app.io.source import Kind, Resolution, StackMetadata, TiffTags, make_metadata
from xcorr_app.io.tiff.descriptions import is_imagej, is_shaped, parse_imagej, parse_shaped
from xcorr_app.io.tiff.ome import is_ome, parse_ome, parse_xml
from xcorr_app.io.tiff.pages import Page, check_page
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader, PageOffsets

_DESCRIPTION, _X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT, _COLORMAP = 270, 282, 283, 296, 320
_IMAGEJ_COUNTS, _IMAGEJ_BLOCK = 50838, 50839
_NEW_SUBFILE_TYPE, _WIDTH, _HEIGHT = 254, 256, 257
_LONGEST_SHAPED = 1 << 16
COLOUR_NAMES = ("red", "green", "blue")


class Pages(NamedTuple):
    """Pages in file order; `first` stands for all, since they agree in size and type."""

    path: Path
    file_size: int
    first: Page
    directory_offsets: list[int]
    data_offsets: list[int]
    descriptions: dict[int, bytes]
    tags: TiffTags


def scan_tiff(path: Path, limits: Limits) -> TiffImage:
    """Check a TIFF file of grey values against everything it declares; no pixel is read."""
    with opened(path) as descriptor:
        return scan_pages(DirectoryReader(descriptor, path), stamp(descriptor), limits)


def scan_pages(reader: DirectoryReader, mark: Stamp, limits: Limits, *, colour: bool = False) -> TiffImage:
    """Check the pages of a file, of colour images where `colour` says so, and what is said of them."""
    pages = walk_pages(reader, limits, colour=colour)
    description = pages.tags.description
    stack = _ome_stack if is_ome(description) else _imagej_stack if is_imagej(description) else _plain_stack
    pages, metadata, page_map = stack(pages, limits)
    metadata = replace(metadata, tiff=pages.tags)
    if colour:
        # What OME says of its channels holds for colours, not for what becomes of them.
        tags = replace(pages.tags, photometric=1, description=b"" if is_ome(description) else description)
        metadata = replace(metadata, channel_names=COLOUR_NAMES, tiff=tags)
    return TiffImage(
        path=reader.path,
        metadata=metadata,
        directory_offsets=np.array(pages.directory_offsets, np.int64),
        data_offsets=np.array(pages.data_offsets, np.int64),
        page_map=page_map,
        byteorder=pages.tags.byteorder,
        stamp=mark,
        samples=pages.first.samples,
    )


def walk_pages(reader: DirectoryReader, limits: Limits, *, colour: bool = False) -> Pages:
    """Check every page; raises as `scan_tiff` does. With `colour`, pages hold red, green and blue."""
    pages: Pages | None = None
    for directory in reader.walk(limits):
        if isinstance(directory, PageOffsets):
            assert pages is not None  # noqa: S101 - for the type checker
            pages.directory_offsets.append(directory.offset)
            pages.data_offsets.append(directory.data_offset)
            continue
        if pages is not None and _is_reduced(reader, directory, pages.first):
            continue
        page = check_page(reader, directory, limits, colour=colour)
        if pages is None:
            tags = _tags_kept(reader, directory, page)
            pages = Pages(reader.path, reader.size, page, [], [], {}, tags)
        first = pages.first
        if (page.height, page.width, page.dtype) != (first.height, first.width, first.dtype):
            raise InputError(
                f"{reader.path}: page {directory.index} is {page.height} x {page.width} {page.dtype}, page 0 is "
                f"{first.height} x {first.width} {first.dtype}; save pages of one size and type together"
            )
        if is_shaped(pages.tags.description):
            text = reader.content(directory, _DESCRIPTION)
            if is_shaped(text):
                if len(text) > _LONGEST_SHAPED:
                    raise DamagedFileError(
                        f"{reader.path}: page {directory.index} has a shape description of {len(text)} bytes"
                    )
                pages.descriptions[directory.index] = text
        pages.directory_offsets.append(directory.offset)
        pages.data_offsets.append(page.data_offset)
        # Of a file that tifffile wrote, a page that is described begins another series.
        if (
            directory.index > 0
            and page.data_offset >= 0
            and not colour
            and (_DESCRIPTION not in directory.tags or not is_shaped(pages.tags.description))
        ):
            reader.repeat(directory)
    if pages is None:
        raise DamagedFileError(f"{reader.path}: holds no image")
    return pages


def _is_reduced(reader: DirectoryReader, directory: Directory, first: Page) -> bool:
    """Tell whether a page says that it shows another one at less resolution, as in pyramids of the older kind."""
    kind = reader.numbers(directory, _NEW_SUBFILE_TYPE) or (0,)
    height, width = (reader.numbers(directory, code) or (0,) for code in (_HEIGHT, _WIDTH))
    fits = (0,) < height <= (first.height,) and (0,) < width <= (first.width,)
    return bool(kind[0] & 1) and fits and (height, width) != ((first.height,), (first.width,))


def _tags_kept(reader: DirectoryReader, directory: Directory, page: Page) -> TiffTags:
    x, y = reader.numbers(directory, _X_RESOLUTION), reader.numbers(directory, _Y_RESOLUTION)
    unit = reader.numbers(directory, _RESOLUTION_UNIT) or (2,)
    resolution = None
    if x and y and len(x) >= 2 and len(y) >= 2 and x[1] and y[1]:
        resolution = Resolution((x[0], x[1]), (y[0], y[1]), unit[0])
    colormap = reader.numbers(directory, _COLORMAP) if page.photometric == 3 else None
    description = reader.content(directory, _DESCRIPTION).rstrip(b"\0")
    if page.photometric == 3:
        _check_palette(reader.path, page, colormap, imagej=is_imagej(description))
    counts = reader.numbers(directory, _IMAGEJ_COUNTS)
    block = reader.content(directory, _IMAGEJ_BLOCK)
    return TiffTags(
        description=description,
        resolution=resolution,
        photometric=page.photometric,
        colormap=colormap,
        byteorder=reader.byteorder,
        imagej=(counts, block) if counts and block else None,
    )


def _check_palette(path: Path, page: Page, colormap: tuple[int, ...] | None, *, imagej: bool) -> None:
    """Accept palettes over grey values: ImageJ's false colours, and ramps of grey as electron microscopes write."""
    levels = 256 if page.dtype == np.uint8 else 65536
    if page.dtype.name not in ("uint8", "uint16") or colormap is None or len(colormap) != 3 * levels:
        raise DamagedFileError(f"{path}: is a palette image without a palette that fits its pixels")
    red, green, blue = np.array(colormap).reshape(3, levels)
    grey = np.array_equal(red, green) and np.array_equal(red, blue) and bool(np.all(np.diff(red) >= 0))
    if not grey and not imagej:
        raise InputError(
            f"{path}: is a palette image, whose pixels are numbers of colours and cannot be measured; "
            "save it as grey values"
        )


def _ome_stack(pages: Pages, _: Limits) -> tuple[Pages, StackMetadata, np.ndarray]:
    first = pages.first
    root, counts = parse_xml(pages.path, pages.tags.description), {pages.path.name: len(pages.data_offsets)}
    info = parse_ome(pages.path, root, counts, (first.height, first.width), first.samples)
    metadata = _metadata(pages, info.sizes, info.order, "ome")
    names = info.channel_names if len(info.channel_names) == metadata.sizes["C"] else ()
    return pages, replace(metadata, **info.calibration, channel_names=names), info.pages


def _imagej_stack(pages: Pages, limits: Limits) -> tuple[Pages, StackMetadata, np.ndarray]:
    found = len(pages.data_offsets)
    sizes, calibration = parse_imagej(pages.path, pages.tags.description, found, pages.tags.resolution)
    if pages.first.samples > 1 < sizes["C"]:
        raise InputError(f"{pages.path}: has {sizes['C']} channels of colour images; save each as one file")
    count = math.prod(sizes.values())
    if found == 1 < count:
        # Beyond 4 GiB ImageJ writes one directory; the other planes follow the first without a gap.
        data_offsets = _following(pages, 0, count, limits)
        pages = pages._replace(directory_offsets=pages.directory_offsets * count, data_offsets=data_offsets)
    elif found != count:
        raise DamagedFileError(f"{pages.path}: ImageJ's description says {count} images, the file has {found} pages")
    page_map = np.arange(count).reshape([sizes[axis] for axis in "TZC"])
    return pages, replace(_metadata(pages, sizes, "TZCYX", "imagej"), **calibration), page_map


def _metadata(pages: Pages, sizes: dict[str, int], order: str, kind: Kind) -> StackMetadata:
    """Of planes, or of colour images, which have an axis C of size three."""
    first = pages.first
    colours = {"C": len(COLOUR_NAMES)} if first.samples > 1 else {}
    return make_metadata(sizes | colours | {"Y": first.height, "X": first.width}, order, first.dtype, kind)


def _plain_stack(pages: Pages, limits: Limits) -> tuple[Pages, StackMetadata, np.ndarray]:
    """Pages that one description places along axes, or all of them along T."""
    first, found = pages.first, len(pages.data_offsets)
    axes, sizes = "TYX", {"T": found, "Z": 1, "C": 1}
    for index, text in pages.descriptions.items():
        declared = parse_shaped(pages.path, text, first.height, first.width)
        count, rest = divmod(declared.planes, first.samples)
        if declared.truncated and found == 1:
            data_offsets = _following(pages, index, count, limits)
            pages = pages._replace(directory_offsets=pages.directory_offsets * count, data_offsets=data_offsets)
            found = sizes["T"] = count
        if index + count > found or rest:
            raise DamagedFileError(
                f"{pages.path}: declares {index + count} or more planes (shape {declared.shape}), the file has "
                f"{found} pages"
            )
        if count == found and first.samples == 1 and declared.axes:
            axes = declared.axes
            sizes = {"T": 1, "Z": 1, "C": 1} | dict(zip(axes, declared.shape, strict=True))
    metadata = _metadata(pages, sizes, axes if first.samples == 1 else "TCYX", "tiff")
    order = [axis for axis in "TZC" if axis not in axes] + [axis for axis in axes if axis in "TZC"]
    page_map = np.arange(found).reshape([sizes[axis] for axis in order])
    return pages, metadata, page_map.transpose([order.index(axis) for axis in "TZC"])


def _following(pages: Pages, index: int, count: int, limits: Limits) -> list[int]:
    """Offsets of `count` planes of which the file describes only the one at `index`."""
    limits.check_pages(pages.path, count)
    start = pages.data_offsets[index]
    size = pages.first.height * pages.first.width * pages.first.dtype.itemsize
    if start < 0:
        raise DamagedFileError(
            f"{pages.path}: declares {count} images but describes one, which is not stored plainly; it is "
            "cut short: copy it again"
        )
    if start + count * size > pages.file_size:
        raise DamagedFileError(
            f"{pages.path}: declares {count} images of {size} bytes, which end at byte {start + count * size}, but the "
            f"file has {pages.file_size} bytes; it is cut short: copy it again"
        )
    return [start + size * number for number in range(count)]
