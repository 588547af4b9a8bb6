"""Directories that differ from one that was checked in nothing but where things are.

Stacks have thousands of pages of one kind. What was found of one holds for all whose directories have the same bytes,
but for the offsets of their pixels, of values kept elsewhere and of the next directory; those are checked for each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xcorr_app.io.tiff.tiff_directory import TagValue

_STRIP_OFFSETS, _STRIP_BYTES = 273, 279
_MAY_LIE_ELSEWHERE = frozenset((270, 282, 283, 305, 306, 315, 65000))
"""Tags that say nothing of the pixels: descriptions, resolution, software, date, artist, private ones of cameras."""
_LETTERS = {3: "H", 4: "I", 16: "Q"}


class Repeated(NamedTuple):
    """Pages as the one before them: their directories, their pixels, and the next directory."""

    offsets: list[int]
    data_offsets: list[int]
    following: int


@dataclass(frozen=True)
class Template:
    """What directories must look like."""

    fixed: tuple[tuple[int, int, bytes], ...]
    """Parts that must be the same: from, to, bytes."""
    pixels: tuple[int, struct.Struct]
    """Place and type of the offset of the pixels."""
    pointers: tuple[tuple[int, int], ...]
    """Places of offsets, and the bytes of the values there."""
    link: int
    """Place of the offset of the next directory."""
    offset_type: struct.Struct
    needed: int
    """Bytes of pixels."""
    file_size: int

    @property
    def size(self) -> int:
        """Bytes of a directory."""
        return self.link + self.offset_type.size

    def match(self, block: bytes, offset: int) -> Repeated | None:
        """Read the directory at `offset`, of which `block` are the bytes; None where it must be read in full."""
        if len(block) < self.size:
            return None
        for start, stop, content in self.fixed:
            if block[start:stop] != content:
                return None
        place, kind = self.pixels
        data: int = kind.unpack_from(block, place)[0]
        if data == 0 or data + self.needed > self.file_size:
            return None
        for place, size in self.pointers:
            if self.offset_type.unpack_from(block, place)[0] + size > self.file_size:
                return None
        return Repeated([offset], [data], self.offset_type.unpack_from(block, self.link)[0])

    def match_many(self, blocks: np.ndarray, offset: int, stride: int) -> Repeated | None:
        """Read directories that lie `stride` bytes apart from `offset` on, whose bytes are the rows of `blocks`.

        As many as match and lead from one to the next; None where the first does not match.
        """
        offsets = offset + stride * np.arange(len(blocks))
        matches = np.ones(len(blocks), dtype=bool)
        for start, stop, content in self.fixed:
            matches &= (blocks[:, start:stop] == np.frombuffer(content, np.uint8)).all(axis=1)
        data = _numbers(blocks, *self.pixels)
        matches &= (data > 0) & (data <= max(0, self.file_size - self.needed))
        for place, size in self.pointers:
            if size > self.file_size:
                return None
            matches &= _numbers(blocks, place, self.offset_type) <= self.file_size - size
        links = _numbers(blocks, self.link, self.offset_type)
        matches[1:] &= links[:-1] == offsets[1:]
        count = len(blocks) if matches.all() else int(matches.argmin())
        if count == 0:
            return None
        return Repeated(offsets[:count].tolist(), data[:count].tolist(), int(links[count - 1]))


def _numbers(blocks: np.ndarray, place: int, kind: struct.Struct) -> np.ndarray:
    """Unsigned numbers at a place of each row."""
    order = kind.format[0]
    return np.ascontiguousarray(blocks[:, place : place + kind.size]).view(f"{order}u{kind.size}")[:, 0]


def template_of(
    block: bytes,
    tags: Mapping[int, TagValue],
    sizes: Mapping[int, int],
    *,
    offset: int,
    order: str,
    big: bool,
    file_size: int,
) -> Template | None:
    """Make a template of a directory whose pixels are stored plainly, in one strip; None where they are not.

    `sizes` are the bytes of the values of its tags, `block` the bytes from `offset` on.
    """
    offset_type = struct.Struct(order + ("Q" if big else "I"))
    head, entry = (8, 20) if big else (2, 12)
    number: int = struct.unpack_from(order + ("Q" if big else "H"), block)[0]
    link = head + number * entry
    strip, counts = tags.get(_STRIP_OFFSETS), tags.get(_STRIP_BYTES)
    if strip is None or counts is None or strip.length != 1 or counts.length != 1 or len(tags) != number:
        return None
    if not {strip.kind, counts.kind} <= set(_LETTERS):
        return None
    pointers, free = [], []
    for index in range(number):
        place = head + index * entry
        (code,) = struct.unpack_from(order + "H", block, place)
        value = place + entry - offset_type.size
        if code == _STRIP_OFFSETS:
            free.append(value)
        elif sizes[code] > offset_type.size:
            if code not in _MAY_LIE_ELSEWHERE:
                return None
            free.append(value)
            pointers.append((value, sizes[code]))
    starts = [0, *(value + offset_type.size for value in free)]
    fixed = tuple((start, stop, block[start:stop]) for start, stop in zip(starts, [*free, link], strict=True))
    kind = struct.Struct(order + _LETTERS[strip.kind])
    needed: int = struct.unpack_from(order + _LETTERS[counts.kind], block, counts.offset - offset)[0]
    return Template(fixed, (strip.offset - offset, kind), tuple(pointers), link, offset_type, needed, file_size)
