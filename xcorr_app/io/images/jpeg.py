"""JPEG files of grey values, or of red, green and blue where they are asked for; 8 bits a value.

Source: ITU-T T.81 (1992), annex B. Decoded by imagecodecs (libjpeg-turbo).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.images.single_image import single_image
from xcorr_app.io.opened import opened, stamp

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits
    from xcorr_app.io.plane_image import FormatImage

SIGNATURE = b"\xff\xd8\xff"
_END = b"\xff\xd9"
_TAIL = 1 << 12
_SCAN = 0xDA
_READ_HERE = (0xC0, 0xC1, 0xC2)
"""Frames with Huffman coding and 8 bits: baseline, extended, progressive."""
_OTHER_FRAMES = (0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF)
_WITHOUT_LENGTH = (0x01, *range(0xD0, 0xD9))


def scan_jpeg(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check the markers of a JPEG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        frame, scan = _frame_and_scan(descriptor, path, mark[0])
        length = min(mark[0] - scan, _TAIL)
        tail = os.pread(descriptor, length, mark[0] - length)
    bits = frame[0]
    height, width, components = int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big"), frame[5]
    if height < 1 or width < 1:
        raise DamagedFileError(f"{path}: declares {height} x {width} pixels")
    if bits != 8 or components not in (1, 3):
        raise InputError(
            f"{path}: is a JPEG image of {components} values of {bits} bits a pixel; save it as TIFF or PNG"
        )
    limits.check_plane(path, height, width, np.dtype(np.uint8))
    if components > 1 and not colour:
        raise InputError(
            f"{path}: is a colour image (JPEG), which cannot be measured as it is; pick one channel with --channel "
            "R, G, B or gray"
        )
    # The codec fills what is missing with grey and says nothing. Some cameras write more behind the end.
    if _END not in tail:
        raise DamagedFileError(f"{path}: is a JPEG image without an end; it is cut short: copy it again")
    return single_image(path, imagecodecs.jpeg8_decode, (height, width), np.dtype(np.uint8), mark, components)


def _frame_and_scan(descriptor: int, path: Path, size: int) -> tuple[bytes, int]:
    """Bits, rows, columns and components as stored, and the byte where the first scan begins."""
    offset, frame = 2, b""
    while True:
        head = os.pread(descriptor, 10, offset)
        if len(head) < 4 or head[0] != 0xFF:
            raise DamagedFileError(
                f"{path}: has no JPEG frame and scan up to byte {min(offset, size)}; it is cut "
                "short or damaged: copy it again"
            )
        kind, length = head[1], int.from_bytes(head[2:4], "big")
        if kind == _SCAN and frame:
            return frame, offset
        if kind in _OTHER_FRAMES:
            raise InputError(f"{path}: is a lossless or arithmetic-coded JPEG image; save it as TIFF or PNG")
        if kind in _READ_HERE:
            frame = head[4:]
            if len(frame) < 6:
                raise DamagedFileError(f"{path}: ends within its JPEG frame header")
        if kind == 0xFF:  # a fill byte
            offset += 1
        elif kind in _WITHOUT_LENGTH:
            offset += 2
        elif length < 2:
            raise DamagedFileError(f"{path}: has a JPEG segment of {length} bytes")
        else:
            offset += 2 + length
