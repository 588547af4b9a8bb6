"""Images and stacks in NumPy's ``.npy`` files. An array does not name its axes, so only what has one reading is read.

Source: NumPy enhancement proposal 1. The header is parsed by NumPy, which evaluates no more than 10 000 characters.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import FormatImage, Limits, check_unchanged
from xcorr_app.io.opened import Stamp, opened, parsing, stamp, warnings_as
from xcorr_app.io.source import PIXEL_TYPES, make_metadata

SIGNATURE = b"\x93NUMPY"
_COLOURS = 3
_CONVERTED = {"float16": "float32", "int8": "int16", "bool": "uint8"}


class NpyArray(NamedTuple):
    """What the header of a file declares, compared with the file's size."""

    shape: tuple[int, ...]
    dtype: np.dtype
    order: Literal["C", "F"]
    offset: int
    stamp: Stamp


def scan_npy(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check a ``.npy`` file of (Y, X) or (T, Y, X), or, where `colour` is asked for, of (Y, X, 3) or (T, Y, X, 3)."""
    array = read_header(path)
    shape, dtype = array.shape, array.dtype.newbyteorder("=")
    if dtype.name not in PIXEL_TYPES:
        hint = f".astype({_CONVERTED[dtype.name]!r}) loses nothing" if dtype.name in _CONVERTED else ""
        raise InputError(
            f"{path}: holds {dtype}, which is no type of pixel; convert it to one of {', '.join(PIXEL_TYPES)}"
            + (f" ({hint})" if hint else "")
        )
    coloured = len(shape) in (3, 4) and shape[-1] == _COLOURS
    if coloured and not colour:
        raise InputError(
            f"{path}: of shape {shape}, which can be {_readings(shape)}; for colours pick one channel with --channel "
            "R, G, B or gray, for the other reading save it as TIFF"
        )
    rows_at = len(shape) - 2 - coloured
    if not 0 <= rows_at <= 1:
        raise InputError(
            f"{path}: of shape {shape}, and nothing says which axis is time, depth or channel; save an array of "
            "(T, Y, X), or an OME-TIFF: tifffile.imwrite('stack.ome.tif', array, metadata={'axes': 'TZCYX'})"
        )
    height, width = shape[rows_at], shape[rows_at + 1]
    frames = math.prod(shape[:rows_at])
    if 0 in shape:
        raise InputError(f"{path}: of shape {shape}, which holds no pixel")
    limits.check_plane(path, height, width, dtype)
    limits.check_pages(path, frames)
    samples = _COLOURS if coloured else 1
    sizes = {"T": frames, "Z": 1, "C": samples, "Y": height, "X": width}

    def plane(t: int, *_: int) -> np.ndarray:
        inner = shape[rows_at:]
        if array.order == "F":
            whole = map_array(path, array)
            image = whole[t] if rows_at else whole
        else:
            # A map would count as resident memory.
            with opened(path, array.stamp) as descriptor, open(descriptor, "rb", closefd=False) as file:
                place = array.offset + t * math.prod(inner) * array.dtype.itemsize
                image = np.fromfile(file, array.dtype, math.prod(inner), offset=place).reshape(inner)
        return (np.moveaxis(image, -1, 0) if coloured else image).astype(dtype, copy=False)

    return FormatImage(path, make_metadata(sizes, "TCYX", dtype, "tiff"), plane, array.stamp, samples)


def read_header(path: Path) -> NpyArray:
    """Read the header and compare it with the size of the file; no element is read."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
    # NumPy warns of files that Python 2 wrote; a map of less than the header promises fails.
    with parsing(path, "is no array that can be read"), warnings_as("ignore"):
        array = np.lib.format.open_memmap(path, mode="r")
    shape, dtype = array.shape, array.dtype
    if dtype.kind not in "biufc":
        raise InputError(
            f"{path}: holds {dtype}, no array of plain numbers; save it as one of {', '.join(PIXEL_TYPES)}"
        )
    needed = array.offset + array.nbytes
    if needed != mark[0]:
        raise DamagedFileError(
            f"{path}: is no array that can be read (it declares {' x '.join(map(str, shape))} elements up to byte "
            f"{needed}, but the file has {mark[0]} bytes: save each array as a file of its own)"
        )
    return NpyArray(shape, dtype, "F" if np.isfortran(array) else "C", array.offset, mark)


def open_array(path: Path) -> np.ndarray:
    """Map the array of a file, read-only: a header that promises more than the file holds takes no memory."""
    return map_array(path, read_header(path))


def read_numbers(path: Path, axes: Sequence[int], form: str, most: int = 1 << 33) -> NDArray[np.float64]:
    """Read an array of real numbers with so many axes, of at most so many bytes; `form` says what is wanted."""
    stored = open_array(path)
    if stored.ndim not in axes or stored.dtype.kind not in "buif" or stored.size == 0 or stored.nbytes > most:
        raise InputError(f"{path}: holds {stored.dtype} of shape {stored.shape}; {form}")
    with np.errstate(invalid="ignore"):  # of a NaN that signals
        return np.array(stored, np.float64)


def map_array(path: Path, array: NpyArray) -> np.ndarray:
    """Map the elements of a file whose header was read; refused where the file was changed since."""
    check_unchanged(path, array.stamp)
    with parsing(path, "cannot be read"):
        return np.memmap(path, array.dtype, "r", array.offset, array.shape, array.order)


def _readings(shape: tuple[int, ...]) -> str:
    if len(shape) == 3:
        rows, columns, _ = shape
        return f"one image in colours or {rows} images of {columns} x 3 pixels"
    return f"{shape[0]} images in colours or a stack along two axes"
