"""Chunks of local zarr arrays that are nothing but pixels: read straight into planes, written straight from them.

The zarr library copies every chunk of a shard several times. Where chunks are tiles of one plane each, without
compression, none of that is needed: a file is one chunk, or a shard, chunks one after the other with an index that says
where each lies. Source: https://zarr-specs.readthedocs.io, versions 2 and 3, and its codec ``sharding_indexed``.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.opened import opened
from xcorr_app.io.optional import library
from xcorr_app.io.writing.write_at import write_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Place = tuple[int, ...]
"""Index of a plane along the axes before Y and X, as stored."""

_NOT_THERE = 2**64 - 1
_AT_ONCE = 1000
"""Buffers of one call; the system's limit is 1024."""


class _Tile(NamedTuple):
    """A chunk: part of a plane."""

    plane: int
    """Number of the plane among those that are read or written."""
    rows: slice
    columns: slice
    file: Place
    """Index of its file along all axes."""
    number: int
    """Within the file, in the order of the axes."""


@dataclass(frozen=True)
class PlainArray:
    """An array in a local folder, in little-endian chunks of one plane, or a tile of one, without compression."""

    folder: Path
    array: Any
    chunks: tuple[int, ...]
    files: tuple[int, ...]
    """Shape of a shard, or of a chunk where there are no shards."""
    index_first: bool
    """The index is at the beginning of a shard, not at its end."""

    @classmethod
    def of(cls, array: Any) -> PlainArray | None:
        """An array of the zarr library, if it is stored so."""
        zarr = library("zarr", "zarr", Path(array.path))
        if not isinstance(array.store, zarr.storage.LocalStore) or sys.byteorder != "little":
            return None
        known, chunks = array.metadata, tuple(array.chunks)
        if math.prod(chunks[:-2]) != 1 or not np.dtype(array.dtype).isnative:
            return None
        folder = Path(array.store.root, array.path)
        if known.zarr_format == 2:
            plain = known.compressor is None and not known.filters and known.order == "C"
            return cls(folder, array, chunks, chunks, index_first=False) if plain else None
        codecs = library("zarr.codecs", "zarr", folder)
        if _are(known.codecs, codecs.BytesCodec):
            return cls(folder, array, chunks, chunks, index_first=False)
        if not _are(known.codecs, codecs.ShardingCodec):
            return None
        (sharding,) = known.codecs
        if not _are(sharding.codecs, codecs.BytesCodec) or not _are(
            sharding.index_codecs, codecs.BytesCodec, codecs.Crc32cCodec
        ):
            return None
        first = getattr(sharding.index_location, "value", sharding.index_location) == "start"
        return cls(folder, array, chunks, tuple(array.shards), index_first=first)

    def read(self, places: Sequence[Place], out: np.ndarray) -> None:
        """Read planes at places (n,) into `out` (n, Y, X). Raises DamagedFileError where a file is cut short."""
        for file, some in groupby(self._tiles(places), key=lambda tile: tile.file):
            tiles = list(some)
            path = self._path(file)
            if path.exists():
                with opened(path) as descriptor:
                    self._read_file(path, descriptor, tiles, out)
            else:
                for tile in tiles:
                    out[tile.plane, tile.rows, tile.columns] = self._fill

    def write(self, planes: Sequence[np.ndarray], places: Sequence[Place]) -> None:
        """Write planes (Y, X) at places: all of every shard that any of them is in."""
        for file, some in groupby(self._tiles(places), key=lambda tile: tile.file):
            tiles = list(some)
            path = self._path(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                position = 0
                for start in range(0, len(tiles), _AT_ONCE):
                    parts = [_bytes(self._chunk_of(planes, tile)) for tile in tiles[start : start + _AT_ONCE]]
                    write_at(stream.fileno(), parts, position)
                    position += sum(part.nbytes for part in parts)
                if self._is_sharded:
                    index = np.full((self._chunks_a_file, 2), _NOT_THERE, "<u8")
                    for i, tile in enumerate(tiles):
                        index[tile.number] = i * self._chunk_bytes, self._chunk_bytes
                    write_at(stream.fileno(), [index.tobytes() + _crc32c(index.tobytes())], position)

    @property
    def _fill(self) -> Any:
        return self.array.fill_value or 0

    @property
    def _is_sharded(self) -> bool:
        return bool(self.array.shards)

    @property
    def _chunk_bytes(self) -> int:
        return math.prod(self.chunks) * int(self.array.dtype.itemsize)

    @property
    def _chunks_a_file(self) -> int:
        return math.prod(self._grid)

    @property
    def _grid(self) -> tuple[int, ...]:
        """Chunks of a file along each axis."""
        return tuple(whole // part for whole, part in zip(self.files, self.chunks, strict=True))

    def _path(self, file: Place) -> Path:
        return Path(self.folder, self.array.metadata.encode_chunk_key(file))

    def _tiles(self, places: Sequence[Place]) -> Iterator[_Tile]:
        shape, grid = self.array.shape[-2:], self._grid
        starts = [range(0, size, step) for size, step in zip(shape, self.chunks[-2:], strict=True)]
        for number, place in enumerate(places):
            for row, column in product(*starts):
                at = (*place, row // self.chunks[-2], column // self.chunks[-1])
                file = tuple(index // count for index, count in zip(at, grid, strict=True))
                within = [index % count for index, count in zip(at, grid, strict=True)]
                rows = slice(row, min(row + self.chunks[-2], shape[0]))
                columns = slice(column, min(column + self.chunks[-1], shape[1]))
                yield _Tile(number, rows, columns, file, int(np.ravel_multi_index(within, grid)))

    def _chunk_of(self, planes: Sequence[np.ndarray], tile: _Tile) -> np.ndarray:
        """A chunk as it is written: whole, also where it reaches beyond the plane."""
        part = planes[tile.plane][tile.rows, tile.columns]
        if part.shape == self.chunks[-2:]:
            return part
        chunk = np.full(self.chunks[-2:], self._fill, part.dtype)
        chunk[: part.shape[0], : part.shape[1]] = part
        return chunk

    def _read_file(self, path: Path, descriptor: int, tiles: Sequence[_Tile], out: np.ndarray) -> None:
        offsets = self._offsets(path, descriptor)
        waiting: list[memoryview] = []
        copied: list[tuple[np.ndarray, np.ndarray]] = []
        begin = end = 0

        def flush() -> None:
            if waiting:
                _read_at(path, descriptor, waiting, begin)
                waiting.clear()

        for tile in tiles:
            target = out[tile.plane, tile.rows, tile.columns]
            offset = offsets[tile.number]
            if offset is None:
                target[...] = self._fill
                continue
            if offset != end or len(waiting) == _AT_ONCE:
                flush()
                begin = offset
            chunk = target
            if target.shape != self.chunks[-2:] or not target.flags.c_contiguous:
                chunk = np.empty(self.chunks[-2:], out.dtype)
                copied.append((target, chunk))
            waiting.append(_bytes(chunk))
            end = offset + self._chunk_bytes
        flush()
        for target, chunk in copied:
            target[...] = chunk[: target.shape[0], : target.shape[1]]

    def _offsets(self, path: Path, descriptor: int) -> list[int | None]:
        """Where each chunk of a file begins; None for those that are not there."""
        if not self._is_sharded:
            return [0]
        size, held = 16 * self._chunks_a_file + 4, os.fstat(descriptor).st_size
        if held < size:
            raise DamagedFileError(f"{path}: has {held} bytes, less than the index of a shard")
        content = bytearray(size)
        _read_at(path, descriptor, [memoryview(content)], 0 if self.index_first else held - size)
        if _crc32c(bytes(content[:-4])) != content[-4:]:
            raise DamagedFileError(f"{path}: the checksum of its index is wrong")
        found: list[int | None] = []
        for offset, length in np.frombuffer(content[:-4], "<u8").reshape(-1, 2).tolist():
            there = (offset, length) != (_NOT_THERE, _NOT_THERE)
            if there and (length != self._chunk_bytes or offset + length > held):
                raise DamagedFileError(f"{path}: its index names a chunk of {length} bytes at {offset}")
            found.append(offset if there else None)
        return found


def _are(codecs: Sequence[Any], *kinds: Any) -> bool:
    """Whether codecs are of these kinds, and little-endian."""
    return len(codecs) == len(kinds) and all(
        isinstance(codec, kind) and getattr(getattr(codec, "endian", None), "value", "little") == "little"
        for codec, kind in zip(codecs, kinds, strict=True)
    )


def _bytes(chunk: np.ndarray) -> memoryview:
    return np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data


def _crc32c(content: bytes) -> bytes:
    checksum: int = library("google_crc32c", "zarr", Path("zarr")).value(content)
    return checksum.to_bytes(4, "little")


def _read_at(path: Path, descriptor: int, parts: Sequence[memoryview], offset: int) -> None:
    """Fill buffers from a place in a file, one after the other."""
    if os.preadv(descriptor, parts, offset) == sum(part.nbytes for part in parts):
        return
    for part in parts:
        done = 0
        while done < part.nbytes:
            count = os.preadv(descriptor, [part[done:]], offset + done)
            if count == 0:
                raise DamagedFileError(f"{path}: ends {part.nbytes - done} bytes before the end of a chunk")
            done += count
        offset += part.nbytes
