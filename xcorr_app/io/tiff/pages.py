"""What a TIFF page declares against what the file holds; pages that are not stored plainly, decoded as strictly.

Strips and tiles are decoded by imagecodecs, which releases Python's lock, without parsing the file again for every
page: what comes out must be what the page declares, no less, no more.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import SPARE, Limits
from xcorr_app.io.images.pictures import JPEG_END
from xcorr_app.io.source import PIXEL_TYPES
from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader
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
_JPEG, _JPEG_TAIL = (7, 34892), 64
PLAIN = 1
READ_HERE = (PLAIN, *_BYTE_CODECS, *_JPEG)
"""Codes of the compressions that are read; others are of one bit a pixel (CCITT, JBIG), rare, or a maker's own."""
PREDICTED = frozenset(_BYTE_CODECS)
"""Those that a predictor may come before."""
NO_PREDICTOR, HORIZONTAL, FLOATING_POINT = 1, 2, 3
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
    """Decode a segment that is a JPEG image of its own; a last strip may have the rows of the others."""
    if not content[-_JPEG_TAIL:].rstrip(b"\0").endswith(JPEG_END):
        raise ValueError("a JPEG stream without an end; it is incomplete")  # of which decoders say nothing
    colours: Any = {"outcolorspace": _RGB} if shape[-1] > 1 else {}
    if colours and page.photometric == _RGB and content[6:10] != b"JFIF":
        colours["colorspace"] = _RGB  # as scanners of slides write it
    decode = partial(imagecodecs.jpeg_decode, bitspersample=8 * page.dtype.itemsize, tables=tables or None, **colours)
    # Its own header is compared with the room that it is given before anything is decoded.
    room = np.empty((page.rows, *shape[1:]), page.dtype)
    try:
        decode(content, out=room[: shape[0]])
    except ValueError:
        decode(content, out=room)
    return room[: shape[0]]


