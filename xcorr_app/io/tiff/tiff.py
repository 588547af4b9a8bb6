"""Planes of a TIFF file that was checked before.

For each plane two integers are kept, where its directory and where its pixels are, so that ten thousand pages
cost little memory. No file stays open. Planes stored plainly are read straight into the caller's buffer, those that lie
one after the other by one call (a memory map would count as resident memory); everything else is decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from xcorr_app.io.checksum import FileChecksum
from xcorr_app.io.declared import Limits
from xcorr_app.io.opened import Stamp, opened, parsing, read_whole
from xcorr_app.io.source import ImageFile, StackMetadata
from xcorr_app.io.tiff.pages import decode_page, stored_page
from xcorr_app.io.tiff.tiff_directory import DirectoryReader

_JPEG_TABLES = 347
_CHECKED = Limits(max_pixels=2**62)
"""Of pages that were checked before."""


@dataclass(frozen=True, eq=False)
class TiffImage(ImageFile):
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
        Size and times of change when it was checked; a file that changes afterwards is refused.
    samples
        Values a pixel: 1, or 3 for red, green and blue, which are decoded together.
    """

    path: Path
    metadata: StackMetadata
    directory_offsets: np.ndarray
    data_offsets: np.ndarray
    page_map: np.ndarray
    byteorder: Literal["<", ">"]
    stamp: Stamp
    samples: int = 1

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane."""
        return int(self.page_map[t, z, c])

    def read(self, page: int) -> np.ndarray:
        """Read a page, (Y, X) or (3, Y, X) in native byte order."""
        shape = self.metadata.shape[-2:]
        out = np.empty((1, *(shape if self.samples == 1 else (self.samples, *shape))), self.metadata.dtype)
        self.read_into([page], out)
        return np.asarray(out[0])

    def read_into(self, pages: Sequence[int], out: np.ndarray, checksum: FileChecksum | None = None) -> None:
        """Read pages into `out`, which has one entry each and the type of a pixel; `checksum` is told of the bytes."""
        with opened(self.path, self.stamp) as descriptor:
            reader: DirectoryReader | None = None
            for start, stop in self._runs(pages):
                page = pages[start]
                if self.data_offsets[page] >= 0:
                    self._read_plain(descriptor, page, out[start:stop], checksum)
                    continue
                with parsing(self.path, f"page {page} cannot be decoded"):
                    reader = reader or DirectoryReader(descriptor, self.path)
                    directory = reader.directory_at(int(self.directory_offsets[page]))
                    found = stored_page(reader, directory, _CHECKED)
                    tables = reader.content(directory, _JPEG_TABLES)
                    decode_page(descriptor, found, reader.byteorder, tables, out[start])

    def _runs(self, pages: Sequence[int]) -> list[tuple[int, int]]:
        """Parts of `pages` to be read together: planes without a gap between them, or one that must be decoded."""
        size, end = self.metadata.plane_bytes, -1
        runs: list[tuple[int, int]] = []
        for i, offset in enumerate(self.data_offsets[np.asarray(pages)].tolist()):
            begin = runs.pop()[0] if offset == end >= 0 else i
            runs.append((begin, i + 1))
            end = offset + size if offset >= 0 else -1
        return runs

    def _read_plain(self, descriptor: int, page: int, out: np.ndarray, checksum: FileChecksum | None) -> None:
        """Read planes that follow each other, the first of which is a page."""
        offset, part = int(self.data_offsets[page]), out.reshape(-1).view(np.uint8).data
        read_whole(self.path, descriptor, part, offset, "plane")
        if checksum is not None:
            checksum.add(descriptor, self.stamp, offset, part)
        if not self.metadata.dtype.newbyteorder(self.byteorder).isnative:
            out.byteswap(inplace=True)
