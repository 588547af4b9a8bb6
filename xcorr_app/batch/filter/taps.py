"""Taps of a filter from a file: an array of NumPy, or numbers as text, one row of taps a line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import InputError
from xcorr_app.io import opened
from xcorr_app.io.images.npy import open_array

TEXT_SUFFIXES = (".csv", ".txt")
_MAX_BYTES = 2**26
"""Some eight million taps: more is a picture, named by mistake."""
_BETWEEN_NUMBERS = re.compile(r"\s*[,;\t]\s*|\s+")


def read_taps(path: Path) -> NDArray[np.float64]:
    """Read the taps of a filter, (rows, columns), from ``.npy``, ``.csv`` or ``.txt``.

    A single line of text, or an array with one axis, is a row of taps. In text, numbers are separated by commas,
    semicolons, tabs or spaces; empty lines and those that begin with ``#`` are skipped.
    """
    suffix = path.suffix.lower()
    if suffix not in (".npy", *TEXT_SUFFIXES):
        raise InputError(f"{path}: taps are read from .npy, {' or '.join(TEXT_SUFFIXES)}; save them as one of these")
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > _MAX_BYTES:
            raise InputError(f"{path}: has {size} bytes, which is too much for the taps of a filter")
        content = b"" if suffix == ".npy" else os.pread(descriptor, size, 0)
    taps = _read_npy(path) if suffix == ".npy" else _read_text(path, content)
    if taps.ndim == 1:
        taps = taps[np.newaxis]
    if taps.ndim != 2 or taps.size == 0:
        raise InputError(f"{path}: holds an array of shape {taps.shape}; taps are a rectangle of rows and columns")
    if not np.isfinite(taps).all():
        raise InputError(f"{path}: holds NaN or infinite values; taps are finite numbers")
    return taps


def _read_npy(path: Path) -> NDArray[np.float64]:
    stored = open_array(path)
    if stored.dtype.kind not in "buif" or stored.dtype.itemsize > 8:
        raise InputError(f"{path}: holds {stored.dtype}; taps are real numbers of up to 64 bits")
    with np.errstate(invalid="ignore"):  # what is no number is refused later
        return np.array(stored, dtype=np.float64)


def _read_text(path: Path, content: bytes) -> NDArray[np.float64]:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text ({error})") from error
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            rows.append([float(word) for word in _BETWEEN_NUMBERS.split(text)])
        except ValueError:
            raise InputError(f"{path}: line {number} holds something that is no number: {text[:60]}") from None
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"{path}: line {number} has {len(rows[-1])} numbers, the lines before have {len(rows[0])}; "
                "every row of taps has as many columns"
            )
    if not rows:
        raise InputError(f"{path}: holds no numbers; write one row of taps a line")
    return np.array(rows)
