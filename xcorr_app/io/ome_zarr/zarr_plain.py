"""Chunks of local zarr arrays that are nothing but a plane each: read straight into planes, written straight from them.

The zarr library copies every chunk of a shard several times: without it, 400 MB are read in a quarter of the time and
written in half. A file is one chunk, or a shard, chunks one after the other with an index that says where each lies.
Source: https://zarr-specs.readthedocs.io, versions 2 and 3, and its codec ``sharding_indexed``.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.opened import opened, read_whole
from xcorr_app.io.optional import library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Place = tuple[int, ...]
"""Index of a plane along the axes before Y and X, as stored."""

_NOT_THERE = 2**64 - 1


@dataclass(frozen=True)
class PlainArray:
    """An array in a local folder, in little-endian chunks of one plane, without compression."""

    folder: Path
    array: Any
    planes: Place
    """Of a file, along each axis before Y and X."""
    index_first: bool
    """The index is at the beginning of a shard, not at its end."""

    @classmethod
    def of(cls, array: Any) -> PlainArray | None:
        """An array of the zarr library, if it is stored so."""
        zarr = library("zarr", "zarr", Path(array.path))
        if not isinstance(array.store, zarr.storage.LocalStore) or sys.byteorder != "little":
            return None
        known = array.metadata
        of_one = (1,) * (array.ndim - 2) + tuple(array.shape[-2:])
        if tuple(array.chunks) != of_one or not np.dtype(array.dtype).isnative:
            return None
        folder, first = Path(array.store.root, array.path), False
        files = tuple(array.shards or of_one)
        if files[-2:] != of_one[-2:]:
            return None
        if known.zarr_format == 2:
            plain = known.compressor is None and not known.filters and known.order == "C"
            return cls(folder, array, files[:-2], first) if plain else None
        codecs = library("zarr.codecs", "zarr", folder)
        inner = known.codecs
        if array.shards:
            if not _are(inner, codecs.ShardingCodec):
                return None
            (sharding,) = inner
            if not _are(sharding.index_codecs, codecs.BytesCodec, codecs.Crc32cCodec):
                return None
            inner, first = sharding.codecs, getattr(sharding.index_location, "value", "") == "start"
        return cls(folder, array, files[:-2], first) if _are(inner, codecs.BytesCodec) else None

    def read(self, places: Sequence[Place], out: np.ndarray) -> None:
        """Read planes at places (n,) into `out` (n, Y, X). Raises DamagedFileError where a file is cut short."""
        fill = self.array.fill_value or 0
        for path, planes in self._files(places):
            if not path.exists():
                out[[number for number, _ in planes]] = fill
                continue
            with opened(path) as descriptor:
                offsets = self._offsets(path, descriptor)
                for number, within in planes:
                    if offsets[within] == _NOT_THERE:
                        out[number] = fill
                    else:
                        read_whole(
                            path, descriptor, out[number].reshape(-1).view(np.uint8).data, offsets[within], "chunk"
                        )

    def write(self, planes: Sequence[np.ndarray], places: Sequence[Place]) -> None:
        """Write planes (Y, X) at places: all of every shard that any of them is in."""
        for path, some in self._files(places):
            path.parent.mkdir(parents=True, exist_ok=True)
            index = np.full((math.prod(self.planes), 2), _NOT_THERE, "<u8")
            with path.open("wb") as stream:
                for number, within in some:
                    index[within] = stream.tell(), planes[number].nbytes
                    stream.write(np.ascontiguousarray(planes[number]).reshape(-1).view(np.uint8).data)
                if self.array.shards:
                    stream.write(index.tobytes() + _crc32c(index.tobytes()))

    def _files(self, places: Sequence[Place]) -> Iterator[tuple[Path, list[tuple[int, int]]]]:
        """Files of planes, and number and place in the file of each."""
        for key, some in groupby(enumerate(map(self._locate, places)), lambda each: each[1][0]):
            path = Path(self.folder, self.array.metadata.encode_chunk_key((*key, 0, 0)))
            yield path, [(number, within) for number, (_, within) in some]

    def _locate(self, place: Place) -> tuple[Place, int]:
        """File of a plane, and its number among those of that file."""
        at = [divmod(index, count) for index, count in zip(place, self.planes, strict=True)]
        number = 0
        for (_, within), count in zip(at, self.planes, strict=True):
            number = number * count + within
        return tuple(file for file, _ in at), number

    def _offsets(self, path: Path, descriptor: int) -> list[int]:
        """Where each chunk of a file begins."""
        if not self.array.shards:
            return [0]
        size, held = 16 * math.prod(self.planes) + 4, os.fstat(descriptor).st_size
        if held < size:
            raise DamagedFileError(f"{path}: has {held} bytes, less than the index of a shard")
        content = bytearray(size)
        read_whole(path, descriptor, memoryview(content), 0 if self.index_first else held - size, "chunk")
        if _crc32c(bytes(content[:-4])) != content[-4:]:
            raise DamagedFileError(f"{path}: the checksum of its index is wrong")
        plane = math.prod(self.array.shape[-2:]) * self.array.dtype.itemsize
        found = np.frombuffer(content[:-4], "<u8").reshape(-1, 2).tolist()
        for offset, length in found:
            if (offset, length) != (_NOT_THERE, _NOT_THERE) and (length != plane or offset + length > held):
                raise DamagedFileError(f"{path}: its index names a chunk of {length} bytes at {offset}")
        return [offset for offset, _ in found]


def _are(codecs: Sequence[Any], *kinds: Any) -> bool:
    """Whether codecs are of these kinds, and little-endian."""
    return len(codecs) == len(kinds) and all(
        isinstance(codec, kind) and getattr(getattr(codec, "endian", None), "value", "little") == "little"
        for codec, kind in zip(codecs, kinds, strict=True)
    )


def _crc32c(content: bytes) -> bytes:
    checksum: int = library("google_crc32c", "zarr", Path("zarr")).value(content)
    return checksum.to_bytes(4, "little")
