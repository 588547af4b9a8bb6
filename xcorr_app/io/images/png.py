"""PNG files of grey values, or of red, green and blue where they are asked for; 8 or 16 bits.

Source: PNG specification, third edition (W3C 2025), sections 5 and 11. Decoded by imagecodecs (libpng), which takes as
many rows as the header declares and says nothing of those that remain.
"""

from __future__ import annotations

import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.images.single_image import single_image
from xcorr_app.io.opened import opened, stamp
from xcorr_app.system import read_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xcorr_app.io.limits import Limits
    from xcorr_app.io.plane_image import FormatImage

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB, _RGBA = 0, 2, 6
_CHANNELS = {_GREY: 1, _RGB: 3, _RGBA: 4}
_COLOURS = {2: "RGB", 3: "palette", 4: "grey with opacity", 6: "RGB with transparency"}
_OF_PIXELS = (b"IHDR", b"IDAT", b"IEND")


def scan_png(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check header and chunks of a PNG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        header = read_at(descriptor, 33, 0)
        if len(header) < 33 or header[8:16] != b"\0\0\0\rIHDR":
            raise DamagedFileError(f"{path}: has no PNG header; it is cut short or damaged: copy it again")
        kinds = {kind for kind, *_ in _chunks(lambda at, size: read_at(descriptor, size, at), mark[0])}
    if not kinds.issuperset(_OF_PIXELS):
        raise DamagedFileError(
            f"{path}: ends at byte {mark[0]}, within or before a chunk that it needs; it is cut short: copy it again"
        )
    width, height, bits, kind, *coding = struct.unpack(">IIBBBBB", header[16:29])
    for found, what in (
        (b"acTL" in kinds, "an animation"),
        (b"tRNS" in kinds, "an image with transparency"),
        (any(coding), "interlaced, or of another compression than the format knows"),
    ):
        if found:
            raise InputError(f"{path}: is {what}; save its frames as plain grey images")
    if height < 1 or width < 1:
        raise DamagedFileError(f"{path}: declares {height} x {width} pixels")
    in_colour = kind in (_RGB, _RGBA)
    if kind != _GREY and not (colour and in_colour):
        way = "pick one channel with --channel R, G, B or gray" if in_colour else "save it as grey values"
        raise InputError(
            f"{path}: is a colour image ({_COLOURS.get(kind, 'unknown')}), which cannot be measured as it is; {way}"
        )
    if bits not in (8, 16):
        raise InputError(f"{path}: has {bits} bits a pixel; convert it to 8 or 16")
    dtype = np.dtype(f"uint{bits}")
    limits.check_plane(path, height, width, dtype)
    # Every row begins with the number of its filter.
    decode = partial(_decoded, needed=height * (1 + width * _CHANNELS[kind] * bits // 8))
    return single_image(path, decode, (height, width), dtype, mark, 3 if in_colour else 1)


def _decoded(content: bytes, needed: int) -> np.ndarray:
    """Decode an image whose rows take so many bytes.

    Only what holds pixels is handed to libpng, checksums compared: of the rest it prints remarks on standard error.
    """
    plain, data = SIGNATURE, b""
    for kind, begin, end in _chunks(lambda at, size: content[at : at + size], len(content)):
        if kind in _OF_PIXELS:
            if zlib.crc32(content[begin - 4 : end]) != int.from_bytes(content[end : end + 4], "big"):
                raise ValueError(f"a chunk {kind.decode()} whose checksum is wrong")
            plain += content[begin - 8 : end + 4]
            data += content[begin:end] if kind == b"IDAT" else b""
    stored = len(imagecodecs.deflate_decode(data, out=needed + 1))
    if stored != needed:
        raise ValueError(f"holds {stored} bytes of pixels or more, its header asks for {needed}")
    image: np.ndarray = imagecodecs.png_decode(plain)
    return image


def _chunks(read: Callable[[int, int], bytes], size: int) -> Iterator[tuple[bytes, int, int]]:
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
