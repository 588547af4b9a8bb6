"""PNG decoded strictly: libpng takes as many rows as the header declares and says nothing of those that remain.

Only what holds pixels is handed to it, checksums compared, since of the rest it prints remarks on standard error.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 6: 4}
"""Values a pixel: grey, colours, colours with opacity."""
_ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""First row and column, and steps along both, of the passes of an interlaced image."""


def decode_png(content: bytes) -> np.ndarray:
    """Decode a PNG file; raises ValueError where its compressed data are not what its header asks for."""
    header, data = _header_and_data(content)
    columns, rows, bits, kind, compression, filtering, interlaced = struct.unpack(">IIBBBBB", header)
    if kind not in _CHANNELS or bits not in (8, 16) or compression or filtering or interlaced > 1:
        raise ValueError("a PNG header of a kind that is not read")
    needed = 0
    for top, left, down, across in _ADAM7 if interlaced else ((0, 0, 1, 1),):
        there, wide = max(0, math.ceil((rows - top) / down)), max(0, math.ceil((columns - left) / across))
        needed += there * (1 + wide * _CHANNELS[kind] * bits // 8) if wide else 0
    stored = len(imagecodecs.deflate_decode(data, out=needed + 1))
    if stored != needed:
        raise ValueError(f"holds {stored} bytes of pixels or more, its header asks for {needed}")
    plain = SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    image: np.ndarray = imagecodecs.png_decode(plain)
    return image


def chunks(read: Callable[[int, int], bytes], size: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each chunk of a file of so many bytes, and where its content begins and ends, as far as all are there."""
    kind, at = b"", len(SIGNATURE)
    while kind != b"IEND":
        head = read(at, 8)
        end = at + 8 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or end + 4 > size:
            return
        kind = head[4:]
        yield kind, at + 8, end
        at = end + 4


def _header_and_data(content: bytes) -> tuple[bytes, bytes]:
    header, parts = b"", []
    for kind, begin, end in chunks(lambda at, size: content[at : at + size], len(content)):
        if kind in (b"IHDR", b"IDAT"):
            if content[end : end + 4] != zlib.crc32(content[begin - 4 : end]).to_bytes(4, "big"):
                raise ValueError(f"a chunk {kind.decode()} whose checksum is wrong")
            if kind == b"IDAT":
                parts.append(content[begin:end])
            else:
                header = content[begin:end]
    if len(header) != 13 or not parts:
        raise ValueError("no header or no pixels")
    return header, b"".join(parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")
