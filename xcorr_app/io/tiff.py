"""Planes of a TIFF file that was checked before.

For each plane two integers are kept, where its directory and where its pixels are, so that ten thousand pages
cost little memory. No file stays open. Planes stored plainly are read with one ``pread`` (a memory map would
count as resident memory); everything else is decoded by tifffile.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import tifffile

from xcorr_app.errors import DamagedFileError, FileError, InputError
from xcorr_app.io.reader_log import logged_as_damage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xcorr_app.io.source import StackMetadata

# Compression tags of JPEG and JPEG 2000, whose streams end with the same mark.
_JPEG = (6, 7, 34892, 33003, 33004, 33005, 34712)
_JPEG_END = b"\xff\xd9"


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Yield a file descriptor for reading; errors of the operating system name the file."""
    try:
        # Opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{path}: is a folder, pipe or device, not a file")
            yield descriptor
        finally:
            os.close(descriptor)
    except FileError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def stamp(descriptor: int) -> tuple[int, int]:
    """Size and time of the last change of an open file."""
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True, eq=False)
class TiffImage:
    """A TIFF file that was found to hold all it declares.

    Attributes
    ----------
    path, metadata
        The file, and its axes, type and calibration.
    directory_offsets, data_offsets
        For every plane: the byte of its directory, and of its pixels where they are stored plainly, else -1.
    page_map
        Page of plane [t, z, c].
    byteorder
        Of the pixels in the file.
    stamp
        Size and time of change when it was checked; a file that changes afterwards is refused.
    samples
        Values a pixel: 1, or 3 for red, green and blue, which are decoded together.
    """

    path: Path
    metadata: StackMetadata
    directory_offsets: np.ndarray
    data_offsets: np.ndarray
    page_map: np.ndarray
    byteorder: Literal["<", ">"]
    stamp: tuple[int, int]
    samples: int = 1

    @property
    def page_count(self) -> int:
        """Number of planes."""
        return len(self.data_offsets)

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane."""
        return int(self.page_map[t, z, c])

    def read(self, page: int) -> np.ndarray:
        """Read a page, (Y, X) or (3, Y, X) in native byte order."""
        with opened(self.path) as descriptor:
            if stamp(descriptor) != self.stamp:
                raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
            offset = int(self.data_offsets[page])
            if offset >= 0:
                return self._read_plain(descriptor, offset)
        return self._decode(page)

    def _read_plain(self, descriptor: int, offset: int) -> np.ndarray:
        plane = np.empty(self.metadata.shape[-2:], self.metadata.dtype.newbyteorder(self.byteorder))
        view = plane.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(view):
            count = os.preadv(descriptor, [view[done:]], offset + done)
            if count == 0:
                raise DamagedFileError(f"{self.path}: ends {len(view) - done} bytes before the end of a plane")
            done += count
        return plane if plane.dtype.isnative else plane.byteswap(inplace=True).view(self.metadata.dtype)

    def _decode(self, page: int) -> np.ndarray:
        with logged_as_damage(self.path):
            try:
                with tifffile.TiffFile(self.path) as tif:
                    tif.filehandle.seek(int(self.directory_offsets[page]))
                    directory = tifffile.TiffPage(tif, index=page)
                    if directory.compression in _JPEG:
                        self._check_jpeg_ends(page, tif.filehandle, directory)
                    plane = directory.asarray(maxworkers=1)
                    interleaved = self.samples > 1 and directory.planarconfig == 1
            except FileError:
                raise
            except Exception as error:  # every codec has exceptions of its own
                raise DamagedFileError(f"{self.path}: page {page} cannot be decoded ({error})") from error
        shape, dtype = self.metadata.shape[-2:], self.metadata.dtype
        if plane.dtype != dtype or plane.size != shape[0] * shape[1] * self.samples:
            raise DamagedFileError(
                f"{self.path}: page {page} decodes to {plane.shape} {plane.dtype}, declared are {shape} {dtype}"
            )
        if interleaved:
            plane = np.moveaxis(plane.reshape(*shape, self.samples), -1, 0)
        return np.ascontiguousarray(plane.reshape(shape if self.samples == 1 else (self.samples, *shape)), dtype)

    def _check_jpeg_ends(self, page: int, file: tifffile.FileHandle, directory: tifffile.TiffPage) -> None:
        """Refuse JPEG streams without their end mark: the codec fills what is missing with grey and says nothing."""
        for offset, count in zip(directory.dataoffsets, directory.databytecounts, strict=True):
            length = min(count, 64)
            file.seek(offset + count - length)
            if not file.read(length).rstrip(b"\0").endswith(_JPEG_END):
                raise DamagedFileError(f"{self.path}: page {page} has a JPEG stream without an end; it is incomplete")
