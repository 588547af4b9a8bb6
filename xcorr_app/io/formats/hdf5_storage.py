"""Where HDF5 keeps the values of an array, looked up before any of them is read.

An array may name other files: by links, by external storage (bytes of any file as pixels), or as a virtual array over
arrays of other files. To read these would be to read what nobody named: they are refused. The library decodes a chunk
to whatever it holds, so each is decoded here first, up to what was declared.
"""

import io
import math
import re
import zlib
from collections.abc import Sequence
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import imagecodecs

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.opened import library

_MOST_LINKS = 16
_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
_BYTES_OF_FLETCHER32 = 4
_OTHERS = "name those files, as frames of one movie by --layout frames, or arrays, or copy the values into one"
_HEAP = b"GCOL\x01\0\0\0"
_HEADER = 16
"""Bytes of a heap, and of each object in it, before what it holds: its size from the eighth on."""
_VIRTUAL = rb"(?s)[\x04\x05]\x03(?=(.{%d})(.{4}))"
"""That an array is virtual: version, class, the heap that holds its sources, and which object of it they are."""
_LARGEST_HEADER = 1 << 16


class CheckedFile(io.FileIO):
    """A file whose global heaps (sources of virtual arrays, strings) are checked before the library parses them.

    It goes on from each object by the size that this has, and for ever round where a damaged one has none. Sources it
    parses before it compares their checksum, and beyond their end.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, closefd=False)
        head = self.read(_HEADER)
        self._of_place: int
        self._of_size: int
        self._of_place, self._of_size = head[13:15] if head[8] < 2 else head[9:11]
        self._sources: set[tuple[int, int]] = set()
        self._end, self._tail = 0, b""

    def readinto(self, buffer: Any) -> int:
        """Read as the library asks for it; raises ValueError where a heap is damaged."""
        place = self.tell()
        count = super().readinto(buffer)
        found = b"".join((self._tail if place == self._end else b"", memoryview(buffer)[:count]))
        self._end, self._tail = place + count, found[-_HEADER:]
        if count <= _LARGEST_HEADER:
            for heap, number in re.findall(_VIRTUAL % self._of_place, found):
                self._sources.add((int.from_bytes(heap, "little"), int.from_bytes(number, "little")))
        at = found.find(_HEAP)
        while at >= 0:
            self._check_heap(self._end - len(found) + at)
            at = found.find(_HEAP, at + 1)
        self.seek(self._end)
        return count

    def _check_heap(self, heap: int) -> None:
        _, size = self._header(heap)
        place, end = heap + _HEADER, heap + size
        while place + _HEADER <= end:
            number, length = self._header(place)
            step = _HEADER + (length + 7) // 8 * 8 if number else length
            if step < _HEADER or place + step > end:
                raise ValueError(f"an object of its global heap, at byte {place}, is of {length} bytes")
            if (heap, number) in self._sources:
                content = self.read(length)
                if imagecodecs.h5checksum_metadata(content[:-4]) != int.from_bytes(content[-4:], "little"):
                    raise ValueError(f"the checksum of the names of its sources, at byte {place}, is not theirs")
            place += step

    def _header(self, place: int) -> tuple[int, int]:
        """Number of what lies there and its size; raises ValueError at the end of the file."""
        self.seek(place)
        content = self.read(_HEADER)
        if len(content) < _HEADER:
            raise ValueError(f"its global heap goes on at byte {place}, beyond its end")
        return int.from_bytes(content[:2], "little"), int.from_bytes(content[8 : 8 + self._of_size], "little")


def node_at(path: Path, file: Any, name: str) -> Any:
    """What an absolute name leads to within a file, or None; links that lead out of it are refused unopened."""
    h5py = library("h5py", "formats", path)
    waiting, place = [part for part in name.split("/") if part][::-1], ""
    links = 0
    while waiting:
        place += "/" + waiting.pop()
        link = file.get(place, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise InputError(f"{path}: {place} is a link to {link.filename}; {_OTHERS}")
        if isinstance(link, h5py.SoftLink):
            links += 1
            if links > _MOST_LINKS:
                raise DamagedFileError(f"{path}: {name} is a circle of links")
            target = link.path if link.path.startswith("/") else f"{place.rpartition('/')[0]}/{link.path}"
            waiting += [part for part in target.split("/") if part not in ("", ".")][::-1]
            place = ""
        elif link is None:
            return None
    return file.get(place or "/")


def check_storage(path: Path, array: Any, limits: Limits) -> None:
    """Refuse an array of other files' values, of chunks that are too large, or of an encoding that is not bounded."""
    sources = array.virtual_sources() if array.is_virtual else ()
    others = [each.dset_name if each.file_name == "." else str(each.file_name) for each in sources]
    if names := ", ".join(dict.fromkeys([str(name) for name, *_ in array.external or ()] + others)):
        raise InputError(f"{path}: {array.name} is made of values in other files or arrays ({names[:200]}); {_OTHERS}")
    if array.chunks is None:
        return
    limits.check_chunk(path, array.chunks, array.shape, array.dtype)
    for number, name in _filters(array):
        if number not in (_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF):
            raise InputError(
                f"{path}: {array.name} is encoded by {name or number}, and gzip and lzf are read; "
                "h5repack -f GZIP=4 rewrites it"
            )


def check_chunks(path: Path, array: Any, index: Sequence[int], checked: set[tuple[int, ...]]) -> None:
    """Decode the chunks of a plane that were not `checked` before: none may hold more or less than it says."""
    filters = _filters(array)
    if array.chunks is None or all(number == _SHUFFLE for number, _ in filters):
        return
    axes = zip_longest(array.chunks, array.shape, index)
    starts = [range(0, size, chunk) if at is None else (at // chunk * chunk,) for chunk, size, at in axes]
    for place in product(*starts):
        if place in checked:
            continue
        info = array.id.get_chunk_info_by_coord(place)
        if info.byte_offset is not None and info.size:
            _check_chunk(path, array, place, filters)
        checked.add(place)


def _check_chunk(path: Path, array: Any, place: tuple[int, ...], filters: list[tuple[int, str]]) -> None:
    declared = math.prod(array.chunks) * array.dtype.itemsize
    mask, content = array.id.read_direct_chunk(place)
    for bit, (number, _) in reversed(list(enumerate(filters))):
        if mask & 1 << bit:
            continue
        if number == _FLETCHER32:
            content = content[:-_BYTES_OF_FLETCHER32]
        elif number == _DEFLATE:
            content = zlib.decompressobj().decompress(content, declared + _BYTES_OF_FLETCHER32 + 1)
        elif number == _LZF:
            codec = library("imagecodecs", "formats", path)
            content = codec.lzf_decode(content, out=declared + _BYTES_OF_FLETCHER32 + 1)
    if len(content) != declared:
        held = "more" if len(content) > declared else f"only {len(content)}"
        raise DamagedFileError(f"{path}: the chunk of {array.name} at {place} is of {declared} bytes and holds {held}")


def _filters(array: Any) -> list[tuple[int, str]]:
    """Number and name of every filter, in the order in which they encode."""
    known = array.id.get_create_plist()
    found = [known.get_filter(i) for i in range(known.get_nfilters())]
    return [(each[0], each[3].decode(errors="replace")) for each in found]
