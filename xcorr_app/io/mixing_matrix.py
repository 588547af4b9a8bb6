"""Matrices for mixing channels, from ``.csv``, ``.txt`` and ``.npy`` files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.images.npy import open_array
from xcorr_app.io.opened import text_of

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
    return _read_npy(path) if path.suffix.lower() == ".npy" else _read_text(path, header=header)


def read_spectra(path: Path) -> MatrixTable:
    """Read measured spectra: one row a channel of the input, one column a dye; a first line may name the dyes.

    Names of the rows are left out. The names of the table are those of its columns.
    """
    table = read_matrix(path, header=True)
    return MatrixTable(table.matrix, table.columns)


def _read_npy(path: Path) -> MatrixTable:
    matrix = open_array(path)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf" or matrix.size == 0:
        raise InputError(f"{path}: holds {matrix.shape} {matrix.dtype}; a matrix has numbers in rows and columns")
    with np.errstate(invalid="ignore"):  # what is no number is refused later
        return MatrixTable(matrix.astype(np.float64), ())


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
        values = [_number(cell) for cell in (cells[1:] if named else cells)]
        known = [value for value in values if value is not None]
        if len(known) != len(values) or not known:
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
