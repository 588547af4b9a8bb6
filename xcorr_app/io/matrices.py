"""Files that hold matrices: images and `.npy` for correlating; `.csv`, `.txt` and `.npy` for mixing channels."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.finding.scan import Channel, PickedImage, scan_channel, scan_file
from xcorr_app.io.images import npy
from xcorr_app.io.names import split_inner
from xcorr_app.io.ome_zarr.zarr_image import is_zarr
from xcorr_app.io.opened import opened, text_of
from xcorr_app.io.source import ImageFile
from xcorr_app.system import read_at

_LARGEST_FILE = 1 << 29
"""Bytes; a matrix of 4096 x 4096 numbers of 17 digits takes less."""


class MatrixTable(NamedTuple):
    """A matrix and the names of its rows."""

    matrix: np.ndarray
    """(rows, columns) float64."""
    names: tuple[str, ...]
    """One a row, or empty."""
    columns: tuple[str, ...] = ()
    """Names of the columns, where a first line was asked for and has them."""


def read_matrix(path: Path, *, header: bool = False) -> MatrixTable:
    """Read a matrix: one row a channel of the result, one column a channel of the input.

    A text has one row a line; commas, semicolons, tabs or spaces part the numbers, ``#`` begins a comment. Where every
    row begins with something that is no number, these are the rows' names; a name with spaces needs one of the other
    separators. With `header`, a first line without numbers names the columns.
    """
    if path.suffix.lower() not in (".csv", ".txt", ".npy"):
        raise InputError(f"{path}: matrices are read from .csv, .txt and .npy; choose one by the ending")
    if path.suffix.lower() == ".npy":
        return MatrixTable(npy.read_numbers(path, (2,), "a matrix has real numbers in rows and columns"), ())
    return _read_text(path, header=header)


def read_spectra(path: Path) -> MatrixTable:
    """Read measured spectra: one row a channel of the input, one column a dye; a first line may name the dyes.

    Names of the rows are left out. The names of the table are those of its columns.
    """
    table = read_matrix(path, header=True)
    return MatrixTable(table.matrix, table.columns)


def _read_text(path: Path, *, header: bool) -> MatrixTable:
    lines = text_of(path, _LARGEST_FILE).splitlines()
    rows = [(number, _cells(line)) for number, line in enumerate(lines, 1)]
    rows = [(number, cells) for number, cells in rows if cells]
    heading: list[str] = []
    if header and len(rows) > 1 and all(_number(cell) is None for cell in rows[0][1]):
        heading = rows.pop(0)[1]
    if not rows:
        raise InputError(f"{path}: holds no numbers")
    named = all(_number(cells[0]) is None for _, cells in rows)
    matrix: list[list[float]] = []
    for number, cells in rows:
        known = [value for cell in cells[named:] if (value := _number(cell)) is not None]
        if len(known) < len(cells) - named or not known:
            wrong = next((cell for cell in cells[named:] if _number(cell) is None), "")
            raise InputError(f"{path}: line {number} holds {wrong!r}, which is no number")
        if matrix and len(known) != len(matrix[0]):
            raise InputError(
                f"{path}: line {number} has {len(known)} numbers, the rows before {len(matrix[0])}; give every row one "
                "number a channel"
            )
        matrix.append(known)
    names = tuple(cells[0] for _, cells in rows) if named else ()
    return MatrixTable(np.array(matrix), names, tuple(heading[-len(matrix[0]) :]))


def _cells(line: str) -> list[str]:
    text = line.partition("#")[0].strip()
    if not text:
        return []
    cells = re.split(r"[,;\t]", text) if re.search(r"[,;\t]", text) else text.split()
    return [cell.strip().strip('"') for cell in cells]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class MatrixFile:
    """A file whose header was checked; its pixels are read by `read`.

    Attributes
    ----------
    shape
        (H, W), (K, H, W) or (N, M, H, W); leading axes of size one are left out.
    dtype
        Type of a pixel, native byte order.
    pixels
        Reads all of them.
    channels
        Number of channels in the file, of which one is taken.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    pixels: Callable[[], np.ndarray]
    channels: int = 1

    def read(self) -> np.ndarray:
        """Read all matrices, of shape `shape`."""
        values = self.pixels().reshape(self.shape)
        for number, matrix in enumerate(values.reshape(-1, *values.shape[-2:]) if values.dtype.kind == "f" else ()):
            wrong = matrix.size - int(np.count_nonzero(np.isfinite(matrix)))
            if wrong:
                raise InputError(
                    f"{self.path}: image {number} holds {wrong} NaN or infinite values, which have no correlation; "
                    "replace them, for example by the mean"
                )
        return values


def scan_matrices(path: Path, channel: Channel | None = None, limits: Limits | None = None) -> MatrixFile:
    """Check the header of a file of images or of a ``.npy`` array.

    `channel` is taken from files with several, counted from 0, or of colour images; without it, the first one is, and
    colour images are refused. Raises InputError, DamagedFileError or LimitError where the file is missing, damaged, too
    large, of a kind that cannot be correlated, or lacks the channel.
    """
    limits = limits or Limits()
    if not is_zarr(path) and _is_npy(split_inner(path)[0]):
        array = npy.read_header(path)
        in_colour = len(array.shape) in (3, 4) and array.shape[-1] == 3
        if channel is None or not in_colour:
            return _scan_npy(path, array, limits)
    if channel is None:
        file = scan_file(path, limits)
        return _of_image(file, file.metadata.sizes["C"])
    file = scan_channel(path, limits, channel=channel, lenient=True)
    return _of_image(file, file.file.metadata.sizes["C"] if isinstance(file, PickedImage) else 1)


def _is_npy(path: Path) -> bool:
    with opened(path) as descriptor:
        return read_at(descriptor, len(npy.SIGNATURE), 0) == npy.SIGNATURE


def _of_image(file: ImageFile, channels: int) -> MatrixFile:
    sizes, dtype = file.metadata.sizes, file.metadata.dtype

    def pixels() -> np.ndarray:
        values = np.empty((sizes["T"], sizes["Z"], sizes["Y"], sizes["X"]), dtype)
        for t, z in np.ndindex(sizes["T"], sizes["Z"]):
            values[t, z] = file.read(file.page_at(t, z, 0))
        return values

    shape = (*(sizes[axis] for axis in "TZ" if sizes[axis] > 1), sizes["Y"], sizes["X"])
    return MatrixFile(file.path, shape, dtype, pixels, channels)


def _scan_npy(path: Path, array: npy.NpyArray, limits: Limits) -> MatrixFile:
    # Leading axes of size one are left out.
    shape = (*(size for size in array.shape[:-2] if size != 1), *array.shape[-2:])
    dtype = array.dtype.newbyteorder("=")
    if not 2 <= len(shape) <= 4 or 0 in shape:
        raise InputError(
            f"{path}: holds an array of shape {array.shape}; matrices are (H, W), (K, H, W) or (N, M, H, W) "
            "with at least one element"
        )
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype}, which cannot be correlated; save integers or floats of up to 64 bits")
    limits.check_plane(path, shape[-2], shape[-1], dtype)
    limits.check_pages(path, math.prod(shape[:-2]))
    return MatrixFile(path, shape, dtype, lambda: np.array(npy.map_array(path, array), dtype, order="C"))
