"""Files that differ from one that was checked in nothing but their pixels.

A series of thousands of files, of one page each or of a few, is written by one program in one go. What was found of one
of them holds for all that have the same bytes outside of the pixels: no more of them is read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from xcorr_app.io.opened import opened, stamp
from xcorr_app.io.parsing import parsing
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.tiff.tiff_directory import DirectoryReader

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.finding.scan import Scan
    from xcorr_app.io.limits import Limits
    from xcorr_app.io.source import ImageFile

_MAX_BYTES, _MAX_PARTS = 1 << 16, 32
"""Outside of the pixels, and how many parts they may lie in."""
_MAX_KNOWN = 8


class _Known(NamedTuple):
    """A file that was checked: its size, and what is outside of its pixels, by place."""

    size: int
    outside: tuple[tuple[int, bytes], ...]
    image: TiffImage

    def holds_for(self, descriptor: int, size: int) -> bool:
        """Whether another file is as this one."""
        return size == self.size and all(
            os.pread(descriptor, len(content), place) == content for place, content in self.outside
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
    if type(image) is not TiffImage or image.metadata.kind == "ome" or int(image.data_offsets.min()) < 0:
        return None
    size = image.stamp[0]
    pixels = _joined(image.data_offsets.tolist(), image.metadata.plane_bytes)
    if size - sum(end - begin for begin, end in pixels) > _MAX_BYTES or len(pixels) >= _MAX_PARTS:
        return None
    with opened(image.path) as descriptor, parsing(image.path):
        reader = DirectoryReader(descriptor, image.path)
        begins = [begin for begin, _ in pixels]
        for offset in {reader.first, *image.directory_offsets.tolist()}:
            tags = reader.directory_at(offset).tags
            described = [(offset, reader.directory_bytes(len(tags)))]
            described += [(value.offset, value.size) for value in tags.values()]
            for place, length in described:
                before = bisect_left(begins, place + length) - 1
                if before >= 0 and pixels[before][1] > place:
                    return None
        ends = [0, *(end for _, end in pixels)]
        outside = [
            (end, os.pread(descriptor, begin - end, end)) for end, begin in zip(ends, [*begins, size], strict=True)
        ]
        # Asked last: it may have been replaced, or written to while this was read.
        if stamp(descriptor) != image.stamp:
            return None
    return _Known(size, tuple(outside), image)


def _joined(offsets: list[int], size: int) -> list[tuple[int, int]]:
    """From where to where planes of one size lie, those that touch together."""
    parts: list[tuple[int, int]] = []
    for offset in sorted(offsets):
        if parts and offset <= parts[-1][1]:
            parts[-1] = (parts[-1][0], offset + size)
        else:
            parts.append((offset, offset + size))
    return parts
