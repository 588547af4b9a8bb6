"""JPEG files of grey values, or of red, green and blue where they are asked for; 8 bits a value.

Source: ITU-T T.81 (1992), annex B. Decoded by imagecodecs (libjpeg-turbo).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.images.codestream import jpeg_frame
from xcorr_app.io.images.single_image import single_image
from xcorr_app.io.opened import opened, parsing, stamp
from xcorr_app.system import read_at

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits
    from xcorr_app.io.plane_image import FormatImage

SIGNATURE = b"\xff\xd8\xff"
_END = b"\xff\xd9"
_TAIL = 1 << 12
_READ_HERE = (0xC0, 0xC1, 0xC2)
"""Frames with Huffman coding and 8 bits: baseline, extended, progressive."""


def scan_jpeg(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check the markers of a JPEG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor, parsing(path):
        mark = stamp(descriptor)
        marker, bits, height, width, components = jpeg_frame(lambda at, size: read_at(descriptor, size, at))
        tail = read_at(descriptor, _TAIL, max(0, mark[0] - _TAIL))
    if marker not in _READ_HERE:
        raise InputError(f"{path}: is a lossless or arithmetic-coded JPEG image; save it as TIFF or PNG")
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
