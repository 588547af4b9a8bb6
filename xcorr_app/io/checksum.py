"""Checksums of input files, taken from the bytes as they are read.

XXH3 with 128 bits (`xxhsum -H2 FILE` prints the same, but for files of more than 1 GiB: `piece_checksum.py`): it
recognises changes and damage, at the speed of memory; it is no defence against forgery, which is not the question here.
What was not read in order, or not at all, is read once more from where the file lies in the page cache.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import xxhash

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.container_paths import url_of
from xcorr_app.io.meter import Meter, timed
from xcorr_app.io.ome_zarr.zarr_checksum import folder_checksum, remote_checksum
from xcorr_app.io.opened import Stamp, opened, stamp
from xcorr_app.io.piece_checksum import LARGE, PieceChecksum, Pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BLOCK = 1 << 22
_LONGEST_GAP = 1 << 26
"""Bytes that are read again at once where others came before them; beyond, they wait for the end."""
_TAIL = 1 << 16
"""So few bytes before the end are read with those before them, while the file is open anyway."""


class FileChecksum:
    """Checksum of one file, told of what was read of it by any number of threads.

    What came before a part and was not told of yet is read again: the system has it in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = xxhash.xxh3_128()
        self._position = 0
        self._stamp: Stamp | None = None
        self._result: str | None = None
        self._is_told = False
        self._lock = threading.Lock()

    def saw(self, known: Stamp) -> None:
        """Take in as what the file was checked, before anything is read: of another one there is no checksum.

        Where planes are decoded, or a library reads them, nothing is told of the bytes.
        """
        self._stamp = known

    def add(self, descriptor: int, known: Stamp, offset: int, parts: Sequence[memoryview]) -> None:
        """Take in `parts`, bytes that follow each other from `offset` on in the open file of size and time `known`."""
        if known[0] > LARGE:
            return  # it was smaller, or could not be looked at: all of it is read at the end
        end = offset + sum(part.nbytes for part in parts)
        if end - offset == known[0]:
            self._take_whole(known, parts)
            return
        with self._lock:
            if self._result is not None or end <= self._position or self._stamp not in (None, known):
                return
            if not self._position <= offset <= self._position + _LONGEST_GAP:
                return
            self._stamp = known
            self._read(descriptor, offset)
            for part in parts:
                self._digest.update(part)
            self._position = end
            if known[0] - end <= _TAIL:
                self._read(descriptor, known[0])
                self._result = self._digest.hexdigest()

    def _take_whole(self, known: Stamp, parts: Sequence[memoryview]) -> None:
        """Take in the bytes of the whole file, which are nobody's turn: a series has thousands of small files."""
        digest = xxhash.xxh3_128()
        for part in parts:
            digest.update(part)
        with self._lock:
            if self._result is None and self._stamp in (None, known):
                self._stamp, self._result = known, digest.hexdigest()

    def news(self) -> Pieces | None:
        """The checksum as that of one piece, once the whole file was read; None before, and once it was told."""
        if self._result is None or self._stamp is None or self._is_told:
            return None
        self._is_told = True
        return self._stamp, {0: bytes.fromhex(self._result)}

    def learn(self, pieces: Pieces) -> None:
        """Take the checksum from another process that has read the file, if that is still the same."""
        with suppress(InputError), opened(self.path) as descriptor, self._lock:
            if self._result is None and self._stamp in (None, pieces[0]) and stamp(descriptor) == pieces[0]:
                self._result = pieces[1][0].hex()

    def hexdigest(self) -> str:
        """The checksum; what is missing is read here. Raises InputError where the file cannot be read."""
        with self._lock:
            if self._result is None and (found := _of_folder(self.path)) is not None:
                self._result = found
            if self._result is None:
                with opened(self.path) as descriptor:
                    now = stamp(descriptor)
                    if self._stamp not in (None, now):
                        raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
                    if now[0] > LARGE:
                        return PieceChecksum(self.path).hexdigest()
                    self._read(descriptor, now[0])
                self._result = self._digest.hexdigest()
            return self._result

    def _read(self, descriptor: int, end: int) -> None:
        while self._position < end:
            block = os.pread(descriptor, min(_BLOCK, end - self._position), self._position)
            if not block:
                raise DamagedFileError(f"{self.path}: ends at byte {self._position}; it had {end}")
            self._digest.update(block)
            self._position += len(block)


def _of_folder(path: Path) -> str | None:
    """Checksum of a folder of chunks or of a URL; None for a file."""
    url = url_of(path)
    if url is not None:
        return remote_checksum(path, url)
    return folder_checksum(path) if path.is_dir() else None


AnyChecksum: TypeAlias = FileChecksum | PieceChecksum


def checksum_of(path: Path) -> AnyChecksum:
    """Checksum of a file that nothing was read of yet."""
    is_large = False
    with suppress(OSError, ValueError):
        status = path.stat() if url_of(path) is None else None
        is_large = status is not None and stat.S_ISREG(status.st_mode) and status.st_size > LARGE
    return PieceChecksum(path) if is_large else FileChecksum(path)


def checksum_of_bytes(content: bytes) -> str:
    """Checksum of a file of up to 1 GiB that holds these bytes."""
    return xxhash.xxh3_128_hexdigest(content)


News: TypeAlias = "tuple[tuple[Path, Pieces], ...]"
"""What one process knows of files that it read."""


class Checksums:
    """Checksums of the files of one stack; of one that is no more as it was `checked` there is none."""

    def __init__(
        self, paths: Sequence[Path], meter: Meter | None = None, checked: Mapping[Path, Stamp] | None = None
    ) -> None:
        self._files = {path: checksum_of(path) for path in paths}
        self._meter = meter
        for path, known in (checked or {}).items():
            if path in self._files:
                self._files[path].saw(known)

    def of(self, path: Path) -> AnyChecksum | None:
        """Of one file, to be told of what is read of it."""
        return self._files.get(path)

    @classmethod
    def of_parts(cls, paths: Sequence[Path]) -> Checksums:
        """Of files of which this process reads a part: a single one is worth it by pieces alone."""
        found = cls(paths)
        if len(paths) == 1:
            found._files = {path: file for path, file in found._files.items() if isinstance(file, PieceChecksum)}
        return found

    def stop(self) -> None:
        """Take no checksums of what is read from now on."""
        self._files = {}

    def news(self) -> News:
        """What is known since this was last asked for, of files as they were when they were read."""
        found = ((path, file.news()) for path, file in self._files.items())
        return tuple((path, pieces) for path, pieces in found if pieces is not None)

    def learn(self, news: News) -> None:
        """Take what is known to another process that has read parts of the files."""
        for path, pieces in news:
            file = self._files.get(path)
            # Of a file that has grown or shrunk since, it is the checksum of something else.
            if file is not None and isinstance(file, PieceChecksum) == (pieces[0][0] > LARGE):
                file.learn(pieces)

    def finished(self) -> dict[str, str]:
        """Every checksum by path as given; a file that cannot be read has the reason instead."""
        found = {}
        for path, file in self._files.items():
            try:
                with timed(self._meter, "hash"):
                    found[str(path)] = file.hexdigest()
            except InputError as error:
                found[str(path)] = f"unreadable: {error}"
        return found
