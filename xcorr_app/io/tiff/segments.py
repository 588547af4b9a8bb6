"""Pages that are not stored plainly, decoded strictly: what comes out must be what the page declares, no less, no more.

Strips and tiles by the codecs of imagecodecs, which release Python's lock, without parsing the file again for every
page. tifffile decodes what it alone knows how to, colours in JPEG and its relatives; their sizes are compared here.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import imagecodecs
import numpy as np

from xcorr_app.io.images.codestream import SIZES, Size, check_size
from xcorr_app.io.images.png_stream import decode_png
from xcorr_app.io.limits import SPARE
from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader

if TYPE_CHECKING:
    from xcorr_app.io.source import StackMetadata

_BYTE_CODECS: dict[int, Callable[..., Any]] = {
    5: imagecodecs.lzw_decode,
    8: imagecodecs.deflate_decode,
    32773: imagecodecs.packbits_decode,
    32946: imagecodecs.deflate_decode,
    34925: imagecodecs.lzma_decode,
    34926: imagecodecs.zstd_decode,
    50000: imagecodecs.zstd_decode,
}
_INTO_A_BUFFER = (8, 32946, 34926, 50000)
"""Deflate and Zstandard, which say so where a buffer is too small."""
_CUT_WHAT_DOES_NOT_FIT = (5, 34925)
"""LZW and LZMA give as many bytes as there is room for, without an error where there are more."""
_IMAGE_CODECS: dict[int, Callable[[bytes], Any]] = {
    22610: imagecodecs.jpegxr_decode,
    33003: imagecodecs.jpeg2k_decode,
    33004: imagecodecs.jpeg2k_decode,
    33005: imagecodecs.jpeg2k_decode,
    34712: imagecodecs.jpeg2k_decode,
    34887: imagecodecs.lerc_decode,
    34933: decode_png,
    34934: imagecodecs.jpegxr_decode,
    50002: partial(imagecodecs.jpegxl_decode, index=0),
    52546: partial(imagecodecs.jpegxl_decode, index=0),
}
_JPEG = (7, 34892)
PLAIN = 1
READ_HERE = (PLAIN, *_BYTE_CODECS, *_IMAGE_CODECS, *_JPEG)
"""Codes of the compressions that are read; others are of one bit a pixel (CCITT, JBIG), obsolete, or a maker's own."""
PREDICTED = frozenset(_BYTE_CODECS)
"""Those that a predictor may come before."""
_WIDTH, _HEIGHT, _COMPRESSION, _FILL_ORDER, _SAMPLES, _PREDICTOR, _JPEG_TABLES = 256, 257, 259, 266, 277, 317, 347
_STRIP_OFFSETS, _ROWS_PER_STRIP, _STRIP_BYTES, _PLANAR = 273, 278, 279, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES = 322, 323, 324, 325
NO_PREDICTOR, HORIZONTAL, FLOATING_POINT = 1, 2, 3
_LAST_BIT_FIRST = 2
_MOST_KEPT = 1 << 24
"""Bytes that a thread keeps for the next segment."""


_of_thread = threading.local()


class Segment(NamedTuple):
    """A strip or tile: where its pixels are in the file and in the plane, and rows it has within the plane."""

    offset: int
    length: int
    layer: int
    top: int
    left: int
    rows: int


class Layout(NamedTuple):
    """How a page is cut and stored: rows and columns of a whole segment, values a pixel in it, and all segments."""

    rows: int
    columns: int
    samples: int
    segments: list[Segment]
    compression: int
    predictor: int
    fill_order: int
    stored: np.dtype
    tables: bytes
    """Of JPEG, where all segments share them."""


