"""Where everything lies in a TIFF file that is written: header, all directories, then the planes.

Directories of all planes have one size, known beforehand, so planes may be written in any order and by several threads,
and a reader finds the planes of an uncompressed file one after the other. Source: TIFF revision 6.0 (1992), section 2;
BigTIFF design (AWare Systems).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

_ALIGNMENT = 16
_ASCII, _SHORT, _LONG, _RATIONAL, _LONG8 = 2, 3, 4, 5, 16
_LETTERS = {1: "B", _ASCII: "s", _SHORT: "H", _LONG: "I", _RATIONAL: "II", _LONG8: "Q"}
_OFFSETS, _COUNTS = 273, 279


class Tag(NamedTuple):
    """A tag: its code, the type of its values, how many there are, and the values themselves."""

    code: int
    kind: int
    number: int
    value: tuple[int, ...] | bytes


def ascii_tag(code: int, text: bytes) -> Tag:
    """Tag of a text, which ends with a zero byte."""
    return Tag(code, _ASCII, len(text) + 1, text + b"\0")


def short_tag(code: int, *values: int) -> Tag:
    """Tag of numbers of 16 bits."""
    return Tag(code, _SHORT, len(values), values)


def long_tag(code: int, *values: int) -> Tag:
    """Tag of numbers of 32 bits."""
    return Tag(code, _LONG, len(values), values)


def rational_tag(code: int, numerator: int, denominator: int) -> Tag:
    """Tag of a fraction."""
    return Tag(code, _RATIONAL, 1, (numerator, denominator))


@dataclass(frozen=True)
class Layout:
    """Directories of a file of `planes` planes, or a single one that stands for all.

    Attributes
    ----------
    first, others
        Tags of the first plane and of the others, without those that say where a plane is.
    directories
        How many there are.
    """

    first: tuple[Tag, ...]
    others: tuple[Tag, ...]
    directories: int
    byteorder: Literal["<", ">"]
    big: bool
    _first: _Template = field(init=False, repr=False)
    _others: _Template = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, tags in (("_first", self.first), ("_others", self.others)):
            object.__setattr__(self, name, _template(tags, self.byteorder, big=self.big))

    @property
    def data_start(self) -> int:
        """Byte from which on there are planes."""
        end = self._header_size + len(self._first.content) + (self.directories - 1) * len(self._others.content)
        return -(-end // _ALIGNMENT) * _ALIGNMENT

    @property
    def _header_size(self) -> int:
        return 16 if self.big else 8

    def head(self, offsets: np.ndarray, counts: np.ndarray) -> bytes:
        """Everything before the planes, which are at these bytes and so long."""
        size, order = self._header_size, self.byteorder
        if self.big:
            header = struct.pack(f"{order}2sHHHQ", b"II" if order == "<" else b"MM", 43, 8, 0, size)
        else:
            header = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, size)
        parts = [header]
        places = size + np.concatenate(
            [[0], len(self._first.content) + np.arange(self.directories) * len(self._others.content)]
        )
        for template, part in ((self._first, slice(0, 1)), (self._others, slice(1, self.directories))):
            number = part.stop - part.start
            if number < 1:
                continue
            following = places[part.start + 1 : part.stop + 1].copy()
            if part.stop == self.directories:
                following[-1] = 0
            parts.append(template.filled(places[part], following, offsets[part], counts[part], order, big=self.big))
        head = b"".join(parts)
        return head + bytes(self.data_start - len(head))


class _Template(NamedTuple):
    """A directory with its values, as bytes, and where in it something differs from page to page."""

    content: bytes
    pointers: tuple[tuple[int, int], ...]
    """Places of offsets of values, and how far those are from the directory's start."""
    offset: int
    length: int
    following: int

    def filled(
        self,
        places: np.ndarray,
        following: np.ndarray,
        offsets: np.ndarray,
        counts: np.ndarray,
        order: str,
        *,
        big: bool,
    ) -> bytes:
        """One copy for each page: its directory's place, that of the next one, and where its pixels are."""
        kind = np.dtype(f"{order}u{8 if big else 4}")
        pages = np.tile(np.frombuffer(self.content, np.uint8), (len(places), 1))

        def put(where: int, values: np.ndarray) -> None:
            pages[:, where : where + kind.itemsize] = values.astype(kind)[:, None].view(np.uint8)

        for where, distance in self.pointers:
            put(where, places + distance)
        put(self.offset, offsets)
        put(self.length, counts)
        put(self.following, following)
        return pages.tobytes()


def _template(tags: tuple[Tag, ...], order: str, *, big: bool) -> _Template:
    wide = _LONG8 if big else _LONG
    entries = sorted([*tags, Tag(_OFFSETS, wide, 1, (0,)), Tag(_COUNTS, wide, 1, (0,))])
    number, link = ("Q", 8) if big else ("H", 4)
    begin = struct.calcsize(f"{order}{number}")
    entry = 20 if big else 12
    value_start = begin + entry * len(entries) + link
    directory, values = bytearray(struct.pack(f"{order}{number}", len(entries))), bytearray()
    pointers: list[tuple[int, int]] = []
    found = {}
    for tag in entries:
        letter = _LETTERS[tag.kind]
        raw = (
            tag.value
            if isinstance(tag.value, bytes)
            else struct.pack(f"{order}{len(tag.value)}{letter[0]}", *tag.value)
        )
        directory += struct.pack(f"{order}HH{'Q' if big else 'I'}", tag.code, tag.kind, tag.number)
        found[tag.code] = len(directory)
        if len(raw) <= link:
            directory += raw.ljust(link, b"\0")
            continue
        pointers.append((len(directory), value_start + len(values)))
        directory += bytes(link)
        values += raw + bytes(-len(raw) % 2)
    content = bytes(directory) + bytes(link) + bytes(values)
    # Directories begin at even bytes.
    content += bytes(-len(content) % 8)
    return _Template(content, tuple(pointers), found[_OFFSETS], found[_COUNTS], value_start - link)
