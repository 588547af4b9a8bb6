"""Chunks of zarr arrays, decoded by the library up to what they declare.

The codecs of the zarr library decode to whatever a chunk holds: every compression is replaced by one that is given the
room there is; what cannot be bounded is refused by name.
Source: https://zarr-specs.readthedocs.io, versions 2 and 3, and its codec ``sharding_indexed``.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.opened import library

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
        if known.compressor is not None:
            _refuse_unless(path, known.compressor.codec_id, _DECODERS)
            room = math.prod(known.chunks) * np.dtype(array.dtype).itemsize + _SPARE
            known = replace(known, compressor=_OfVersion2(known.compressor.codec_id, room))
    else:
        known = replace(known, codecs=tuple(_bounded(path, codec) for codec in known.codecs))
    place = zarr.storage.StorePath(_strict()(array.store), array.store_path.path)
    return zarr.Array(zarr.AsyncArray(metadata=known, store_path=place))


@cache
def _strict() -> type[Any]:
    from zarr.storage import WrapperStore

    class Strict(WrapperStore):  # type: ignore[type-arg,unused-ignore]
        """Files that hold what the index of a shard says: the library takes a chunk beyond their end for none."""

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            found = await super().get(key, prototype, byte_range)
            wanted = getattr(byte_range, "end", 0) - getattr(byte_range, "start", 0)
            if found is not None and len(found) < wanted:
                raise ValueError(f"{key} ends {wanted - len(found)} bytes before the end of a chunk")
            return found

    return Strict


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
