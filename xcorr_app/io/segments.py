"""Compressed pages of the usual kinds, decoded without parsing the whole file for every page.

Deflate, LZW, Zstandard and PackBits, with or without a predictor, in strips or tiles, one sample a pixel: by the same
codecs of imagecodecs that tifffile uses, which release Python's lock. Anything else, and whatever is not as it should
be, is left to tifffile, whose errors then say what is wrong.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import imagecodecs
import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.tiff_directory import Directory, DirectoryReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xcorr_app.io.source import StackMetadata

_DECODERS: dict[int, Callable[..., Any]] = {
    5: imagecodecs.lzw_decode,
    8: imagecodecs.deflate_decode,
    32773: imagecodecs.packbits_decode,
    32946: imagecodecs.deflate_decode,
    50000: imagecodecs.zstd_decode,
}
_COMPRESSION, _FILL_ORDER, _SAMPLES, _PREDICTOR = 259, 266, 277, 317
_STRIP_OFFSETS, _ROWS_PER_STRIP, _STRIP_BYTES = 273, 278, 279
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES = 322, 323, 324, 325
_NONE, _HORIZONTAL, _FLOATING_POINT = 1, 2, 3


def decode_page(descriptor: int, path: Path, offset: int, metadata: StackMetadata, out: np.ndarray) -> bool:
    """Decode the page whose directory is at `offset` into `out`, (Y, X); tells whether it could be done here."""
    try:
        reader = DirectoryReader(descriptor, path)
        return _decoded(reader, descriptor, reader.directory_at(offset), metadata, out)
    except (InputError, ValueError, RuntimeError, OSError):  # codecs raise RuntimeError
        return False


def _decoded(
    reader: DirectoryReader, descriptor: int, directory: Directory, metadata: StackMetadata, out: np.ndarray
) -> bool:
    def number(code: int, default: int) -> int:
        values = reader.numbers(directory, code)
        return values[0] if values else default

    decode = _DECODERS.get(number(_COMPRESSION, 1))
    predictor = number(_PREDICTOR, _NONE)
    if decode is None or number(_SAMPLES, 1) != 1 or number(_FILL_ORDER, 1) != 1 or predictor > _FLOATING_POINT:
        return False
    height, width = metadata.shape[-2:]
    tiled = _TILE_OFFSETS in directory.tags
    offsets = reader.numbers(directory, _TILE_OFFSETS if tiled else _STRIP_OFFSETS)
    counts = reader.numbers(directory, _TILE_BYTES if tiled else _STRIP_BYTES)
    rows = number(_TILE_HEIGHT, 0) if tiled else min(number(_ROWS_PER_STRIP, height), height)
    columns = number(_TILE_WIDTH, 0) if tiled else width
    if offsets is None or counts is None or rows < 1 or columns < 1:
        return False
    across = math.ceil(width / columns)
    if len(offsets) != len(counts) or len(offsets) != across * math.ceil(height / rows):
        return False
    stored = metadata.dtype.newbyteorder(reader.byteorder)
    for number_of, (place, count) in enumerate(zip(offsets, counts, strict=True)):
        top, left = number_of // across * rows, number_of % across * columns
        there = rows if tiled else min(rows, height - top)
        size = there * columns * stored.itemsize
        content = os.pread(descriptor, count, place)
        if len(content) != count:
            return False
        raw = decode(content, out=size)
        if len(raw) != size:
            return False
        values = np.frombuffer(raw, stored).reshape(there, columns)
        if predictor == _HORIZONTAL:
            values = imagecodecs.delta_decode(values.astype(metadata.dtype), axis=-1)
        elif predictor == _FLOATING_POINT:
            values = imagecodecs.floatpred_decode(values.copy(), axis=-1)
        part = out[top : top + there, left : left + columns]
        part[...] = values[: part.shape[0], : part.shape[1]]
    return True