def _values(content: bytes, page: Page, shape: tuple[int, int, int], byteorder: Literal["<", ">"]) -> np.ndarray:
    """Decode a segment of bytes, in native byte order."""
    size, whole = (rows * shape[1] * shape[2] * page.dtype.itemsize for rows in (shape[0], page.rows))
    raw = content if page.compression == PLAIN else _BYTE_CODECS[page.compression](content, out=whole + SPARE + 1)
    if not (size <= len(raw) <= size + SPARE or whole <= len(raw) <= whole + SPARE):
        raise ValueError(f"decodes to {len(raw)} bytes, declared are {size}")
    stored = page.dtype.newbyteorder(byteorder)
    values = np.frombuffer(raw, stored, size // stored.itemsize).reshape(shape)
    if page.predictor == HORIZONTAL:
        return imagecodecs.delta_decode(values.astype(page.dtype, copy=False), axis=-2)
    if page.predictor == FLOATING_POINT:
        return imagecodecs.floatpred_decode(values.copy(), axis=-2)
    return values


_FORMATS = {1: "uint", 2: "int", 3: "float", 4: "uint"}
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _FILL_ORDER = 256, 257, 258, 259, 262, 266
_STRIP_OFFSETS, _SAMPLES, _ROWS_PER_STRIP, _STRIP_BYTES = 273, 277, 278, 279
_PLANAR = 284
_PREDICTOR, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES, _FORMAT, _DEPTH = 317, 322, 323, 324, 325, 339, 32997
_GREY, _COLOUR = (0, 1, 3), (2, 6)
_COLOURS = (3,)
"""Values of a pixel."""
_WITHOUT_CHANNELS = (
    "save it without transparency, or as grey values, one page a channel (tifffile: photometric='minisblack')"
)
_COMPRESSION_NAMES = {
    2: "CCITT",
    3: "CCITT group 3",
    4: "CCITT group 4",
    6: "old-style JPEG",
    50001: "WebP",
    22610: "JPEG XR",
    33003: "JPEG 2000",
    33004: "JPEG 2000",
    33005: "JPEG 2000",
    34712: "JPEG 2000",
    34887: "LERC",
    34933: "PNG",
    34934: "JPEG XR",
    50002: "JPEG XL",
    52546: "JPEG XL",
}
_PHOTOMETRIC_NAMES = {2: "RGB", 5: "CMYK", 6: "YCbCr", 8: "CIE L*a*b*"}


def is_colour(reader: DirectoryReader, directory: Directory) -> bool:
    """Tell whether a page has red, green and blue samples."""
    samples, photometric = reader.numbers(directory, _SAMPLES), reader.numbers(directory, _PHOTOMETRIC)
    return samples == _COLOURS and photometric is not None and photometric[0] in _COLOUR


def check_page(reader: DirectoryReader, directory: Directory, limits: Limits, *, colour: bool = False) -> Page:
    """Check one page and say what it holds: grey values, or red, green and blue where `colour` is asked for."""
    where = f"{reader.path}: page {directory.index}"
    if colour and not is_colour(reader, directory):
        raise InputError(f"{where} is not red, green and blue as the first page is; save pages of one kind together")
    photometric, samples = (reader.number(directory, code, 1) for code in (_PHOTOMETRIC, _SAMPLES))
    page = stored_page(reader, directory, limits)
    if not colour and (samples != 1 or photometric not in _GREY):
        kind = _PHOTOMETRIC_NAMES.get(photometric, f"{samples} samples a pixel")
        raise InputError(
            f"{where} is a colour image ({kind}), which cannot be measured as it is; "
            + ("pick one channel with --channel R, G, B or gray" if is_colour(reader, directory) else _WITHOUT_CHANNELS)
        )
    return page


def stored_page(reader: DirectoryReader, directory: Directory, limits: Limits) -> Page:
    """Check how a page is stored, whatever its samples mean.

    Every strip or tile must be there, lie inside the file, be longer than nothing, and, uncompressed, be as
    long as rows, columns and bits demand.
    """
    where = f"{reader.path}: page {directory.index}"

    def number(code: int, default: int) -> int:
        return reader.number(directory, code, default)

    height, width = number(_HEIGHT, 0), number(_WIDTH, 0)
    if height < 1 or width < 1:
        raise DamagedFileError(f"{where} declares {height} x {width} pixels")
    dtype = _pixel_type(where, number(_BITS, 1), number(_FORMAT, 1))
    limits.check_plane(reader.path, height, width, dtype)
    samples = number(_SAMPLES, 1)
    if number(_FILL_ORDER, 1) != 1:
        raise InputError(f"{where} has the bits of its bytes in the opposite order (FillOrder tag); save it again")
    if samples < 1 or number(_DEPTH, 1) != 1:
        raise InputError(f"{where} is a volume (ImageDepth tag), or without samples; save it with one page a plane")

    # Samples stored apart have segments of their own.
    is_planar = number(_PLANAR, 1) == 2
    is_tiled = _TILE_OFFSETS in directory.tags
    offsets = reader.numbers(directory, _TILE_OFFSETS if is_tiled else _STRIP_OFFSETS)
    counts = reader.numbers(directory, _TILE_BYTES if is_tiled else _STRIP_BYTES)
    if not offsets or not counts:
        raise DamagedFileError(f"{where} does not say where its pixels are (no strip or tile table)")
    if is_tiled:
        rows, columns = number(_TILE_HEIGHT, 0), number(_TILE_WIDTH, 0)
    else:
        rows, columns = min(number(_ROWS_PER_STRIP, height), height), width
    if rows < 1 or columns < 1:
        raise DamagedFileError(f"{where} declares {'tiles' if is_tiled else 'strips'} of {rows} x {columns} pixels")
    # A tile is decoded whole, whatever part of it lies inside the plane.
    limits.check_plane(reader.path, rows, columns, dtype)
    in_layer = math.ceil(height / rows) * math.ceil(width / columns)
    needed = in_layer * (samples if is_planar else 1)
    if len(offsets) != needed or len(counts) != needed:
        raise DamagedFileError(
            f"{where} needs {needed} {'tiles' if is_tiled else 'strips'}, its tables list {len(offsets)} offsets and "
            f"{len(counts)} byte counts"
        )
    compression, predictor = number(_COMPRESSION, PLAIN), number(_PREDICTOR, NO_PREDICTOR)
    _check_storage(where, compression, predictor, dtype)
    plain = compression == PLAIN
    row_bytes = columns * dtype.itemsize * (1 if is_planar else samples)
    lengths = [rows * row_bytes] * in_layer
    if not is_tiled:
        lengths[-1] = (height - rows * (in_layer - 1)) * row_bytes
    lengths *= needed // in_layer
    for number_of, (offset, count, length) in enumerate(zip(offsets, counts, lengths, strict=True)):
        if count == 0 or offset == 0:
            raise DamagedFileError(f"{where} is incomplete: segment {number_of} of {needed} was never written")
        if offset + count > reader.size:
            raise DamagedFileError(
                f"{where} has pixels up to byte {offset + count}, but the file has {reader.size} bytes; it is "
                "cut short: copy it again"
            )
        if plain and not length <= count <= length + SPARE:
            raise DamagedFileError(f"{where}: segment {number_of} needs {length} bytes, {count} are stored")
    whole = not is_tiled or (rows, columns) == (height, width)
    joined = all(
        offset + length == following for offset, length, following in zip(offsets, lengths, offsets[1:], strict=False)
    )
    is_one = plain and samples == 1 and whole and joined
    kept = (reader.number(directory, _PHOTOMETRIC, 1), samples, is_planar, is_tiled, rows, columns, offsets, counts)
    how = (compression, predictor, offsets[0] if is_one else -1)
    return Page(height, width, dtype, *kept, *how)


def _check_storage(where: str, compression: int, predictor: int, dtype: np.dtype) -> None:
    """Refuse what the format forbids, or readers disagree about."""
    if compression not in READ_HERE:
        raise InputError(
            f"{where} has compression {_COMPRESSION_NAMES.get(compression, compression)}, which is not read; "
            f"save it with deflate (zlib), LZW, Zstandard or none"
        )
    allowed = {NO_PREDICTOR, HORIZONTAL}
    if dtype.kind == "f":
        allowed.add(FLOATING_POINT)
    if compression in PREDICTED and predictor not in allowed:
        raise DamagedFileError(f"{where} has predictor {predictor}, which pixels of {dtype} cannot have")
    if compression == PLAIN and predictor != NO_PREDICTOR:
        raise InputError(
            f"{where} has a predictor without a compression, which readers understand differently; save it again"
        )


def _pixel_type(where: str, bits: int, sample_format: int) -> np.dtype:
    name = f"{_FORMATS.get(sample_format, 'unknown type ')}{bits}"
    if name not in PIXEL_TYPES:
        raise InputError(f"{where} has pixels of type {name}; convert it to one of {', '.join(PIXEL_TYPES)}")
    return np.dtype(name)
