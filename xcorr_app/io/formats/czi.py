"""CZI of Zeiss, through the library czifile: every scene is an image, one sub-block a plane.

The library reports much of what is wrong with a file through its logger and goes on: what it warns of is an error here.
"""

import logging
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import FormatImage, Limits, check_image, stamp_of
from xcorr_app.io.formats import Readers, number_of
from xcorr_app.io.opened import warnings_as
from xcorr_app.io.source import StackMetadata, calibration, make_metadata


@contextmanager
def logged_as_damage(path: Path) -> Iterator[None]:
    """Raise `DamagedFileError` at the end of the block if the library warned of anything within it."""
    found, logger = list[str](), logging.getLogger("czifile")

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            found.append(record.getMessage())
        return False

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
    if found:
        raise DamagedFileError(f"{path}: {found[0]}" + (f" (and {len(found) - 1} more)" if found[1:] else ""))


_KNOWN = set("STZCYX0")
_DIRECTORY, _ENTRIES, _MAX_AXES = 84, 160, 40
"""Bytes from the beginning of the file to where it says where its directory is, and of that to its entries."""
_FEW = 1 << 20
"""Pixels that a damaged entry may ask for and none are the worse for it."""
_MICROMETRES = 1e6
"""In a metre, which is the unit of the file."""


