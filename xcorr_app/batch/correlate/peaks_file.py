"""The peaks of a run to a file: a ``.csv`` with one line a pair, or an ``.npz`` with arrays of the form's shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.io.writing.atomic import atomic_path, atomic_write_text, remove_abandoned
from xcorr_app.report.table import csv_text

COLUMNS = (
    "left", "right", "dy", "dx", "score", "ratio", "peak_dy", "peak_dx", "on_edge",
    "reference_dy", "reference_dx", "difference_px", "problem",
)  # fmt: skip
"""Of the ``.csv``; what does not exist, or was not verified, is empty."""


@dataclass(frozen=True)
class PlaneRecord:
    """What is known of one plane."""

    left: int
    right: int
    """Which images were correlated: their numbers in the files, counted from 0."""
    peak: tuple[int, int] | None
    """Whole shift (dy, dx); None where no shift is valid."""
    shift: tuple[float, float] | None
    value: float
    ratio: float
    """The peak over the highest other local maximum; infinite where none is positive."""
    on_edge: bool
    reference: tuple[float, float] | None
    """Shift by the FFT reference; None where not verified or where it has none."""
    difference: float | None
    """Pixels between the two."""
    problem: str | None
    """Why the plane counts as failed."""


def check_peaks_name(path: Path) -> None:
    """Refuse a name that does not say which kind of file is wanted."""
    if path.suffix.lower() not in (".csv", ".npz"):
        raise ArgumentError(f"{path}: peaks are written as .csv or .npz; choose one by the ending")


def write_peaks(path: Path, records: Sequence[PlaneRecord], shape: tuple[int, ...], facts: dict[str, Any]) -> None:
    """Write the records of all pairs, in their order; `shape` is that of the pairs: (), (M,) or (N, M).

    The ``.npz`` holds ``shift`` and ``peak`` (..., 2), ``score``, ``ratio`` and ``on_edge`` (...), and ``facts``, the
    JSON that planes have in their description.
    """
    remove_abandoned(path)
    if path.suffix.lower() == ".csv":
        atomic_write_text(path, csv_text(COLUMNS, map(_cells, records)))
        return
    nowhere = (0, 0)
    arrays: dict[str, Any] = {
        "shift": np.array([record.shift or (np.nan, np.nan) for record in records]).reshape(*shape, 2),
        "peak": np.array([record.peak or nowhere for record in records], dtype=np.int64).reshape(*shape, 2),
        "score": np.array([record.value for record in records]).reshape(shape),
        "ratio": np.array([record.ratio for record in records]).reshape(shape),
        "on_edge": np.array([record.on_edge for record in records]).reshape(shape),
        "facts": np.array(json.dumps(facts)),
    }
    with atomic_path(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)


def _cells(record: PlaneRecord) -> list[object]:
    """A line of the table."""
    exists = record.peak is not None
    return [
        record.left, record.right, *(record.shift or ("", "")),
        *((record.value, record.ratio) if exists else ("", "")), *(record.peak or ("", "")),
        int(record.on_edge), *(record.reference or ("", "")),
        "" if record.difference is None else record.difference, record.problem or "",
    ]  # fmt: skip
