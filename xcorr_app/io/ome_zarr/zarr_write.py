"""Stacks to OME-Zarr: plane by plane, whole or not at all; 0.5 in shards that hold blocks of time, 0.4 in chunks.

A chunk is a plane, or a tile of a large one; a shard is the block of frames that is written at once. The folder has a
temporary name until all of it is on the disk.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np

from xcorr_app.errors import ArgumentError, FileError, OutputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.ome_zarr.zarr_image import scan_zarr
from xcorr_app.io.ome_zarr.zarr_metadata import build_attributes, place_of, stored_order
from xcorr_app.io.opened import library
from xcorr_app.io.source import Meter, StackMetadata, timed
from xcorr_app.io.writing.atomic import atomic_folder
from xcorr_app.io.writing.written_planes import BYTES_WAITING, PlaneWriter

_SHARD_BYTES = 1 << 24
_TILE = 2048
"""Rows and columns of a chunk, at most: planes beyond that are cut."""
COMPRESSIONS = ("zlib", "zstd")


class ZarrWriter(PlaneWriter):
    """Write a stack plane by plane, in the order of its axes; the folder appears when the block ends without an error.

    An existing folder is replaced. Raises as `StackWriter` does.

    Parameters
    ----------
    path, metadata
        Where, and what: ``0.5`` (zarr 3, sharded) or ``0.4`` (zarr 2) as the input, or 0.5.
    compression
        ``zstd`` (in Blosc, with shuffled bytes), ``zlib``, or None.
    pyramid
        Number of levels, each of half the rows and columns of the one before.
    later, meter
        As of `StackWriter`.
    """

    def __init__(
        self,
        path: Path | str,
        metadata: StackMetadata,
        *,
        compression: str | None = None,
        pyramid: int = 1,
        later: Callable[[Any], None] | None = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(Path(path), metadata, later, meter)
        self._version = metadata.zarr.version if metadata.zarr else "0.5"
        if compression is not None and compression not in COMPRESSIONS:
            raise ArgumentError(f"compression {compression!r} is not one of OME-Zarr: use {' or '.join(COMPRESSIONS)}")
        library("zarr", "zarr", self.path)
        self._compression = compression
        smallest = min(metadata.shape[-2:])
        self._levels = max(1, min(pyramid, 1 + int(math.log2(smallest))))
        self._order = stored_order(metadata)
        inner = math.prod(metadata.shape[1:-2])
        self._frames = 1
        if metadata.axes != "YX":
            # 0 where one index along the first axis is too large to wait for.
            self._frames = min(metadata.shape[0], _SHARD_BYTES // (inner * metadata.plane_bytes))
        self._together = self._frames * inner if self._frames and metadata.axes != "YX" else 1
        self._arrays: list[Any] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._partial = stack.enter_context(atomic_folder(self.path, self._meter))
            self._arrays = self._begin(self._partial)
            stack.callback(self._stop_threads)
            self._stack = stack.pop_all()
        return self

    def write(self, plane: np.ndarray) -> None:
        """Write the next plane, in the order of the metadata's axes (the last before YX fastest)."""
        self._check(plane)
        self._written += 1
        self._gathered.append(plane)
        if len(self._gathered) == self._together or self._written == self.metadata.planes:
            planes, self._gathered = self._gathered, []
            self._submit(sum(each.nbytes for each in planes), self._write_block, planes, self._written - len(planes))
            self._wait(BYTES_WAITING)

    def _finish(self) -> None:
        self._wait(0)
        self._verify()

    def _begin(self, folder: Path) -> list[Any]:
        """Make the group and its arrays, without a pixel."""
        zarr = library("zarr", "zarr", self.path)
        zarr_format = 2 if self._version == "0.4" else 3
        attributes = build_attributes(self.metadata, self._version, self._levels)
        group = zarr.open_group(str(folder), mode="w", zarr_format=zarr_format, attributes=attributes)
        sizes, arrays = self.metadata.sizes, []
        names = None if zarr_format == 2 else [axis.lower() for axis in self._order]
        height, width = sizes["Y"], sizes["X"]
        for level in range(self._levels):
            shape = tuple({**sizes, "Y": height, "X": width}[axis] for axis in self._order)
            tile = {"Y": min(height, _TILE), "X": min(width, _TILE)}
            chunks = tuple(tile.get(axis, 1) for axis in self._order)
            arrays.append(
                group.create_array(
                    str(level),
                    shape=shape,
                    dtype=self.metadata.dtype,
                    chunks=chunks,
                    shards=None if zarr_format == 2 else self._shards(tile, height, width),
                    compressors=self._codecs(zarr_format),
                    chunk_key_encoding={"name": "v2" if zarr_format == 2 else "default", "separator": "/"},
                    dimension_names=names,
                    fill_value=0,
                    config={"write_empty_chunks": True},
                )
            )
            height, width = -(-height // 2), -(-width // 2)
        return arrays

    def _shards(self, tile: dict[str, int], height: int, width: int) -> tuple[int, ...] | None:
        """Shape of a shard: a block of frames, whole; None where frames are too large to be gathered."""
        if self.metadata.axes == "YX" or not self._frames:
            return None
        whole = {"Y": -(-height // tile["Y"]) * tile["Y"], "X": -(-width // tile["X"]) * tile["X"]}
        sizes = self.metadata.sizes | whole | {self.metadata.axes[0]: self._frames}
        return tuple(sizes[axis] for axis in self._order)

    def _codecs(self, zarr_format: int) -> Any:
        if self._compression is None:
            return None
        if zarr_format == 2:
            numcodecs = library("numcodecs", "zarr", self.path)
            return numcodecs.Blosc("zstd", 5) if self._compression == "zstd" else numcodecs.Zlib(6)
        codecs = library("zarr.codecs", "zarr", self.path)
        if self._compression == "zlib":
            return codecs.GzipCodec(level=6)
        return codecs.BloscCodec(cname="zstd", clevel=5, typesize=self.metadata.dtype.itemsize, shuffle="shuffle")

    def _write_block(self, planes: list[np.ndarray], first: int) -> None:
        with timed(self._meter, "write", sum(plane.nbytes for plane in planes)):
            planes = [plane.astype(self.metadata.dtype, copy=False) for plane in planes]
            places = [place_of(self.metadata, first + i, self._order) for i in range(len(planes))]
            lowest, highest = np.min(places, axis=0), np.max(places, axis=0)
            for level, array in enumerate(self._arrays):
                if level > 0:
                    planes = list(halve(np.stack(planes)))
                block = np.empty((*(highest - lowest + 1), *planes[0].shape), self.metadata.dtype)
                for plane, place in zip(planes, places, strict=True):
                    block[tuple(place - lowest)] = plane
                array[tuple(slice(a, b + 1) for a, b in zip(lowest, highest, strict=True))] = block

    def _verify(self) -> None:
        """Read the group back: what bears the final name is what was meant."""
        try:
            found = scan_zarr(self._partial, Limits(max_pixels=2**62, max_pages=2**62)).metadata
        except FileError as error:
            raise OutputError(f"{self.path}: what was written does not read back ({error})") from error
        if found.sizes != self.metadata.sizes or found.dtype != self.metadata.dtype:
            raise OutputError(f"{self.path}: was written as {self.metadata.sizes}, reads as {found.sizes}")


def halve(planes: np.ndarray) -> np.ndarray:
    """Means of 2 x 2 pixels, rounded for integers; a last odd row or column counts twice."""
    rows, columns = planes.shape[-2:]
    if rows % 2 or columns % 2:
        planes = np.pad(planes, [(0, 0)] * (planes.ndim - 2) + [(0, rows % 2), (0, columns % 2)], mode="edge")
    wide: Any = np.float64 if planes.dtype.itemsize > 2 else np.float32
    sums: Any = planes[..., ::2, ::2].astype(wide)
    for part in (planes[..., 1::2, ::2], planes[..., ::2, 1::2], planes[..., 1::2, 1::2]):
        sums += part
    sums /= 4
    halved: np.ndarray = (np.rint(sums) if planes.dtype.kind in "iu" else sums).astype(planes.dtype)
    return halved