def decode_page(
    descriptor: int, reader: DirectoryReader, directory: Directory, metadata: StackMetadata, out: np.ndarray
) -> bool:
    """Decode a page that was checked into `out`, (Y, X) or (samples, Y, X); False where tifffile has to do it.

    Raises ValueError, or what a codec raises, where the pixels are not what the page declares.
    """
    layout = _layout(reader, directory, metadata)
    is_image = layout.compression in SIZES
    if is_image and out.ndim > 2:
        for segment in layout.segments:
            check_size(layout.compression, _content(descriptor, segment), _sizes(layout, segment))
        return False
    for segment in layout.segments:
        part = out[..., segment.top : segment.top + segment.rows, segment.left : segment.left + layout.columns]
        if _straight(descriptor, layout, segment, part):
            continue
        content = _content(descriptor, segment)
        values = (_image if is_image else _values)(content, layout, segment, metadata.dtype)
        values = values[: part.shape[-2], : part.shape[-1]]
        if out.ndim == 2:
            part[...] = values[..., 0]
        elif layout.samples > 1:
            part[...] = np.moveaxis(values, -1, 0)
        else:
            part[segment.layer] = values[..., 0]
    return True


def _layout(reader: DirectoryReader, directory: Directory, metadata: StackMetadata) -> Layout:
    height, width = metadata.shape[-2:]
    tiled = _TILE_OFFSETS in directory.tags
    offsets = reader.numbers(directory, _TILE_OFFSETS if tiled else _STRIP_OFFSETS) or ()
    counts = reader.numbers(directory, _TILE_BYTES if tiled else _STRIP_BYTES) or ()
    rows = _number(reader, directory, _TILE_HEIGHT, 0) if tiled else _number(reader, directory, _ROWS_PER_STRIP, height)
    rows = rows if tiled else min(rows, height)
    columns = _number(reader, directory, _TILE_WIDTH, 0) if tiled else width
    declared = (_number(reader, directory, _HEIGHT, 0), _number(reader, directory, _WIDTH, 0))
    samples = _number(reader, directory, _SAMPLES, 1)
    layers, of_one = (samples, 1) if _number(reader, directory, _PLANAR, 1) == 2 else (1, samples)
    if rows < 1 or columns < 1 or declared != (height, width):
        raise ValueError("a directory that is not the one that was checked")
    across = math.ceil(width / columns)
    in_layer = across * math.ceil(height / rows)
    if not len(offsets) == len(counts) == in_layer * layers:
        raise ValueError("a directory that is not the one that was checked")
    segments = []
    for number, (offset, count) in enumerate(zip(offsets, counts, strict=True)):
        layer, place = divmod(number, in_layer)
        top, left = place // across * rows, place % across * columns
        segments.append(Segment(offset, count, layer, top, left, rows if tiled else min(rows, height - top)))
    return Layout(
        rows,
        columns,
        of_one,
        segments,
        compression=_number(reader, directory, _COMPRESSION, PLAIN),
        predictor=_number(reader, directory, _PREDICTOR, NO_PREDICTOR),
        fill_order=_number(reader, directory, _FILL_ORDER, 1),
        stored=metadata.dtype.newbyteorder(reader.byteorder),
        tables=reader.content(directory, _JPEG_TABLES),
    )


def _sizes(layout: Layout, segment: Segment) -> set[Size]:
    """Sizes that a segment may be stored with: a last strip may have the rows of the others."""
    return {(segment.rows, layout.columns), (layout.rows, layout.columns)}


def _content(descriptor: int, segment: Segment) -> bytes:
    content = os.pread(descriptor, segment.length, segment.offset)
    _check_length(segment, len(content))
    return content


def _check_length(segment: Segment, found: int) -> None:
    if found != segment.length:
        raise ValueError(f"{segment.length} bytes expected at byte {segment.offset}, {found} found")


def _image(content: bytes, layout: Layout, segment: Segment, dtype: np.dtype) -> np.ndarray:
    """Decode a segment that is an image of its own, (rows, columns, 1)."""
    sizes = _sizes(layout, segment)
    check_size(layout.compression, content, sizes)
    if layout.compression in _JPEG:
        image = imagecodecs.jpeg_decode(content, bitspersample=8 * dtype.itemsize, tables=layout.tables or None)
    else:
        image = _IMAGE_CODECS[layout.compression](content)
    if image.shape not in sizes or image.dtype != dtype:
        declared = f"{segment.rows} x {layout.columns} {dtype}"
        raise ValueError(f"decodes to {' x '.join(map(str, image.shape))} {image.dtype}, declared are {declared}")
    return np.asarray(image)[..., np.newaxis]


