"""Chunks of zarr arrays: of the library, decoded up to what they declare; and those that are a plane each, without it.

The codecs of the zarr library decode to whatever a chunk holds: every compression is replaced by one that is given the
room there is; what cannot be bounded is refused by name. The library copies every chunk of a shard several times:
without it, 400 MB are read in a quarter of the time and written in half. A file is one chunk, or a shard, chunks one
after the other with an index that says where each lies.
Source: https://zarr-specs.readthedocs.io, versions 2 and 3, and its codec ``sharding_indexed``.
"""

from __future__ import annotations

import math
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.opened import library, opened, read_whole

_SPARE = 1 << 12
"""Bytes that checksums and an index may add to a chunk."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_OF_SAME_SIZE = ("crc32c", "delta", "shuffle", "bitround", "quantize", "fixedscaleoffset", "crc32", "adler32")


def _inflate(content: Any, out: int) -> bytes:
    found, rest = b"", bytes(content)
    while rest and len(found) <= out:
        stream = zlib.decompressobj(_GZIP_OR_ZLIB)
        found += stream.decompress(rest, out + 1 - len(found))
        rest = stream.unused_data if stream.eof else b""
    if len(found) > out:
        raise ValueError(f"a chunk holds more than the {out} bytes that there is room for")
    return found


_DECODERS: dict[str, Callable[..., bytes | bytearray]] = {
    "gzip": _inflate,
    "zlib": _inflate,
    "zstd": imagecodecs.zstd_decode,
    "blosc": imagecodecs.blosc_decode,
    "lz4": lambda content, out: imagecodecs.lz4_decode(content, out=out, header=True),
}


def bounded(path: Path, array: Any) -> Any:
    """Return the same array of the zarr library, whose chunks take at most the memory that they declare."""
    zarr = library("zarr", "zarr", path)
    known = array.metadata
    if known.zarr_format == 2:
        for codec in known.filters or ():
            _refuse_unless(path, codec.codec_id, _OF_SAME_SIZE)
        if known.compressor is None:
            return array
        _refuse_unless(path, known.compressor.codec_id, _DECODERS)
        room = math.prod(known.chunks) * np.dtype(array.dtype).itemsize + _SPARE
        changed = replace(known, compressor=_OfVersion2(known.compressor.codec_id, room))
    else:
        codecs = tuple(_bounded(path, codec) for codec in known.codecs)
        if codecs == known.codecs:
            return array
        changed = replace(known, codecs=codecs)
    return zarr.Array(zarr.AsyncArray(metadata=changed, store_path=array.store_path))


def _bounded(path: Path, codec: Any) -> Any:
    codecs, abc = library("zarr.codecs", "zarr", path), library("zarr.abc.codec", "zarr", path)
    if isinstance(codec, codecs.ShardingCodec):
        return replace(codec, codecs=tuple(_bounded(path, inner) for inner in codec.codecs))
    if not isinstance(codec, abc.BytesBytesCodec):
        return codec
    name = codec.to_dict()["name"]
    if name in _OF_SAME_SIZE:
        return codec
    _refuse_unless(path, name, _DECODERS)
    return _of_version_3()(name)


def _refuse_unless(path: Path, name: str, known: Any) -> None:
    if name not in known:
        raise InputError(
            f"{path}: its chunks are encoded by {name}, and {', '.join(_DECODERS)} are read; save it with one of them"
        )


class _OfVersion2:
    """A compression of version 2, of chunks of one size; what the library asks of one of numcodecs."""

    codec_id = "bounded"

    def __init__(self, name: str, room: int) -> None:
        self._name, self._room = name, room

    def encode(self, _: Any) -> Any:
        raise NotImplementedError

    def decode(self, content: Any, _: Any = None) -> Any:
        return np.frombuffer(_DECODERS[self._name](bytes(content), out=self._room), np.uint8)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id}

    @classmethod
    def from_config(cls, _: Any) -> Any:
        raise NotImplementedError


@cache
def _of_version_3() -> type[Any]:
    from zarr.abc.codec import BytesBytesCodec

    @dataclass(frozen=True)
    class Bounded(BytesBytesCodec):
        """A compression of version 3, told of the size of each chunk."""

        name: str
        is_fixed_size = False

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            room = math.prod(chunk_spec.shape) * chunk_spec.dtype.to_native_dtype().itemsize + _SPARE
            content = _DECODERS[self.name](chunk_bytes.to_bytes(), out=room)
            return chunk_spec.prototype.buffer.from_bytes(content)

        def compute_encoded_size(self, input_byte_length: int, _chunk_spec: Any) -> int:
            raise NotImplementedError

    return Bounded


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
