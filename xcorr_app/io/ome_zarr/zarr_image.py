"""OME-Zarr: folders and URLs told from others, the images that they hold, and planes of these, read chunk by chunk.

Source: OME-NGFF 0.4 and 0.5, https://ngff.openmicroscopy.org. URLs are opened through fsspec, with whatever file
systems are installed for it.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import Limits, check_image
from xcorr_app.io.names import url_of
from xcorr_app.io.ome_zarr.zarr_chunks import bounded
from xcorr_app.io.ome_zarr.zarr_metadata import place_of, read_metadata
from xcorr_app.io.opened import library, parsing, warnings_as
from xcorr_app.io.source import ImageFile, StackMetadata

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")


def is_zarr(path: Path) -> bool:
    """Tell whether a path leads to a zarr group or array: a folder with its marks, or a URL."""
    return url_of(path) is not None or (path.is_dir() and any((path / mark).is_file() for mark in _MARKS))


def open_node(path: Path) -> Any:
    """Open a zarr group or array for reading."""
    zarr = library("zarr", "zarr", path)
    try:
        return zarr.open(url_of(path) or str(path), mode="r")
    except ImportError as error:  # the file system of a URL
        raise InputError(f"{path}: cannot be opened ({error})") from error
    except (FileNotFoundError, zarr.errors.GroupNotFoundError, zarr.errors.NodeNotFoundError) as error:
        raise InputError(f"{path}: holds no zarr group; check the spelling ({error})") from error


def attributes_of(node: Any) -> dict[str, Any]:
    """OME attributes of a group, wherever its version keeps them; empty where there are none."""
    attributes = dict(node.attrs)
    found = attributes.get("ome", attributes)
    return found if isinstance(found, dict) else {}


def images_within(path: Path) -> list[Path]:
    """Paths of the images of a plate (every field of view) or of a collection; the path itself of anything else."""
    with parsing(path, "cannot be opened as OME-Zarr"):
        node = open_node(path)
        attributes = attributes_of(node)
        if "plate" in attributes:
            found = list(_fields(path, attributes["plate"]))
            if not found:
                raise InputError(f"{path}: is a plate without a field of view")
            return found
        if "bioformats2raw.layout" in attributes and "multiscales" not in attributes:
            names = sorted((name for name in node.group_keys() if name.isdecimal()), key=int)
            return [path / name for name in names] or [path]
    return [path]


def _fields(path: Path, plate: dict[str, Any]) -> Iterator[Path]:
    for well in plate["wells"]:
        place = path / _inside(well["path"])
        for image in attributes_of(open_node(place))["well"]["images"]:
            yield place / _inside(image["path"])


def _inside(text: str) -> str:
    """A path of an attribute, which must not lead out of its group."""
    if not isinstance(text, str) or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{json.dumps(text)[:80]} is no path within the group")
    return text


_BLOCKS_KEPT = 4
_LARGEST_BLOCK = 1 << 27
"""Bytes of planes that share their chunks, which are decoded together and kept for the next reader."""


@dataclass(frozen=True, eq=False)
class ZarrImage(ImageFile):
    """An image of an OME-Zarr group, whose array was compared with what the group says.

    A chunk that is not there holds the fill value, as the format has it: it cannot be told from one that was lost.
    """

    path: Path
    metadata: StackMetadata
    array: Any
    order: str
    """Axes of the array, those of size one among them."""

    def __getstate__(self) -> dict[str, Any]:
        """All but the planes that are kept."""
        return {name: value for name, value in vars(self).items() if name != "_block"}

    def read(self, page: int) -> np.ndarray:
        """Read one plane, (Y, X) in native byte order."""
        with parsing(self.path, f"plane {page} cannot be decoded"):
            return np.array(self._plane(place_of(self.metadata, page, self.order)), self.metadata.dtype)

    def _plane(self, place: tuple[int, ...]) -> np.ndarray:
        """Read a plane; those that share its chunks are decoded with it, and kept, unless they take too much memory."""
        planes = self.array.chunks[:-2]
        if math.prod(planes) == 1 or math.prod(planes) * self.metadata.plane_bytes > _LARGEST_BLOCK:
            return self._decoded(place, (1,) * len(planes)).reshape(self.metadata.shape[-2:])
        first = tuple(index // size * size for index, size in zip(place, planes, strict=True))
        return np.asarray(self._block(first, planes)[tuple(np.subtract(place, first))])

    @cached_property
    def _block(self) -> Callable[..., np.ndarray]:
        return lru_cache(_BLOCKS_KEPT)(self._decoded)

    def _decoded(self, first: tuple[int, ...], planes: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.array[tuple(slice(a, a + size) for a, size in zip(first, planes, strict=True))])


def scan_zarr(path: Path, limits: Limits) -> ZarrImage:
    """Compare what a group says with the array of its full resolution; no chunk is read."""
    with parsing(path, "cannot be opened as OME-Zarr"):
        with warnings_as("error", "(?s).*chunk sizes must be"):  # which zarr would guess
            node = open_node(path)
            attributes = attributes_of(node)
            if "multiscales" not in attributes:
                raise InputError(f"{path}: {_without_image(node, attributes)}")
            name = attributes["multiscales"][0]["datasets"][0]["path"]
            array = node.get(name) if hasattr(node, "get") else None
        if array is None or not hasattr(array, "chunks"):
            raise DamagedFileError(f"{path}: names an array {name!r} that is not there")
        dtype = np.dtype(array.dtype).newbyteorder("=")
        shape = tuple(array.shape)
        if len(shape) < 2 or min(array.chunks) < 1:
            raise DamagedFileError(f"{path}: has an array of shape {shape} in chunks of {array.chunks}")
        planes = int(np.prod(shape[:-2], dtype=object))
        check_image(path, limits, {"T": planes, "Z": 1, "C": 1, "Y": shape[-2], "X": shape[-1]}, dtype)
        metadata, order = read_metadata(path, attributes, shape, dtype)
        # A chunk is decoded whole, whatever part of it lies inside the array.
        limits.check_chunk(path, array.chunks, shape, dtype)
        return ZarrImage(path, metadata, bounded(path, array), order)


def _without_image(node: Any, attributes: dict[str, Any]) -> str:
    if "plate" in attributes or "bioformats2raw.layout" in attributes or "well" in attributes:
        return "holds several images; name the folder of one"
    if hasattr(node, "chunks"):
        return "is a zarr array without OME metadata, and nothing says which axis is which; save it as OME-Zarr"
    return "is a zarr group without OME metadata (multiscales); save it as OME-Zarr"
