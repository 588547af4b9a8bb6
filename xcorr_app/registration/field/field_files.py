"""Displacement fields in files that other programs read: CSV, NumPy archives, OME-TIFF."""

from __future__ import annotations

import hashlib
import io
import math
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.registration.results.frame_table import csv_text
from xcorr_app.registration.results.result_files import write_whole

Floats = NDArray[np.float64]

ENDINGS = {"csv": ".csv", "npz": ".npz", "ome-tiff": ".ome.tif"}
"""Of the names of files, by the name of their format."""


Table = dict[str, NDArray[np.float64]]
"""Every number of every point of a field, (gy, gx) each, by the name it has in files."""
_IN_IMAGES = ("dy", "dx", "sigma_y", "sigma_x", "replaced")


def save(rows: Floats, columns: Floats, values: Table, path: Path) -> None:
    """Write a field, whose points lie at `rows` and `columns`, as `DisplacementField.save` says."""
    kind = next((kind for kind, ending in ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if kind is None:
        raise ArgumentError(f"{path}: fields are written to {', '.join(ENDINGS.values())}")
    write = {"csv": _csv, "npz": _npz, "ome-tiff": _ome_tiff}[kind]
    write_whole(path, write(rows, columns, values))


def _csv(rows: Floats, columns: Floats, values: Table) -> bytes:
    table = np.stack([*np.meshgrid(rows, columns, indexing="ij"), *values.values()], axis=-1)
    lines = table.reshape(-1, table.shape[-1]).tolist()
    # Seven digits, empty where there is no number.
    cells = ([f"{value:.7g}" if math.isfinite(value) else "" for value in line] for line in lines)
    return csv_text(["row", "column", *values], cells).encode()


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
