"""Pages that are not stored plainly, decoded strictly: what comes out must be what the page declares, no less, no more.

Strips and tiles by the codecs of imagecodecs, which release Python's lock, without parsing the file again for every
page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import imagecodecs
import numpy as np

from xcorr_app.io.images.codestream import check_size
from xcorr_app.io.limits import SPARE
from xcorr_app.system import read_at

_BYTE_CODECS: dict[int, Callable[..., Any]] = {
    5: imagecodecs.lzw_decode,
    8: imagecodecs.deflate_decode,
    32773: imagecodecs.packbits_decode,
    32946: imagecodecs.deflate_decode,
    34925: imagecodecs.lzma_decode,
    34926: imagecodecs.zstd_decode,
    50000: imagecodecs.zstd_decode,
}
_CUT_WHAT_DOES_NOT_FIT = (5, 34925)
"""LZW and LZMA give as many bytes as there is room for, without an error where there are more."""
_JPEG = (7, 34892)
_JPEG2000 = (33003, 33004, 33005, 34712)
PLAIN = 1
READ_HERE = (PLAIN, *_BYTE_CODECS, *_JPEG, *_JPEG2000)
"""Codes of the compressions that are read; others are of one bit a pixel (CCITT, JBIG), rare, or a maker's own."""
PREDICTED = frozenset(_BYTE_CODECS)
"""Those that a predictor may come before."""
NO_PREDICTOR, HORIZONTAL, FLOATING_POINT = 1, 2, 3
_LAST_BIT_FIRST = 2
_RGB = 2


class Page(NamedTuple):
    """One page whose pixels are all inside the file, and how they are cut and stored.

    `data_offset` is where the plane lies when it is stored plainly (uncompressed, in one piece, one sample a
    pixel), else -1. A segment, which is a strip or a tile, has `rows` x `columns` pixels, of all samples or of one.
    """

    height: int
    width: int
    dtype: np.dtype
    photometric: int
    samples: int
    is_planar: bool
    is_tiled: bool
    rows: int
    columns: int
    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    compression: int
    predictor: int
    fill_order: int
    data_offset: int


def decode_page(descriptor: int, page: Page, byteorder: Literal["<", ">"], tables: bytes, out: np.ndarray) -> None:
    """Decode a page that was checked into `out`, (Y, X) or (samples, Y, X); JPEG segments share `tables`.

    Raises ValueError, or what a codec raises, where the pixels are not what the page declares.
    """
    planes = out.reshape(-1, *out.shape[-2:])
    across, down = math.ceil(page.width / page.columns), math.ceil(page.height / page.rows)
    samples = 1 if page.is_planar else page.samples
    for number, (offset, count) in enumerate(zip(page.offsets, page.counts, strict=True)):
        layer, place = divmod(number, across * down)
        top, left = place // across * page.rows, place % across * page.columns
        content = read_at(descriptor, count, offset)
        if len(content) != count:
            raise ValueError(f"{count} bytes expected at byte {offset}, {len(content)} found")
        rows = page.rows if page.is_tiled else min(page.rows, page.height - top)
        if page.compression in PREDICTED or page.compression == PLAIN:
            values = _values(content, page, (rows, page.columns, samples), byteorder)
        else:
            values = _image(content, page, (rows, page.columns, samples), tables)
        part = planes[layer : layer + samples, top : top + page.rows, left : left + page.columns]
        part[...] = np.moveaxis(values, -1, 0)[:, : part.shape[1], : part.shape[2]]


def _image(content: bytes, page: Page, shape: tuple[int, int, int], tables: bytes) -> np.ndarray:
    """Decode a segment that is an image of its own; a last strip may have the rows of the others."""
    sizes = {shape[:2], (page.rows, page.columns)}
    check_size(content, sizes, is_jpeg=page.compression in _JPEG)
    if page.compression in _JPEG:
        colours: Any = {"outcolorspace": _RGB} if shape[-1] > 1 else {}
        if colours and page.photometric == _RGB and content[6:10] != b"JFIF":
            colours["colorspace"] = _RGB  # as scanners of slides write it
        image = imagecodecs.jpeg_decode(
            content, bitspersample=8 * page.dtype.itemsize, tables=tables or None, **colours
        )
    else:
        image = imagecodecs.jpeg2k_decode(content)
    image = image.reshape(*image.shape[:2], -1)
    if image.shape[:2] not in sizes or image.shape[2] != shape[2] or image.dtype != page.dtype:
        found = f"{' x '.join(map(str, image.shape))} {image.dtype}"
        raise ValueError(f"decodes to {found}, declared are {' x '.join(map(str, shape))} {page.dtype}")
    return np.asarray(image)


def _values(
    content: bytes | bytearray, page: Page, shape: tuple[int, int, int], byteorder: Literal["<", ">"]
) -> np.ndarray:
    """Decode a segment of bytes, in native byte order."""
    size, whole = (rows * shape[1] * shape[2] * page.dtype.itemsize for rows in (shape[0], page.rows))
    if page.fill_order == _LAST_BIT_FIRST:
        content = imagecodecs.bitorder_decode(content)
    raw = content if page.compression == PLAIN else _decompressed(page.compression, content, size, whole)
    if not (size <= len(raw) <= size + SPARE or whole <= len(raw) <= whole + SPARE):
        raise ValueError(f"decodes to {len(raw)} bytes, declared are {size}")
    stored = page.dtype.newbyteorder(byteorder)
    values = np.frombuffer(raw, stored, size // stored.itemsize).reshape(shape)
    if page.predictor == HORIZONTAL:
        return imagecodecs.delta_decode(values.astype(page.dtype, copy=False), axis=-2)
    if page.predictor == FLOATING_POINT:
        return imagecodecs.floatpred_decode(values.copy(), axis=-2)
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