def images(path: Path) -> list[str]:
    """Numbers of the scenes."""
    with _READERS.of(path, stamp_of(path)) as file, _strictly(path):
        return [str(number) for number in range(len(_scenes(file)))]


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check one scene of a file."""
    stamp = stamp_of(path)
    with _READERS.of(path, stamp) as file, _strictly(path):
        scenes = _scenes(file)
        number = number_of(path, inner, len(scenes), "scene")
        blocks = [block for block in file.filtered_subblock_directory if _at(block).get("S", 0) == scenes[number]]
        sizes, places = _grid(path, blocks)
        dtype = np.dtype(blocks[0].dtype).newbyteorder("=")
        check_image(path, limits, sizes, dtype)
        metadata = _calibrated(make_metadata(sizes, "TZCYX", dtype, "ome"), path, file)

    def plane(t: int, z: int, c: int) -> np.ndarray:
        with _READERS.of(path, stamp) as file, logged_as_damage(path):
            data = _pixels(places[t, z, c], file)
        return np.asarray(data).reshape(sizes["Y"], sizes["X"])

    return FormatImage(path, metadata, plane, stamp)


@contextmanager
def _strictly(path: Path) -> Iterator[None]:
    """Let what the library only warns of be errors: a file that is still being written, segments that are missing."""
    with logged_as_damage(path), warnings_as("error"):
        yield


def _opened(czifile: Any, file: BinaryIO) -> Any:
    _check_entries(file)
    with _strictly(Path(file.name)):
        return czifile.CziFile(file)


def _check_entries(file: BinaryIO) -> None:
    """Before the library takes memory for as many axes as entries say: of all entries in the directory of the file."""
    file.seek(_DIRECTORY)
    (place,) = struct.unpack("<q", file.read(8))
    file.seek(max(place, 0))
    name, count = struct.unpack("<16s16xi", file.read(36))
    place += _ENTRIES
    for _ in range(count if name.startswith(b"ZISRAWDIRECTORY") else 0):
        place += 32 + 20 * _axes_of_entry(file, place)
    file.seek(0)


def _axes_of_entry(file: BinaryIO, place: int) -> int:
    file.seek(max(place, 0))
    name, count = struct.unpack("<2s26xi", file.read(32))
    if name == b"DV" and not 0 <= count <= _MAX_AXES:
        raise ValueError(f"an entry has {count} axes")
    return count if name == b"DV" else 0


_READERS = Readers("czifile", _opened)


def _axes(block: Any) -> list[str]:
    """Axes of a sub-block: 0 are the colours."""
    if hasattr(block, "axes"):
        return list(block.axes)
    return ["0" if axis == "S" else axis for axis in block.dims]  # czifile from 2026 on, for Python 3.12


def _at(block: Any) -> dict[str, int]:
    """Where it begins along each axis; S is the scene, M a tile of a mosaic."""
    found = dict(zip(_axes(block), block.start, strict=True))
    if not hasattr(block, "axes"):
        apart = {"S": block.scene_index, "M": block.mosaic_index}
        found |= {axis: index for axis, index in apart.items() if index >= 0}
    return found


def _pixels(block: Any, file: Any) -> Any:
    """As they are stored: what is to be enlarged to a size that a damaged entry gives may take all memory."""
    if hasattr(block, "data_segment"):
        return block.data_segment().data(resize=False)
    _axes_of_entry(file.filehandle, block.subblock_entry_offset)
    segment = block.read_segment_data(file)
    if segment.data_size > file.filesize or segment.directory_entry.stored_size > max(block.stored_size, _FEW):
        raise ValueError("a sub-block is larger than its entry says")
    return segment.data()


def _scenes(file: Any) -> list[int]:
    return sorted({_at(block).get("S", 0) for block in file.filtered_subblock_directory})


def _grid(path: Path, blocks: list[Any]) -> tuple[dict[str, int], dict[tuple[int, int, int], Any]]:
    """Sizes of a scene, and the sub-block of every plane: each must be there once, whole and of one size."""
    first = blocks[0]
    extent = dict(zip(_axes(first), first.shape, strict=True))
    for block in blocks:
        shape = dict(zip(_axes(block), block.shape, strict=True))
        several = {axis for axis, size in shape.items() if axis not in "YX" and size > 1}
        odd = {axis for axis in _at(block) if axis not in _KNOWN and _at(block)[axis] > 0} | (several - {"0"})
        if odd or shape.get("0", 1) > 1:
            what = "colours" if shape.get("0", 1) > 1 else f"an axis {min(odd)} (M: tiles of a mosaic)"
            raise InputError(f"{path}: has {what}, which is not read; export it as OME-TIFF")
        if (shape["Y"], shape["X"]) != (extent["Y"], extent["X"]) or block.dtype != first.dtype:
            raise InputError(f"{path}: has planes of several sizes or types; export it as OME-TIFF")
    starts = [_at(block) for block in blocks]
    lowest = {axis: min(start.get(axis, 0) for start in starts) for axis in "TZC"}
    places = {
        (start.get("T", 0) - lowest["T"], start.get("Z", 0) - lowest["Z"], start.get("C", 0) - lowest["C"]): block
        for start, block in zip(starts, blocks, strict=True)
    }
    t, z, c = (max(place[number] for place in places) + 1 for number in range(3))
    if not len(places) == len(blocks) == t * z * c:
        raise InputError(f"{path}: has {len(blocks)} planes for T={t} x Z={z} x C={c}; it is incomplete, or a mosaic")
    return {"T": t, "Z": z, "C": c, "Y": extent["Y"], "X": extent["X"]}, places


def _calibrated(metadata: StackMetadata, path: Path, file: Any) -> StackMetadata:
    text = file.metadata()
    if not text:
        return metadata
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{path}: its XML defines entities, which is refused")
    root = ET.fromstring(text)  # noqa: S314 - no entities, see above
    step = {
        str(item.get("Id")): float(value.text or 0) * _MICROMETRES
        for item in root.iterfind(".//Scaling/Items/Distance")
        if (value := item.find("Value")) is not None
    }
    names = tuple(
        channel.get("Name", "") for channel in root.iterfind(".//Information/Image/Dimensions/Channels/Channel")
    )
    increment = root.find(".//Information/Image/Dimensions/T/Positions/Interval/Increment")
    seconds = float(increment.text or 0) if increment is not None else 0.0
    z = step.get("Z") if metadata.sizes["Z"] > 1 else None
    known = calibration((step.get("Y"), step.get("X")), "µm", (z, "µm"), (seconds, "s"))
    return replace(metadata, **known, channel_names=names if len(names) == metadata.sizes["C"] and any(names) else ())
