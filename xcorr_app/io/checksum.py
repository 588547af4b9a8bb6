"""Checksums of input files, taken from the bytes as they are read, and of folders of chunks.

XXH3 with 128 bits, as `xxhsum -H2 FILE` prints it: it recognises changes and damage, at the speed of memory; it is no
defence against forgery, which is not the question here. What was not read in order, or not at all, is read once more
from where the file lies in the page cache.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import xxhash

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.names import url_of
from xcorr_app.io.opened import Stamp, library, opened
from xcorr_app.io.source import Meter, timed
from xcorr_app.system import read_at

_BLOCK = 1 << 22


def folder_checksum(folder: Path) -> str:
    """XXH3-128 of the names and contents of all files of a folder, in the order of their names."""
    digest = xxhash.xxh3_128()
    for path in files_below(folder):
        name = str(path.relative_to(folder)).encode()
        with opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            digest.update(b"%d %d " % (len(name), size) + name)
            position = 0
            while block := read_at(descriptor, _BLOCK, position):
                digest.update(block)
                position += len(block)
    return digest.hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """Every file of a folder and those in it, in one order."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(root, name) for name in sorted(names))


def remote_checksum(path: Path, url: str) -> str:
    """Checksum of the names, sizes and dates or tags that a server lists; pixels are not fetched for it."""
    fsspec = library("fsspec", "zarr", path)
    try:
        system, root = fsspec.core.url_to_fs(url)
        found = system.find(root, detail=True) if hasattr(system, "find") else {}
    except Exception as error:  # every file system has exceptions of its own
        raise InputError(f"{path}: cannot be listed ({error})") from error
    keys = ("size", "ETag", "etag", "md5Hash", "mtime", "LastModified", "created")
    lines = [f"{name} {[str(entry.get(key)) for key in keys]}" for name, entry in sorted(found.items())]
    return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())


_LONGEST_GAP = 1 << 26
"""Bytes that are read again at once where others came before them; beyond, they wait for the end."""
_TAIL = 1 << 16
"""So few bytes before the end are read with those before them, while the file is open anyway."""


class FileChecksum:
    """Checksum of one file, told of what was read of it by any number of threads.

    What came before a part and was not told of yet is read again: the system has it in memory. Where planes are
    decoded, or a library reads them, nothing is told. There is none of a file that is not as it was `known` to be.
    """

    def __init__(self, path: Path, known: Stamp | None = None) -> None:
        self.path = path
        self._digest = xxhash.xxh3_128()
        self._position = 0
        self._stamp = known
        self._result: str | None = None
        self._lock = threading.Lock()

    def add(self, descriptor: int, known: Stamp, offset: int, part: memoryview) -> None:
        """Take in the bytes from `offset` on in the open file of size and time `known`."""
        end = offset + part.nbytes
        with self._lock:
            if self._result is not None or end <= self._position or self._stamp not in (None, known):
                return
            if not self._position <= offset <= self._position + _LONGEST_GAP:
                return
            self._stamp = known
            self._read(descriptor, offset)
            self._digest.update(part)
            self._position = end
            if known[0] - end <= _TAIL:
                self._read(descriptor, known[0])
                self._result = self._digest.hexdigest()

    def hexdigest(self) -> str:
        """The checksum; what is missing is read here. Raises InputError where the file cannot be read."""
        with self._lock:
            if self._result is None:
                self._result = _of_folder(self.path)
            if self._result is None:
                with opened(self.path, self._stamp) as descriptor:
                    self._read(descriptor, os.fstat(descriptor).st_size)
                self._result = self._digest.hexdigest()
            return self._result

    def _read(self, descriptor: int, end: int) -> None:
        while self._position < end:
            block = read_at(descriptor, min(_BLOCK, end - self._position), self._position)
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


def checksum_of_bytes(content: bytes) -> str:
    """Checksum of a file that holds these bytes."""
    return xxhash.xxh3_128_hexdigest(content)


class Checksums:
    """Checksums of the files of one stack; of one that is no more as it was `checked` there is none."""

    def __init__(
        self, paths: Sequence[Path], meter: Meter | None = None, checked: Mapping[Path, Stamp] | None = None
    ) -> None:
        self._files = {path: FileChecksum(path, (checked or {}).get(path)) for path in paths}
        self._meter = meter

    def of(self, path: Path) -> FileChecksum | None:
        """Of one file, to be told of what is read of it."""
        return self._files.get(path)

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