def _straight(descriptor: int, layout: Layout, segment: Segment, part: np.ndarray) -> bool:
    """Decode values, or their differences, straight into where they belong; False where something is between.

    Memory that is made and given back for each of thousands of pages costs threads that decode side by side more time,
    in turns, than decoding.
    """
    fits = part.shape == (segment.rows, layout.columns) and layout.samples == 1
    if not fits or not layout.stored.isnative or layout.fill_order == _LAST_BIT_FIRST:
        return False
    if layout.compression not in _INTO_A_BUFFER:
        return False
    is_plain = layout.predictor == NO_PREDICTOR and part.flags.c_contiguous
    if not is_plain and not (layout.predictor == HORIZONTAL and part.dtype.kind in "iu"):
        return False
    content = _lent("content", segment.length)
    _check_length(segment, os.preadv(descriptor, [content], segment.offset))
    into = part.reshape(-1).view(np.uint8).data if is_plain else _lent("raw", part.nbytes)
    try:
        raw = _BYTE_CODECS[layout.compression](content, out=into)
    except RuntimeError:
        return False
    if len(raw) != part.nbytes:
        return False
    if not is_plain:
        values = np.frombuffer(raw, layout.stored).reshape(*part.shape, 1)
        imagecodecs.delta_decode(values, axis=-2, out=part[..., np.newaxis])
    return True


def _lent(name: str, size: int) -> memoryview:
    """So many bytes, of this thread's own where they are few, that hold whatever was left there."""
    kept: np.ndarray | None = getattr(_of_thread, name, None)
    if kept is None or kept.size < size:
        kept = np.empty(size, np.uint8)
        if size <= _MOST_KEPT:
            setattr(_of_thread, name, kept)
    return kept.data[:size]


def _values(content: bytes | bytearray, layout: Layout, segment: Segment, dtype: np.dtype) -> np.ndarray:
    """Decode a segment of bytes, (rows, columns, samples) in native byte order."""
    pixel_bytes = layout.samples * dtype.itemsize
    size, whole = (rows * layout.columns * pixel_bytes for rows in (segment.rows, layout.rows))
    if layout.fill_order == _LAST_BIT_FIRST:
        content = imagecodecs.bitorder_decode(content)
    raw = content if layout.compression == PLAIN else _decompressed(layout.compression, content, size, whole)
    if not (size <= len(raw) <= size + SPARE or whole <= len(raw) <= whole + SPARE):
        raise ValueError(f"decodes to {len(raw)} bytes, declared are {size}")
    count = size // dtype.itemsize
    values = np.frombuffer(raw, layout.stored, count).reshape(segment.rows, layout.columns, layout.samples)
    if layout.predictor == HORIZONTAL:
        values = imagecodecs.delta_decode(values.astype(dtype), axis=-2)
    elif layout.predictor == FLOATING_POINT:
        values = imagecodecs.floatpred_decode(values.copy(), axis=-2)
    return values


def _decompressed(compression: int, content: bytes | bytearray, size: int, whole: int) -> bytes | bytearray:
    """Decompress a segment of `size` bytes, or of up to a few more than `whole`, beyond which it does not matter."""
    decode = _BYTE_CODECS[compression]
    if compression not in _CUT_WHAT_DOES_NOT_FIT:
        try:
            return cast("bytes", decode(content, out=size))  # as a rule; a larger buffer would be copied
        except RuntimeError:
            pass
    return cast("bytes", decode(content, out=whole + SPARE + 1))


def _number(reader: DirectoryReader, directory: Directory, code: int, default: int) -> int:
    values = reader.numbers(directory, code)
    return values[0] if values else default
