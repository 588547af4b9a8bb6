"""Files that differ from one that was checked in nothing but their pixels.

A series of thousands of files of one page each is written by one program in one go. What was found of one of them holds
for all that have the same bytes outside of the pixels: no more of them is read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from xcorr_app.io.opened import opened, stamp
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.tiff.tiff_directory import DirectoryReader

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.finding.scan import Scan
    from xcorr_app.io.limits import Limits
    from xcorr_app.io.source import ImageFile

_MAX_BYTES = 1 << 14
"""Outside of the pixels."""
_MAX_KNOWN = 8


class _Known(NamedTuple):
    """A file that was checked: its size, what is before its pixels, where those end, and what is behind them."""

    size: int
    before: bytes
    end: int
    behind: bytes
    image: TiffImage

    def holds_for(self, descriptor: int, size: int) -> bool:
        """Whether another file is as this one."""
        return (
            size == self.size
            and os.pread(descriptor, len(self.before), 0) == self.before
            and os.pread(descriptor, len(self.behind), self.end) == self.behind
        )


class ScanOfAlike:
    """Checks files as `scan` does, those that are as one before by a look at what is outside of their pixels."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._known: list[_Known] = []

    def __call__(self, path: Path, limits: Limits) -> ImageFile:
        """Check one file."""
        if self._known:
            with opened(path) as descriptor:
                mark = stamp(descriptor)
                for known in self._known:
                    if known.holds_for(descriptor, mark[0]):
                        return replace(known.image, path=path, stamp=mark)
        image = self._scan(path, limits)
        if len(self._known) < _MAX_KNOWN and (found := _known(image)) is not None:
            self._known.append(found)
        return image


def _known(image: ImageFile) -> _Known | None:
    """What files may be compared with; None for a file of which a part of the description might be anywhere."""
    # What OME-XML says depends on the name of the file.
    if type(image) is not TiffImage or image.page_count > 1 or image.metadata.kind == "ome":
        return None
    begin, size = int(image.data_offsets[0]), image.stamp[0]
    end = begin + image.metadata.plane_bytes
    if begin < 0 or size - image.metadata.plane_bytes > _MAX_BYTES:
        return None
    with opened(image.path) as descriptor:
        if stamp(descriptor) != image.stamp:
            return None
        reader = DirectoryReader(descriptor, image.path)
        directory = reader.directory_at(reader.first)
        for value in directory.tags.values():
            if value.offset < end and value.offset + value.size > begin:
                return None
        before, behind = os.pread(descriptor, begin, 0), os.pread(descriptor, size - end, end)
    return _Known(size, before, end, behind, image)
