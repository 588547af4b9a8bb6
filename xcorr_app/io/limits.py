"""Limits on what a file may declare, checked before any memory is taken for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcorr_app.errors import DamagedFileError, LimitError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

_SMALL_CHUNK = 1 << 26
"""Bytes that a chunk may have whatever the array is: writers have their own idea of a good size."""
SPARE = 3
"""Bytes that pixels may have too many: some writers fill up to a multiple of four. More would be other pixels."""


@dataclass(frozen=True)
class Limits:
    """How much one file may ask for, and of what.

    Attributes
    ----------
    max_pixels : int
        Pixels of one plane. The default, 2**28 (16384 x 16384), is four times the largest camera sensor in
        common use; measuring such a plane already takes about 8 GiB of work arrays.
    max_pages : int
        Planes of one file. A directory of a page takes at least 150 bytes, so the default, a million, only
        stops files that were built to exhaust memory.
    external_files : bool
        Whether an array of HDF5 may be made of files that lie elsewhere, or are no HDF5: of whatever bytes it names.
    """

    max_pixels: int = 2**28
    max_pages: int = 1_000_000
    external_files: bool = False

    def check_plane(self, path: Path, height: int, width: int, dtype: np.dtype) -> None:
        """Refuse a plane of too many pixels."""
        pixels = height * width
        if pixels > self.max_pixels:
            gigabytes = pixels * dtype.itemsize / 1e9
            raise LimitError(
                f"{path}: declares a plane of {height} x {width} = {pixels} pixels ({gigabytes:.3g} GB as {dtype}), "
                f"more than the limit of {self.max_pixels}; if that is right, allow it with --max-pixels {pixels}"
            )

    def check_chunk(self, path: Path, chunk: Sequence[int], shape: Sequence[int], dtype: np.dtype) -> None:
        """Refuse chunks, which are decoded whole, of too many pixels, or far larger than the array itself."""
        pixels = math.prod(map(int, chunk))
        if pixels > self.max_pixels:
            raise LimitError(
                f"{path}: declares chunks of {' x '.join(map(str, chunk))} = {pixels} pixels, more than the limit of "
                f"{self.max_pixels}; if that is right, allow it with --max-pixels {pixels}"
            )
        if pixels * dtype.itemsize > max(_SMALL_CHUNK, 2 * math.prod(map(int, shape)) * dtype.itemsize):
            raise DamagedFileError(f"{path}: declares chunks of {tuple(chunk)} in an array of {tuple(shape)}")

    def check_pages(self, path: Path, pages: int) -> None:
        """Refuse a file of too many planes."""
        if pages > self.max_pages:
            raise LimitError(
                f"{path}: declares {pages} or more planes, more than the limit of {self.max_pages}; "
                "split the file into smaller stacks"
            )
