"""Limits on what a file may declare, checked before any memory is taken for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcorr_app.errors import LimitError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

SPARE = 3
"""Bytes that pixels may have too many: some writers fill up to a multiple of four. More would be other pixels."""


@dataclass(frozen=True)
class Limits:
    """How much one file may ask for.

    Attributes
    ----------
    max_pixels : int
        Pixels of one plane. The default, 2**28 (16384 x 16384), is four times the largest camera sensor in
        common use; measuring such a plane already takes about 8 GiB of work arrays.
    max_pages : int
        Planes of one file. A directory of a page takes at least 150 bytes, so the default, a million, only
        stops files that were built to exhaust memory.
    """

    max_pixels: int = 2**28
    max_pages: int = 1_000_000

    def check_plane(self, path: Path, height: int, width: int, dtype: np.dtype) -> None:
        """Refuse a plane of too many pixels."""
        pixels = height * width
        if pixels > self.max_pixels:
            gigabytes = pixels * dtype.itemsize / 1e9
            raise LimitError(
                f"{path}: declares a plane of {height} x {width} = {pixels} pixels ({gigabytes:.3g} GB as {dtype}), "
                f"more than the limit of {self.max_pixels}; if that is right, allow it with --max-pixels {pixels}"
            )

    def check_pages(self, path: Path, pages: int) -> None:
        """Refuse a file of too many planes."""
        if pages > self.max_pages:
            raise LimitError(
                f"{path}: declares {pages} or more planes, more than the limit of {self.max_pages}; "
                "split the file into smaller stacks"
            )
