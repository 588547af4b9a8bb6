"""The chain of directories of a TIFF file, walked strictly.

Libraries for TIFF are lenient: a chain that breaks off is taken for the end, a value outside the file for
none. Here every directory, every tag value and every link must lie inside the file, or the file is damaged.
Pixels are not touched. Source: TIFF revision 6.0 (1992), section 2; BigTIFF design (AWare Systems).
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.tiff.repeated_directories import Repeated, Template, template_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xcorr_app.io.limits import Limits

MARKS = {b"II*\0": ("<", False), b"MM\0*": (">", False), b"II+\0": ("<", True), b"MM\0+": (">", True)}
"""First four bytes of a TIFF file: byte order, and whether it is BigTIFF."""

# Bytes and struct code of each type of tag value.
_TYPES = {
    1: (1, "B"), 2: (1, "s"), 3: (2, "H"), 4: (4, "I"), 5: (8, "II"), 6: (1, "b"), 7: (1, "s"), 8: (2, "h"),
    9: (4, "i"), 10: (8, "ii"), 11: (4, "f"), 12: (8, "d"), 13: (4, "I"), 16: (8, "Q"), 17: (8, "q"), 18: (8, "Q"),
}  # fmt: skip

_TILE_OFFSETS = 324
_ASCII = 2
_MAX_NUMBERS = 1 << 22
"""Of one tag: as many strips or tiles as no page has; as numbers of Python they take far more memory than the file."""
_AT_ONCE, _MAX_AT_ONCE = 16, 4096
"""Directories that are compared at once, where they lie equally far apart: at first, and as long as they do."""
_NEAR = 1 << 11
"""Bytes from one directory to the next up to which what lies between them is read, too."""


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


class DirectoryReader:
    """Reads directories and tag values of an open TIFF file."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path
        self._block, self._block_start = b"", 0
        self._template: Template | None = None
        self._at_once = _AT_ONCE
        self.size = os.fstat(descriptor).st_size
        head = os.pread(descriptor, 16, 0)
        if not head:
            raise DamagedFileError(f"{path}: is empty (0 bytes)")
        if head[:4] not in MARKS:
            raise DamagedFileError(f"{path}: is not a TIFF file (starts with {head[:4]!r})")
        order, self.big = MARKS[head[:4]]
        self.byteorder: Literal["<", ">"] = "<" if order == "<" else ">"
        if len(head) < (16 if self.big else 8):
            raise DamagedFileError(f"{path}: ends within the TIFF header ({self.size} bytes)")
        if self.big and struct.unpack(order + "HH", head[4:8]) != (8, 0):
            raise DamagedFileError(f"{path}: BigTIFF header is malformed")
        self._first: int = struct.unpack(order + ("Q" if self.big else "I"), head[8:16] if self.big else head[4:8])[0]
        self._entry = struct.Struct(order + ("HHQ8s" if self.big else "HHI4s"))
        self._count = struct.Struct(order + ("Q" if self.big else "H"))
        self._link = struct.Struct(order + ("Q" if self.big else "I"))

    def directories(self, limits: Limits) -> Iterator[Directory]:
        """Walk the chain."""
        for directory in self.walk(limits):
            if isinstance(directory, Directory):
                yield directory

    def walk(self, limits: Limits) -> Iterator[Directory | Repeated]:
        """Walk the chain; once `repeat` was called, of directories like that one only the offsets are told."""
        offset, index = self._first, 0
        seen: set[int] = set()
        while offset:
            if offset in seen:
                raise DamagedFileError(f"{self.path}: page {index} leads back to an earlier page (circular chain)")
            seen.add(offset)
            limits.check_pages(self.path, index + 1)
            if offset >= self.size:
                raise self._cut(index, offset)
            block = os.pread(self._descriptor, self._count.size + 32 * self._entry.size + self._link.size, offset)
            repeated = None if self._template is None else self._template.match(block, offset)
            if repeated is not None:
                repeated = self._more(repeated, seen, limits.max_pages - index) or repeated
                yield repeated
                seen.update(repeated.offsets)
                offset, index = repeated.following, index + len(repeated.offsets)
                continue
            tags, following = self._directory(offset, index, block)
            yield Directory(index, offset, tags)
            offset, index = following, index + 1
        if index == 0:
            raise DamagedFileError(f"{self.path}: holds no image (the header points to no page)")

    def _more(self, first: Repeated, seen: set[int], most: int) -> Repeated | None:
        """Read directories that lie as far apart as a matching one and the next, which is as most programs write."""
        offset, stride = first.offsets[0], first.following - first.offsets[0]
        template, descriptor = self._template, self._descriptor
        if template is None or stride < template.size:
            return None
        count = min(self._at_once, most, (self.size - offset - template.size) // stride + 1)
        places = range(offset, offset + count * stride, stride)
        if count < 2 or not seen.isdisjoint(places[1:]):
            return None
        if stride <= _NEAR:
            raw = os.pread(descriptor, count * stride, offset).ljust(count * stride, b"\0")
            blocks = np.frombuffer(raw, np.uint8).reshape(count, stride)[:, : template.size]
        else:
            raw = b"".join([os.pread(descriptor, template.size, place) for place in places])
            if len(raw) != count * template.size:
                return None
            blocks = np.frombuffer(raw, np.uint8).reshape(count, template.size)
        found = template.match_many(blocks, offset, stride)
        all_match = found is not None and len(found.offsets) == count
        self._at_once = min(2 * self._at_once, _MAX_AT_ONCE) if all_match else _AT_ONCE
        return found

    def repeat(self, directory: Directory) -> None:
        """Take the directory read last, of a page stored plainly, as what those after it are compared with."""
        sizes = {code: value.size for code, value in directory.tags.items()}
        if self._block_start != directory.offset or _TILE_OFFSETS in directory.tags:
            return
        self._template = template_of(
            self._block,
            directory.tags,
            sizes,
            offset=directory.offset,
            order=self.byteorder,
            big=self.big,
            file_size=self.size,
        )

    @property
    def first(self) -> int:
        """Byte of the first directory."""
        return self._first

    def directory_bytes(self, tags: int) -> int:
        """Length of a directory of so many tags."""
        return self._count.size + tags * self._entry.size + self._link.size

    def directory_at(self, offset: int) -> Directory:
        """Read one directory by itself."""
        return Directory(0, offset, self._directory(offset, 0)[0])

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

    def content(self, directory: Directory, code: int) -> bytes:
        """Return the raw bytes of a tag, empty where it is absent."""
        value = directory.tags.get(code)
        if value is None:
            return b""
        return self._bytes(value.offset, value.length * _TYPES[value.kind][0])

    def _directory(self, offset: int, index: int, block: bytes | None = None) -> tuple[dict[int, TagValue], int]:
        count_size, link_size, entry_size = self._count.size, self._link.size, self._entry.size
        if offset >= self.size:
            raise self._cut(index, offset)
        if block is None:
            # One read usually brings the whole directory.
            block = os.pread(self._descriptor, count_size + 32 * entry_size + link_size, offset)
        if len(block) < count_size:
            raise self._cut(index, offset)
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
            if kind in _TYPES:
                size = count * _TYPES[kind][0]
                where = place if size <= link_size else self._link.unpack(inline)[0]
                if where + size > self.size:
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
        raw = os.pread(self._descriptor, size, offset)
        if len(raw) != size:
            raise DamagedFileError(f"{self.path}: {size} bytes expected at byte {offset}, {len(raw)} found")
        return raw
