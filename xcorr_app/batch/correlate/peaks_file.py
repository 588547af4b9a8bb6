"""The peaks of a run to a file: a ``.csv`` with one line a pair, or an ``.npz`` with arrays of the form's shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.io.writing.atomic import atomic_path, atomic_write_text, remove_abandoned
from xcorr_app.registration.results.frame_table import csv_text


class PlaneRecord(NamedTuple):
    """What is known of one plane: the columns of the ``.csv``. What does not exist, or was not verified, is None."""

    left: int
    right: int
    """Which images were correlated: their numbers in the files, counted from 0."""
    dy: float | None
    dx: float | None
    score: float | None
    """Or plain sum."""
    ratio: float | None
    """The peak over the highest other local maximum; infinite where none is positive."""
    peak_dy: int | None
    peak_dx: int | None
    """Whole shift."""
    on_edge: int
    """1 or 0."""
    reference_dy: float | None
    reference_dx: float | None
    """Shift by the FFT reference."""
    difference_px: float | None
    """Between the two."""
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
        atomic_write_text(path, csv_text(PlaneRecord._fields, records))
        return

    def array(*names: str) -> np.ndarray:
        values = np.array([[getattr(record, name) for name in names] for record in records], np.float64)
        return values.reshape(*shape, len(names))

    peak = np.nan_to_num(array("peak_dy", "peak_dx")).astype(np.int64)
    arrays: dict[str, Any] = {"shift": array("dy", "dx"), "peak": peak}
    arrays |= {name: array(name)[..., 0] for name in ("score", "ratio")}
    arrays |= {"on_edge": array("on_edge")[..., 0] > 0, "facts": np.array(json.dumps(facts))}
    with atomic_path(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
