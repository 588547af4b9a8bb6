"""What files declare: limits on it, checked before any memory is taken, and images that must be as they said."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io.opened import opened, parsing, stamp
from xcorr_app.io.source import PIXEL_TYPES, ImageFile, StackMetadata

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


@dataclass(frozen=True, eq=False)
class FormatImage(ImageFile):
    """One image of a file; `plane` reads (Y, X), or (samples, Y, X), at t, z, c."""

    path: Path
    metadata: StackMetadata
    plane: Callable[[int, int, int], np.ndarray]
    stamp: tuple[int, ...]
    samples: int = 1

    def read(self, page: int) -> np.ndarray:
        """Read one page, (Y, X) or (samples, Y, X) in native byte order."""
        check_unchanged(self.path, self.stamp)
        outer = self.metadata.shape[:-2]
        index = [page] if self.samples > 1 else [int(place) for place in np.unravel_index(page, outer)] if outer else []
        at = {"T": 0, "Z": 0, "C": 0} | dict(zip(self.metadata.axes[:-2], index, strict=False))
        with parsing(self.path, f"plane {page} cannot be read"):
            plane = np.asarray(self.plane(at["T"], at["Z"], at["C"]))
        shape = self.metadata.shape[-2:] if self.samples == 1 else (self.samples, *self.metadata.shape[-2:])
        if plane.shape != shape or plane.dtype.newbyteorder("=") != self.metadata.dtype:
            raise DamagedFileError(
                f"{self.path}: plane {page} reads as {plane.shape} {plane.dtype}, declared are {shape} "
                f"{self.metadata.dtype}"
            )
        return np.require(plane, self.metadata.dtype, ["C", "W", "O"])


def stamp_of(path: Path) -> tuple[int, ...]:
    """What tells that a file was changed."""
    with opened(path) as descriptor:
        return stamp(descriptor)


def check_unchanged(path: Path, before: tuple[int, ...]) -> None:
    """Refuse a file that is not the one that was checked."""
    if stamp_of(path) != before:
        raise DamagedFileError(f"{path}: was changed by another program while it was being read")


def check_image(path: Path, limits: Limits, sizes: dict[str, int], dtype: np.dtype) -> None:
    """Refuse types of pixel that are not read, and more pixels or planes than the limits allow."""
    if dtype.name not in PIXEL_TYPES:
        raise InputError(f"{path}: has pixels of type {dtype}; convert it to one of {', '.join(PIXEL_TYPES)}")
    if min(sizes.values()) < 1:
        raise DamagedFileError(f"{path}: declares an image of sizes {sizes}")
    limits.check_plane(path, sizes["Y"], sizes["X"], dtype)
    limits.check_pages(path, sizes["T"] * sizes["Z"] * sizes["C"])
