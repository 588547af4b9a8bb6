"""The size that a compressed image says of itself, read from its header before anything is decoded.

A decoder takes memory for what the stream declares, whatever the page around it says; so the two are compared first.
Sources: JPEG, ITU-T T.81 annex B; JPEG 2000, ISO/IEC 15444-1 annexes A and I.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

Size = tuple[int, int]
"""Rows and columns."""

_JPEG_END = b"\xff\xd9"
_JPEG_TAIL = 64
_J2K_START = b"\xff\x4f\xff\x51"
_MAX_COMPONENTS = 4
_OTHER_MARKERS = (0xC4, 0xC8, 0xCC)
"""Among those of frames: tables, and one that is reserved."""
_WITHOUT_LENGTH = (0x01, *range(0xD0, 0xD9))


class JpegFrame(NamedTuple):
    """What the header of a JPEG image declares, and the marker that it has."""

    marker: int
    bits: int
    rows: int
    columns: int
    components: int


def jpeg_frame(read: Callable[[int, int], bytes]) -> JpegFrame:
    """Find the header; ``read(place, size)`` returns bytes of the stream. Raises ValueError where there is none."""
    at = 2
    while True:
        head = read(at, 10)
        if len(head) < 10 or head[0] != 0xFF:
            raise ValueError("a JPEG stream without a frame header; it is cut short or damaged")
        marker, length = head[1], int.from_bytes(head[2:4], "big")
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _WITHOUT_LENGTH:
            at += 2
        elif length < 2:
            raise ValueError(f"a JPEG segment of {length} bytes")
        elif 0xC0 <= marker <= 0xCF and marker not in _OTHER_MARKERS:
            return JpegFrame(marker, *struct.unpack(">BHHB", head[4:]))
        else:
            at += 2 + length


def jpeg_size(content: bytes) -> Size:
    """JPEG."""
    _check_jpeg_end(content)
    frame = jpeg_frame(lambda at, size: content[at : at + size])
    return frame.rows, frame.columns


def jpeg2000_size(content: bytes) -> Size:
    """JPEG 2000, with or without the boxes of a JP2 file around it."""
    if not content.startswith(_J2K_START):
        content = _codestream(content)
    _check_jpeg_end(content)
    if not content.startswith(_J2K_START) or len(content) < 42:
        raise ValueError("no JPEG 2000 codestream")
    if int.from_bytes(content[40:42], "big") > _MAX_COMPONENTS:
        raise ValueError("a JPEG 2000 image of more components than colours")
    right, bottom, left, top = struct.unpack_from(">4I", content, 8)
    return bottom - top, right - left


def check_size(content: bytes, allowed: set[Size], *, is_jpeg: bool) -> None:
    """Raise ValueError where a stream is of another size than those allowed, or has no header that says."""
    try:
        size = (jpeg_size if is_jpeg else jpeg2000_size)(content)
    except struct.error as error:
        raise ValueError("a compressed image without a usable header") from error
    if size not in allowed:
        declared = " or ".join(f"{rows} x {columns}" for rows, columns in sorted(allowed))
        raise ValueError(f"a compressed image of {size[0]} x {size[1]} pixels where {declared} belong")


def _check_jpeg_end(content: bytes) -> None:
    """Refuse a stream without its end mark: decoders fill what is missing with grey and say nothing."""
    if not content[-_JPEG_TAIL:].rstrip(b"\0").endswith(_JPEG_END):
        raise ValueError("a JPEG stream without an end; it is incomplete")


def _codestream(content: bytes) -> bytes:
    """Content of the box with the codestream of a JP2 file."""
    at = 0
    while at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        head = 8
        if length == 1 and at + 16 <= len(content):
            (length,) = struct.unpack_from(">Q", content, at + 8)
            head = 16
        if kind == b"jp2c":
            return content[at + head : len(content) if length == 0 else at + length]
        if length < head:
            break
        at += length
    raise ValueError("no box jp2c")
