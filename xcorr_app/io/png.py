"""PNG files of grey values, or of red, green and blue where they are asked for; 8 or 16 bits.

Source: PNG specification, third edition (W3C 2025), sections 5 and 11. Decoded by imagecodecs (libpng).
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.source import StackMetadata, make_metadata
from xcorr_app.io.tiff import opened, stamp

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_COLOURS = {2: "RGB", 3: "palette", 4: "grey with transparency", 6: "RGB with transparency"}


@dataclass(frozen=True)
class PngImage:
    """A PNG file whose chunks are all there; one page."""

    path: Path
    metadata: StackMetadata
    stamp: tuple[int, int]
    page_count: int = 1

    @property
    def samples(self) -> int:
        """Values a pixel: 1, or 3 for red, green and blue."""
        return self.metadata.sizes["C"]

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane: there is one of each."""
        if (t, z, c) != (0, 0, 0):
            raise IndexError(f"{self.path}: has one plane, not t={t}, z={z}, c={c}")
        return 0

    def read(self, page: int) -> np.ndarray:
        """Read the image, (Y, X) or (3, Y, X) in native byte order."""
        with opened(self.path) as descriptor:
            if page != 0 or stamp(descriptor) != self.stamp:
                raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
            content = os.pread(descriptor, self.stamp[0], 0)
        try:
            plane = imagecodecs.png_decode(content)
        except Exception as error:  # the codec has exceptions of its own
            raise DamagedFileError(f"{self.path}: cannot be decoded ({error})") from error
        plane = np.moveaxis(plane, -1, 0) if plane.ndim == 3 else plane
        if plane.shape != self.metadata.shape or plane.dtype != self.metadata.dtype:
            raise DamagedFileError(
                f"{self.path}: decodes to {plane.shape} {plane.dtype}, declared are {self.metadata.shape} "
                f"{self.metadata.dtype}"
            )
        return np.ascontiguousarray(plane)


def scan_png(path: Path, limits: Limits, *, colour: bool = False) -> PngImage:
    """Check header and chunks of a PNG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        header = os.pread(descriptor, 33, 0)
        if header[:8] != SIGNATURE:
            raise DamagedFileError(f"{path}: is not a PNG file")
        if len(header) < 33 or header[8:16] != b"\0\0\0\rIHDR":
            raise DamagedFileError(f"{path}: has no PNG header; it is cut short or damaged")
        _check_chunks(descriptor, path, mark[0])
    width, height, bits, kind = struct.unpack(">IIBB", header[16:26])
    if height < 1 or width < 1:
        raise DamagedFileError(f"{path}: declares {height} x {width} pixels")
    if kind != (_RGB if colour else _GREY):
        raise InputError(
            f"{path}: is a colour image ({_COLOURS.get(kind, 'unknown')}), which cannot be measured; "
            "pick one channel and save it as grey values"
        )
    if bits not in (8, 16):
        raise InputError(f"{path}: has {bits} bits a pixel; convert it to 8 or 16")
    dtype = np.dtype(f"uint{bits}")
    limits.check_plane(path, height, width, dtype)
    sizes = {"T": 1, "Z": 1, "C": 3 if colour else 1, "Y": height, "X": width}
    return PngImage(path, make_metadata(sizes, "CYX", dtype, "png"), mark)


def _check_chunks(descriptor: int, path: Path, size: int) -> None:
    offset, kinds = 8, set()
    while b"IEND" not in kinds:
        head = os.pread(descriptor, 8, offset)
        end = offset + 12 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or end > size:
            raise DamagedFileError(
                f"{path}: ends at byte {size}, within or before a chunk that it needs; it is cut short"
            )
        kinds.add(head[4:])
        offset = end
    if b"IDAT" not in kinds:
        raise DamagedFileError(f"{path}: holds no pixels (no IDAT chunk)")
    for kind, what in ((b"acTL", "an animation"), (b"tRNS", "an image with transparency")):
        if kind in kinds:
            raise InputError(f"{path}: is {what}; save its frames as plain grey images")
