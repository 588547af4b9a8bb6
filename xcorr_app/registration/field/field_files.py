"""Displacement fields in files that other programs read: CSV, NumPy archives, OME-TIFF."""

from __future__ import annotations

import csv
import hashlib
import io
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.registration.results.result_files import write_whole

Floats = NDArray[np.float64]

ENDINGS = {"csv": ".csv", "npz": ".npz", "ome-tiff": ".ome.tif"}
"""Of the names of files, by the name of their format."""


Table = dict[str, NDArray[np.float64]]
"""Every number of every point of a field, (gy, gx) each, by the name it has in files."""
_FLAGS = ("replaced", "masked")
_IN_IMAGES = ("dy", "dx", "sigma_y", "sigma_x", "replaced")


def save(rows: Floats, columns: Floats, values: Table, path: Path) -> None:
    """Write a field, whose points lie at `rows` and `columns`, as `DisplacementField.save` says."""
    kind = next((kind for kind, ending in ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if kind is None:
        raise ArgumentError(f"{path}: fields are written to {', '.join(ENDINGS.values())}")
    write = {"csv": _csv, "npz": _npz, "ome-tiff": _ome_tiff}[kind]
    write_whole(path, write(rows, columns, values))


def _csv(rows: Floats, columns: Floats, values: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", *values])
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            cells = [str(int(of[i, j])) if name in _FLAGS else _shown(of[i, j]) for name, of in values.items()]
            writer.writerow([f"{row:g}", f"{column:g}", *cells])
    return text.getvalue().encode()


def _shown(value: float) -> str:
    """Seven digits, empty where there is no number."""
    return f"{value:.7g}" if np.isfinite(value) else ""


def _npz(rows: Floats, columns: Floats, values: Table) -> bytes:
    content = io.BytesIO()
    arrays: dict[str, Any] = values | {"rows": rows, "columns": columns}
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _ome_tiff(rows: Floats, columns: Floats, values: Table) -> bytes:
    return ome_tiff({name: values[name][None] for name in _IN_IMAGES}, rows, columns)


def ome_tiff(channels: dict[str, Floats], rows: Floats, columns: Floats) -> bytes:
    """Content of an OME-TIFF (float32, axes TCYX) of numbers (T, gy, gx), whose points lie at evenly spread places.

    The size of a pixel is the step of the grid; where its first point lies is said in words. The same numbers give the
    same bytes.
    """
    import tifffile

    data = np.stack(list(channels.values()), axis=1).astype(np.float32)
    # A single window covers all there is.
    steps = [float(np.diff(at).mean()) if at.size > 1 else 2 * float(at[0]) + 1 for at in (rows, columns)]
    described = (
        f"Numbers at points of a grid, in pixels of the images. The first point is at row {rows[0]:g}, column "
        f"{columns[0]:g}; the next ones are {steps[0]:g} rows, {steps[1]:g} columns further."
    )
    identity = uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(described.encode() + data.tobytes()).hexdigest())
    content = io.BytesIO()
    tifffile.imwrite(
        content,
        data,
        ome=True,
        photometric="minisblack",
        metadata={
            "axes": "TCYX",
            "UUID": str(identity),
            "Creator": "xcorr",
            "Name": "displacement field",
            "Description": described,
            "PhysicalSizeY": steps[0],
            "PhysicalSizeYUnit": "pixel",
            "PhysicalSizeX": steps[1],
            "PhysicalSizeXUnit": "pixel",
            "Channel": {"Name": list(channels)},
        },
    )
    return content.getvalue()
