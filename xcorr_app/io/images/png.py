"""PNG files of grey values, or of red, green and blue where they are asked for; 8 or 16 bits.

Source: PNG specification, third edition (W3C 2025), sections 5 and 11. Decoded by imagecodecs (libpng).
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.images.png_stream import SIGNATURE, chunks, decode_png
from xcorr_app.io.images.single_image import single_image
from xcorr_app.io.opened import opened, stamp

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits
    from xcorr_app.io.plane_image import FormatImage

_GREY, _RGB, _RGBA = 0, 2, 6
_COLOURS = {2: "RGB", 3: "palette", 4: "grey with opacity", 6: "RGB with transparency"}


def scan_png(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check header and chunks of a PNG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        header = os.pread(descriptor, 33, 0)
        if header[:8] != SIGNATURE:
            raise DamagedFileError(f"{path}: is not a PNG file")
        if len(header) < 33 or header[8:16] != b"\0\0\0\rIHDR":
            raise DamagedFileError(f"{path}: has no PNG header; it is cut short or damaged: copy it again")
        kinds = {kind for kind, *_ in chunks(lambda at, size: os.pread(descriptor, size, at), mark[0])}
    if b"IEND" not in kinds:
        raise DamagedFileError(
            f"{path}: ends at byte {mark[0]}, within or before a chunk that it needs; it is cut short: copy it again"
        )
    if b"IDAT" not in kinds:
        raise DamagedFileError(f"{path}: holds no pixels (no IDAT chunk)")
    for other, what in ((b"acTL", "an animation"), (b"tRNS", "an image with transparency")):
        if other in kinds:
            raise InputError(f"{path}: is {what}; save its frames as plain grey images")
    width, height, bits, kind = struct.unpack(">IIBB", header[16:26])
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
    return single_image(path, decode_png, (height, width), dtype, mark, 3 if in_colour else 1)
