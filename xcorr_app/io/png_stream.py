"""PNG decoded strictly: libpng takes as many rows as the header declares, and says nothing of those that remain."""

from __future__ import annotations

import math
import struct

import imagecodecs
import numpy as np

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""First row and column, and steps along both, of the passes of an interlaced image."""


def decode_png(content: bytes) -> np.ndarray:
    """Decode a PNG file; raises ValueError where its compressed data are not what its header asks for."""
    columns, rows, bits, kind, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, 16)
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    needed = 0
    for top, left, down, across in passes:
        there, wide = max(0, math.ceil((rows - top) / down)), max(0, math.ceil((columns - left) / across))
        needed += there * (1 + math.ceil(wide * _CHANNELS[kind] * bits / 8)) if wide else 0
    stored = len(imagecodecs.deflate_decode(_data(content), out=needed + 1))
    if stored != needed:
        raise ValueError(f"holds {stored} bytes of pixels or more, its header asks for {needed}")
    image: np.ndarray = imagecodecs.png_decode(content)
    return image


def _data(content: bytes) -> bytes:
    parts, at = [], 8
    while at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"IDAT":
            parts.append(content[at + 8 : at + 8 + length])
        at += 12 + length
    return b"".join(parts)
