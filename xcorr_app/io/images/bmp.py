"""BMP files of grey values, or of red, green and blue where they are asked for; 8 bits a value.

Source: Microsoft, BITMAPFILEHEADER and BITMAPINFOHEADER.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.images.single_image import single_image
from xcorr_app.io.limits import SPARE
from xcorr_app.io.opened import opened, stamp
from xcorr_app.system import read_at

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits
    from xcorr_app.io.plane_image import FormatImage

SIGNATURE = b"BM"
_HEADER = 54
_PLAIN, _BITFIELDS = 0, 3
_MASKS = struct.pack("<3I", 0xFF0000, 0xFF00, 0xFF)
"""Of red, green and blue: the order that is read."""
_LARGE_HEADER = 108
"""From this version on, a colour profile may follow the pixels."""


def scan_bmp(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check the header of a BMP file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        head = read_at(descriptor, _HEADER, 0)
        if len(head) < _HEADER:
            raise DamagedFileError(f"{path}: ends within the BMP header ({mark[0]} bytes)")
        data, header, width, height, planes, bits, compression = struct.unpack_from("<IIiiHHI", head, 10)
        used = struct.unpack_from("<I", head, 46)[0]
        palette = read_at(descriptor, 4 * min(used or 256, 256), 14 + header) if bits == 8 and header < 2**16 else b""
        masks = read_at(descriptor, len(_MASKS), _HEADER)
    bottom_up, height = height > 0, abs(height)
    if height < 1 or width < 1 or header < 40:
        raise DamagedFileError(f"{path}: declares {height} x {width} pixels in a header of {header} bytes")
    other_order = compression == _BITFIELDS and (bits != 32 or masks != _MASKS)
    if bits not in (8, 24, 32) or compression not in (_PLAIN, _BITFIELDS) or other_order:
        raise InputError(f"{path}: is a BMP image of {bits} bits, compression {compression}; save it as TIFF or PNG")
    limits.check_plane(path, height, width, np.dtype(np.uint8))
    row_bytes = (width * bits + 31) // 32 * 4
    if data + height * row_bytes > mark[0]:
        raise DamagedFileError(
            f"{path}: needs {height} rows of {row_bytes} bytes from byte {data}, the file has {mark[0]} bytes; it is "
            "cut short: copy it again"
        )
    pixels_may_begin = 14 + header + len(palette)
    spare = mark[0] - data - height * row_bytes
    if planes != 1 or data < pixels_may_begin or (header < _LARGE_HEADER and spare > SPARE):
        raise DamagedFileError(
            f"{path}: declares {planes} planes of {height} rows of {row_bytes} bytes from byte {data}, the file has "
            f"{mark[0]} bytes; it is damaged"
        )
    colours = np.frombuffer(palette[: len(palette) // 4 * 4], np.uint8).reshape(-1, 4)[:, 2::-1]
    in_colour = bits > 8 or bool((colours != colours[:, :1]).any())
    if in_colour and not colour:
        raise InputError(
            f"{path}: is a colour image (BMP, {bits} bits), which cannot be measured as it is; pick one channel with "
            "--channel R, G, B or gray"
        )

    def decoded(content: bytes) -> np.ndarray:
        rows = np.frombuffer(content, np.uint8, height * row_bytes, data).reshape(height, row_bytes)
        values = rows[:: -1 if bottom_up else 1, : width * bits // 8].reshape(height, width, bits // 8)
        if bits > 8:
            return values[..., 2::-1]
        if len(colours) <= values.max():
            raise ValueError(f"has a value of {values.max()}, and a palette of {len(colours)} entries")
        return np.ascontiguousarray(colours[values[..., 0]] if in_colour else colours[values[..., 0], 0])

    return single_image(path, decoded, (height, width), np.dtype(np.uint8), mark, 3 if in_colour else 1)
