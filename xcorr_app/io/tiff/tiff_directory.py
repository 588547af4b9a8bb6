"""The chain of directories of a TIFF file, walked strictly.

Libraries for TIFF are lenient: a chain that breaks off is taken for the end, a value outside the file for
none. Here every directory, every tag value and every link must lie inside the file, or the file is damaged.
Pixels are not touched. Source: TIFF revision 6.0 (1992), section 2; BigTIFF design (AWare Systems).
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.declared import Limits
from xcorr_app.system import read_at

MARKS = {b"II*\0": ("<", False), b"MM\0*": (">", False), b"II+\0": ("<", True), b"MM\0+": (">", True)}
"""First four bytes of a TIFF file: byte order, and whether it is BigTIFF."""

# Bytes and struct code of each type of tag value.
_TYPES = {
    1: (1, "B"), 2: (1, "s"), 3: (2, "H"), 4: (4, "I"), 5: (8, "II"), 6: (1, "b"), 7: (1, "s"), 8: (2, "h"),
    9: (4, "i"), 10: (8, "ii"), 11: (4, "f"), 12: (8, "d"), 13: (4, "I"), 16: (8, "Q"), 17: (8, "q"), 18: (8, "Q"),
}  # fmt: skip

_STRIP_OFFSETS, _STRIP_BYTES = 273, 279
_WHOLE = (3, 4, 16)
"""Types of an offset of pixels."""
_MAY_LIE_ELSEWHERE = frozenset((270, 282, 283, 305, 306, 315, 65000))
"""Tags that say nothing of the pixels: descriptions, resolution, software, date, artist, private ones of cameras."""
_ASCII = 2
_PRIVATE = 32768
"""Tags from here on are those of makers of cameras and programs."""
_HEADER = 8
"""Bytes at the beginning of a file where no value is."""
_MAX_NUMBERS = 1 << 22
"""Of one tag: as many strips or tiles as no page has; as numbers of Python they take far more memory than the file."""


class TagValue(NamedTuple):
    """Where the value of a tag lies."""

    kind: int
    length: int
    offset: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.length * _TYPES[self.kind][0]


@dataclass(frozen=True)
class Directory:
    """One directory (page): its place in the file and its tags."""

    index: int
    offset: int
    tags: dict[int, TagValue]


class PageOffsets(NamedTuple):
    """A page as the one before it: its directory, and its pixels."""

    offset: int
    data_offset: int


class _Template(NamedTuple):
    """What directories of pages stored plainly, in one strip, look like.

    Stacks have thousands of pages of one kind. What was found of one holds for all whose directories have the same
    bits, but for the offsets of pixels, of values kept elsewhere and of the next directory, which are checked for each.
    """

    fixed: int
    """Bits that must be the same."""
    directory: int
    size: int
    """Bytes up to the offset of the next directory."""
    pixels: tuple[int, struct.Struct, int]
    """Place and type of the offset of the pixels, and their bytes."""
    pointers: tuple[tuple[int, int], ...]
    """Places of offsets, and the bytes of the values there."""


class DirectoryReader:
    """Reads directories and tag values of an open TIFF file."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path
        self._block, self._block_start = b"", 0
        self._template: _Template | None = None
        self.size = os.fstat(descriptor).st_size
        head = read_at(descriptor, 16, 0)
        if head[:4] not in MARKS:
            raise DamagedFileError(f"{path}: is not a TIFF file (starts with {head[:4]!r})")
        order, self.big = MARKS[head[:4]]
        self.byteorder: Literal["<", ">"] = "<" if order == "<" else ">"
        if len(head) < (16 if self.big else 8):
            raise DamagedFileError(f"{path}: ends within the TIFF header ({self.size} bytes)")
        if self.big and struct.unpack(order + "HH", head[4:8]) != (8, 0):
            raise DamagedFileError(f"{path}: BigTIFF header is malformed")
        self.first: int = struct.unpack(order + ("Q" if self.big else "I"), head[8:16] if self.big else head[4:8])[0]
        self._entry = struct.Struct(order + ("HHQ8s" if self.big else "HHI4s"))
        self._count = struct.Struct(order + ("Q" if self.big else "H"))
        self._link = struct.Struct(order + ("Q" if self.big else "I"))

    def walk(self, limits: Limits) -> Iterator[Directory | PageOffsets]:
        """Walk the chain; once `repeat` was called, of directories like that one only the offsets are told."""
        offset, index = self.first, 0
        seen: set[int] = set()
        while offset:
            if offset in seen:
                raise DamagedFileError(f"{self.path}: page {index} leads back to an earlier page (circular chain)")
            seen.add(offset)
            limits.check_pages(self.path, index + 1)
            block = self._begin(offset, index)
            data_offset = None if self._template is None else self._same_kind(self._template, block)
            if self._template is not None and data_offset is not None:
                yield PageOffsets(offset, data_offset)
                offset = self._link.unpack_from(block, self._template.size)[0]
            else:
                tags, following = self._directory(offset, index, block)
                yield Directory(index, offset, tags)
                offset = following
            index += 1
        if index == 0:
            raise DamagedFileError(f"{self.path}: holds no image (the header points to no page)")

    def repeat(self, directory: Directory) -> None:
        """Take the directory read last, of a page stored plainly in one strip, as what those after it are like."""
        tags, strip, counts = directory.tags, directory.tags.get(_STRIP_OFFSETS), directory.tags.get(_STRIP_BYTES)
        if strip is None or counts is None or self._block_start != directory.offset:
            return
        number: int = self._count.unpack_from(self._block)[0]
        if not strip.length == counts.length == 1 or strip.kind not in _WHOLE or len(tags) != number:
            return
        first, step = self._count.size + self._entry.size - self._link.size, self._entry.size
        places = {code: first + step * i for i, code in enumerate(tags)}
        pointers = {code: tags[code].size for code in tags if tags[code].size > self._link.size}
        if not pointers.keys() <= _MAY_LIE_ELSEWHERE:
            return
        size = self._count.size + number * step
        mask = bytearray(b"\xff" * size)
        for code in (_STRIP_OFFSETS, *pointers):
            mask[places[code] : places[code] + self._link.size] = bytes(self._link.size)
        fixed = int.from_bytes(mask)
        kind = struct.Struct(self.byteorder + _TYPES[strip.kind][1])
        needed = (self.numbers(directory, _STRIP_BYTES) or (0,))[0]
        self._template = _Template(
            fixed,
            int.from_bytes(self._block[:size]) & fixed,
            size,
            (places[_STRIP_OFFSETS], kind, needed),
            tuple((places[code], length) for code, length in pointers.items()),
        )

    def _same_kind(self, template: _Template, block: bytes) -> int | None:
        """Where the pixels of a page are whose directory is as the template; None where it must be read in full."""
        if len(block) < template.size + self._link.size:
            return None
        if int.from_bytes(block[: template.size]) & template.fixed != template.directory:
            return None
        place, kind, needed = template.pixels
        offset: int = kind.unpack_from(block, place)[0]
        inside = 0 < offset <= self.size - needed
        for place, length in template.pointers:
            inside = inside and _HEADER <= self._link.unpack_from(block, place)[0] <= self.size - length
        return offset if inside else None

    def directory_at(self, offset: int) -> Directory:
        """Read one directory by itself."""
        return Directory(0, offset, self._directory(offset, 0, self._begin(offset, 0))[0])

    def numbers(self, directory: Directory, code: int) -> tuple[int, ...] | None:
        """Return the values of an integer (or rational: two numbers a value) tag, or None where it is absent."""
        value = directory.tags.get(code)
        if value is None:
            return None
        size, letter = _TYPES[value.kind]
        if letter in "fd":
            raise DamagedFileError(
                f"{self.path}: page {directory.index} has fractions in tag {code}, whole numbers belong there"
            )
        if value.length > _MAX_NUMBERS:
            raise DamagedFileError(
                f"{self.path}: page {directory.index} has {value.length} numbers in tag {code}, more than a page needs"
            )
        if letter == "s" and value.kind == _ASCII:
            raise DamagedFileError(f"{self.path}: page {directory.index} has text in tag {code}, numbers belong there")
        raw = self._bytes(value.offset, value.length * size)
        if letter == "s":
            return tuple(raw)
        found = struct.unpack(f"{self.byteorder}{value.length * len(letter)}{letter[0]}", raw)
        if letter[0].islower() and min(found, default=0) < 0:
            raise DamagedFileError(f"{self.path}: page {directory.index} has a negative number in tag {code}")
        return found

    def number(self, directory: Directory, code: int, default: int) -> int:
        """Return the first value of an integer tag."""
        return (self.numbers(directory, code) or (default,))[0]

    def content(self, directory: Directory, code: int) -> bytes:
        """Return the raw bytes of a tag, empty where it is absent."""
        value = directory.tags.get(code)
        if value is None:
            return b""
        return self._bytes(value.offset, value.size)

    def _begin(self, offset: int, index: int) -> bytes:
        """The first bytes of a directory, usually all of it by one read."""
        size = self._count.size + 32 * self._entry.size + self._link.size
        block = read_at(self._descriptor, size, offset) if offset < self.size else b""
        if len(block) < self._count.size:
            raise self._cut(index, offset)
        return block

    def _directory(self, offset: int, index: int, block: bytes) -> tuple[dict[int, TagValue], int]:
        count_size, link_size, entry_size = self._count.size, self._link.size, self._entry.size
        entries: int = self._count.unpack_from(block)[0]
        end = count_size + entries * entry_size
        if offset + end + link_size > self.size:
            raise self._cut(index, offset)
        if entries == 0:
            raise DamagedFileError(f"{self.path}: page {index} has a directory without tags")
        if len(block) < end + link_size:
            block = self._bytes(offset, end + link_size)
        self._block, self._block_start = block, offset
        tags: dict[int, TagValue] = {}
        place = offset + count_size + entry_size - link_size
        for code, kind, count, inline in self._entry.iter_unpack(block[count_size:end]):
            if kind not in _TYPES:
                if code >= _PRIVATE:  # readers are asked to pass over what they do not know
                    place += entry_size
                    continue
                raise DamagedFileError(f"{self.path}: page {index} has a tag {code} of a type {kind} that there is not")
            size = count * _TYPES[kind][0]
            where = place if size <= link_size else self._link.unpack(inline)[0]
            if not (0 if code >= _PRIVATE else _HEADER) <= where <= self.size - size:
                raise DamagedFileError(
                    f"{self.path}: page {index} keeps tag {code} at bytes {where} to {where + size}, "
                    f"but the file has {self.size} bytes; it is cut short: copy it again"
                )
            tags.setdefault(code, TagValue(kind, count, where))
            place += entry_size
        return tags, self._link.unpack_from(block, end)[0]

    def _cut(self, index: int, offset: int) -> DamagedFileError:
        return DamagedFileError(
            f"{self.path}: the directory of page {index} should be at byte {offset}, but the file ends at byte "
            f"{self.size}; it is cut short: copy it again"
        )

    def _bytes(self, offset: int, size: int) -> bytes:
        # Small values lie within their directory, or right behind it.
        begin = offset - self._block_start
        if begin >= 0 and begin + size <= len(self._block):
            return self._block[begin : begin + size]
        raw = read_at(self._descriptor, size, offset)
        if len(raw) != size:
            raise DamagedFileError(f"{self.path}: {size} bytes expected at byte {offset}, {len(raw)} found")
        return raw
