"""What a TIFF page declares against what the file holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.limits import SPARE
from xcorr_app.io.source import PIXEL_TYPES
from xcorr_app.io.tiff import segments
from xcorr_app.io.tiff.segments import Page

if TYPE_CHECKING:
    from xcorr_app.io.limits import Limits
    from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader

_FORMATS = {1: "uint", 2: "int", 3: "float", 4: "uint"}
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _FILL_ORDER = 256, 257, 258, 259, 262, 266
_STRIP_OFFSETS, _SAMPLES, _ROWS_PER_STRIP, _STRIP_BYTES = 273, 277, 278, 279
_PLANAR = 284
_PREDICTOR, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES, _FORMAT, _DEPTH = 317, 322, 323, 324, 325, 339, 32997
_GREY, _COLOUR = (0, 1, 3), (2, 6)
_COLOURS = ((3,), (4,))
"""Values of a pixel in colours; a fourth one is the opacity."""
_WITHOUT_CHANNELS = "save it as grey values, one page a channel (tifffile: photometric='minisblack')"
_COMPRESSION_NAMES = {2: "CCITT", 3: "CCITT group 3", 4: "CCITT group 4", 6: "old-style JPEG", 50001: "WebP"}
_COMPRESSION_NAMES |= {
    22610: "JPEG XR",
    34887: "LERC",
    34933: "PNG",
    34934: "JPEG XR",
    50002: "JPEG XL",
    52546: "JPEG XL",
}
_PHOTOMETRIC_NAMES = {2: "RGB", 5: "CMYK", 6: "YCbCr", 8: "CIE L*a*b*"}


def is_colour(reader: DirectoryReader, directory: Directory) -> bool:
    """Tell whether a page has red, green and blue samples, and perhaps opacity."""
    samples, photometric = reader.numbers(directory, _SAMPLES), reader.numbers(directory, _PHOTOMETRIC)
    return samples in _COLOURS and photometric is not None and photometric[0] in _COLOUR


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
    compression, predictor = number(_COMPRESSION, segments.PLAIN), number(_PREDICTOR, segments.NO_PREDICTOR)
    _check_storage(where, compression, predictor, dtype)
    plain = compression == segments.PLAIN
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
    fill_order = number(_FILL_ORDER, 1)
    whole = not is_tiled or (rows, columns) == (height, width)
    joined = all(
        offset + length == following for offset, length, following in zip(offsets, lengths, offsets[1:], strict=False)
    )
    is_one = plain and samples == 1 and fill_order == 1 and whole and joined
    kept = (reader.number(directory, _PHOTOMETRIC, 1), samples, is_planar, is_tiled, rows, columns, offsets, counts)
    how = (compression, predictor, fill_order, offsets[0] if is_one else -1)
    return Page(height, width, dtype, *kept, *how)


def _check_storage(where: str, compression: int, predictor: int, dtype: np.dtype) -> None:
    """Refuse what the format forbids, or readers disagree about."""
    if compression not in segments.READ_HERE:
        raise InputError(
            f"{where} has compression {_COMPRESSION_NAMES.get(compression, compression)}, which is not read for pixels "
            f"of {dtype}; save it with deflate (zlib), LZW, Zstandard or none"
        )
    allowed = {segments.NO_PREDICTOR, segments.HORIZONTAL}
    if dtype.kind == "f":
        allowed.add(segments.FLOATING_POINT)
    if compression in segments.PREDICTED and predictor not in allowed:
        raise DamagedFileError(f"{where} has predictor {predictor}, which pixels of {dtype} cannot have")
    if compression == segments.PLAIN and predictor != segments.NO_PREDICTOR:
        raise InputError(
            f"{where} has a predictor without a compression, which readers understand differently; save it again"
        )


def _pixel_type(where: str, bits: int, sample_format: int) -> np.dtype:
    name = f"{_FORMATS.get(sample_format, 'unknown type ')}{bits}"
    if name not in PIXEL_TYPES:
        raise InputError(f"{where} has pixels of type {name}; convert it to one of {', '.join(PIXEL_TYPES)}")
    return np.dtype(name)
