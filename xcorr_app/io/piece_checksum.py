"""Checksum of a large file, taken of its pieces: in any order, by any number of threads and processes."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import xxhash

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.opened import Stamp, opened, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGE = 1 << 30
"""Bytes of a file beyond which its checksum is that of the checksums of its pieces."""
PIECE = 1 << 20
_MOST_BEGUN = 64
"""Pieces of which a part is kept until the rest comes; of frames that lie apart it may never come."""
_READERS = 4
"""Threads that read what is missing."""
_READ_AT_ONCE = 64
"""Pieces that they are asked for at a time: a process that ends waits for no more."""

Pieces: TypeAlias = tuple[Stamp, dict[int, bytes]]
"""Checksums of pieces by number, and of what state of the file they are."""


class PieceChecksum:
    """Checksum of one large file, told of what was read of it by any number of threads.

    XXH3-128 of the XXH3-128 of every piece of 1 MiB, the last one shorter, one after the other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: Stamp | None = None
        self._known: dict[int, bytes] = {}
        self._told: list[Pieces] = []
        self._begun: dict[int, _Begun] = {}
        self._lock = threading.Lock()

    def saw(self, known: Stamp) -> None:
        """Take in as what the file was checked, before anything is read: of another one there is no checksum."""
        self._stamp = known

    def add(self, _: int, known: Stamp, offset: int, parts: Sequence[memoryview]) -> None:
        """Take in `parts`, bytes that follow each other from `offset` on in the open file of size and time `known`."""
        with self._lock:
            if self._stamp not in (None, known):
                return
            self._stamp = known
        end = offset + sum(part.nbytes for part in parts)
        for piece in range(offset // PIECE, -(-end // PIECE)):
            if piece in self._known:
                continue
            first, last = _limits(piece, known[0])
            begin, stop = max(first, offset), min(last, end)
            those = list(_cut(parts, begin - offset, stop - offset))
            if (begin, stop) == (first, last):
                self._take(piece, _digest(those))
            else:
                self._add_to(piece, known[0], begin, those)

    def news(self) -> Pieces | None:
        """Checksums of pieces that were taken since this was last asked for; None where there are none."""
        with self._lock:
            known, self._known = self._known, {}
            return (self._stamp, known) if known and self._stamp is not None else None

    def learn(self, pieces: Pieces) -> None:
        """Take checksums of pieces that another process has read, if the file is still the same in the end."""
        self._told.append(pieces)

    def hexdigest(self) -> str:
        """The checksum; what is missing is read here. Raises InputError where the file cannot be read."""
        with opened(self.path) as descriptor:
            now = stamp(descriptor)
            if self._stamp not in (None, now):
                raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
            for then, known in self._told:
                self._known |= known if then == now else {}
            self._stamp = now
            count = -(-now[0] // PIECE)
            missing = [piece for piece in range(count) if piece not in self._known]
            with ThreadPoolExecutor(_READERS, thread_name_prefix="xcorr-checksum") as pool:
                for start in range(0, len(missing), _READ_AT_ONCE):
                    some = missing[start : start + _READ_AT_ONCE]
                    self._known |= zip(some, pool.map(partial(self._read, descriptor, now[0]), some), strict=True)
        return xxhash.xxh3_128_hexdigest(b"".join(self._known[piece] for piece in range(count)))

    def _add_to(self, piece: int, size: int, begin: int, parts: list[memoryview]) -> None:
        """Take in a part of a piece; the others come from other threads, or never."""
        with self._lock:
            begun = self._begun.setdefault(piece, _Begun(*_limits(piece, size)))
            if len(self._begun) > _MOST_BEGUN:
                del self._begun[next(iter(self._begun))]
        if (digest := begun.add(begin, parts)) is not None:
            self._take(piece, digest)
            with self._lock:
                self._begun.pop(piece, None)

    def _take(self, piece: int, digest: bytes) -> None:
        with self._lock:
            self._known[piece] = digest

    def _read(self, descriptor: int, size: int, piece: int) -> bytes:
        first, last = _limits(piece, size)
        parts, position = list[bytes](), first
        while position < last:
            parts.append(os.pread(descriptor, last - position, position))
            if not parts[-1]:
                raise DamagedFileError(f"{self.path}: ends at byte {position}; it had {size}")
            position += len(parts[-1])
        return _digest(parts)


class _Begun:
    """A piece that is read in parts, which are kept where one before them is still missing.

    Parts that overlap come to more than the piece: they are given up, and it is read at the end.
    """

    def __init__(self, first: int, last: int) -> None:
        self._position, self._last, self._room = first, last, last - first
        self._digest = xxhash.xxh3_128()
        self._waiting: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def add(self, begin: int, parts: list[memoryview]) -> bytes | None:
        """Take in a part; the checksum of all, once they are there."""
        with self._lock:
            if begin != self._position:
                self._waiting[begin] = b"".join(parts)
                self._room -= len(self._waiting[begin])
                if self._room < 0:
                    self._waiting.clear()
                    self._position = -1
                return None
            for part in parts:
                self._digest.update(part)
                self._position += part.nbytes
            while (content := self._waiting.pop(self._position, None)) is not None:
                self._digest.update(content)
                self._position += len(content)
            return self._digest.digest() if self._position == self._last else None


def _limits(piece: int, size: int) -> tuple[int, int]:
    return piece * PIECE, min((piece + 1) * PIECE, size)


def _cut(parts: Sequence[memoryview], begin: int, stop: int) -> Iterator[memoryview]:
    """Bytes from one place to another of buffers that follow each other."""
    place = 0
    for part in parts:
        if place < stop and place + part.nbytes > begin:
            yield part[max(0, begin - place) : stop - place]
        place += part.nbytes


def _digest(parts: Sequence[bytes | memoryview]) -> bytes:
    digest = xxhash.xxh3_128()
    for part in parts:
        digest.update(part)
    return digest.digest()
