"""The size that a compressed image says of itself, read from its header before anything is decoded.

A decoder takes memory for what the stream declares, whatever the page around it says; so the two are compared first.
Sources: JPEG, ITU-T T.81 annex B; JPEG 2000, ISO/IEC 15444-1 annexes A and I; JPEG XL, ISO/IEC 18181-1 annex D and
18181-2; JPEG XR, ITU-T T.832 section 8 and annex A; LERC, Esri's Lerc2.cpp; PNG, W3C 2025, section 11.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Size = tuple[int, int]
"""Rows and columns."""

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_JPEG_END = b"\xff\xd9"
_JPEG_TAIL = 64
_J2K_START = b"\xff\x4f\xff\x51"
_MAX_COMPONENTS = 4
_XL_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
_XL_BITS = (9, 13, 18, 30)
_XR_TAGS = (*range(0xBC01, 0xBC05), *range(0xBC80, 0xBC84), *range(0xBCC0, 0xBCC6))
_XR_NOTES = (0x10D, 0x10E, 0x10F, 0x110, 0x11D, 0x129, 0x131, 0x132, 0x13B, 0x13C, 0x2BC, 0x4746, 0x8298, 0x83BB)
_XR_KNOWN = frozenset((*_XR_TAGS, *_XR_NOTES, 0x8649, 0x8769, 0x8773, 0x8825, 0xEA1C))
_XR_ROWS, _XR_COLUMNS, _XR_OFFSET, _XR_BYTES = 0xBC81, 0xBC80, 0xBCC0, 0xBCC1


def jpeg_size(content: bytes) -> Size:
    """JPEG."""
    _check_jpeg_end(content)
    at = 2
    while content[:2] == b"\xff\xd8" and at + 9 <= len(content) and content[at] == 0xFF:
        kind = content[at + 1]
        if kind == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            rows, columns = struct.unpack_from(">HH", content, at + 5)
            return rows, columns
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    raise ValueError("a JPEG stream without a frame header")


def jpeg2000_size(content: bytes) -> Size:
    """JPEG 2000, with or without the boxes of a JP2 file around it."""
    if not content.startswith(_J2K_START):
        content = _box(content, b"jp2c")
    _check_jpeg_end(content)
    if not content.startswith(_J2K_START) or len(content) < 42:
        raise ValueError("no JPEG 2000 codestream")
    if int.from_bytes(content[40:42], "big") > _MAX_COMPONENTS:
        raise ValueError("a JPEG 2000 image of more components than colours")
    right, bottom, left, top = struct.unpack_from(">4I", content, 8)
    return bottom - top, right - left


def jpegxl_size(content: bytes) -> Size:
    """JPEG XL, with or without boxes around it."""
    if content.startswith(b"\0\0\0\x0cJXL "):
        content = _box(content, b"jxlc", b"jxlp")
        content = content if content.startswith(b"\xff\x0a") else content[4:]  # of a part, its number comes first
    if not content.startswith(b"\xff\x0a") or len(content) < 12:
        raise ValueError("no JPEG XL codestream")
    bits, place = int.from_bytes(content[2:12], "little"), 0

    def take(count: int) -> int:
        nonlocal place
        place += count
        return bits >> (place - count) & ((1 << count) - 1)

    small = take(1)

    def length() -> int:
        return 8 * (1 + take(5)) if small else 1 + take(_XL_BITS[take(2)])

    rows = length()
    ratio = take(3)
    if ratio == 0:
        return rows, length()
    across, down = _XL_RATIOS[ratio - 1]
    return rows, rows * across // down


def jpegxr_size(content: bytes) -> Size:
    """JPEG XR in its container, all bytes of which must be there."""
    if content[:4] != b"II\xbc\x01" or len(content) < 8:
        raise ValueError("no JPEG XR container")
    (at,) = struct.unpack_from("<I", content, 4)
    (entries,) = struct.unpack_from("<H", content, at)
    if len(content) < at + 2 + 12 * entries:
        raise ValueError("a JPEG XR container that is cut short")
    values = {}
    for code, kind, _, value in struct.iter_unpack("<HHII", content[at + 2 : at + 2 + 12 * entries]):
        if code not in _XR_KNOWN:  # the decoder would print it and go on
            raise ValueError(f"a JPEG XR container with an unknown tag {code}")
        values[code] = value & 0xFFFF if kind == 3 else value
    image = values[_XR_OFFSET]
    size = values[_XR_ROWS], values[_XR_COLUMNS]
    if image + values.get(_XR_BYTES, 0) > len(content):
        raise ValueError("a JPEG XR image that is cut short")
    if content[image : image + 8] != b"WMPHOTO\0":
        raise ValueError("no JPEG XR image")
    short = content[image + 10] & 0x80
    columns, rows = struct.unpack_from(">HH" if short else ">II", content, image + 12)
    if (rows + 1, columns + 1) != size:
        raise ValueError(f"a JPEG XR image of {rows + 1} x {columns + 1} in a container of {size[0]} x {size[1]}")
    return size


def lerc_size(content: bytes) -> Size:
    """LERC, second version, of one value a pixel."""
    if content[:6] != b"Lerc2 " or len(content) < 40:
        raise ValueError("no LERC blob")
    (version,) = struct.unpack_from("<i", content, 6)
    at = 14 if version >= 3 else 10
    rows, columns, values = struct.unpack_from("<3i", content, at)
    if version >= 4 and values != 1:
        raise ValueError(f"a LERC blob of {values} values a pixel")
    (length,) = struct.unpack_from("<i", content, at + (20 if version >= 4 else 16))
    if length > len(content) or content[length : length + 6] == b"Lerc2 ":
        raise ValueError("a LERC blob that is cut short, or several")
    return rows, columns


def png_size(content: bytes) -> Size:
    """PNG."""
    if not content.startswith(_PNG) or len(content) < 24:
        raise ValueError("no PNG image")
    columns, rows = struct.unpack_from(">II", content, 16)
    return rows, columns


SIZES: dict[int, Callable[[bytes], Size]] = {
    7: jpeg_size,
    22610: jpegxr_size,
    33003: jpeg2000_size,
    33004: jpeg2000_size,
    33005: jpeg2000_size,
    34712: jpeg2000_size,
    34887: lerc_size,
    34892: jpeg_size,
    34933: png_size,
    34934: jpegxr_size,
    50002: jpegxl_size,
    52546: jpegxl_size,
}
"""By the code of a TIFF compression."""


def check_size(compression: int, content: bytes, allowed: set[Size]) -> None:
    """Raise ValueError where a stream is of another size than those allowed, or has no header that says."""
    try:
        size = SIZES[compression](content)
    except (struct.error, KeyError, IndexError) as error:
        raise ValueError("a compressed image without a usable header") from error
    if size not in allowed:
        declared = " or ".join(f"{rows} x {columns}" for rows, columns in sorted(allowed))
        raise ValueError(f"a compressed image of {size[0]} x {size[1]} pixels where {declared} belong")


def _check_jpeg_end(content: bytes) -> None:
    """Refuse a stream without its end mark: decoders fill what is missing with grey and say nothing."""
    if not content[-_JPEG_TAIL:].rstrip(b"\0").endswith(_JPEG_END):
        raise ValueError("a JPEG stream without an end; it is incomplete")


def _box(content: bytes, *kinds: bytes) -> bytes:
    """Content of the first box of one of these kinds, as JPEG 2000 and JPEG XL have them."""
    at = 0
    while at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        head = 8
        if length == 1 and at + 16 <= len(content):
            (length,) = struct.unpack_from(">Q", content, at + 8)
            head = 16
        if kind in kinds:
            return content[at + head : len(content) if length == 0 else at + length]
        if length < head:
            break
        at += length
    raise ValueError(f"no box {kinds[0].decode()}")
