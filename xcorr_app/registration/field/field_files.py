"""Displacement fields in files that other programs read: CSV, VTK legacy text, NetCDF 3, NumPy archives, OME-TIFF."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.registration.field.field_image import ENDING, ome_tiff
from xcorr_app.registration.results.result_files import write_whole

ENDINGS = {"csv": ".csv", "vtk": ".vtk", "nc": ".nc", "npz": ".npz", "ome-tiff": ENDING}
"""Of the names of files, by the name of their format."""


class FieldTable(NamedTuple):
    """Every number of every point of a field, (gy, gx) each, by the name it has in files; and where the points are."""

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]


def save(field: FieldTable, path: Path) -> None:
    """Write a field as `DisplacementField.save` says."""
    kind = next((kind for kind, ending in ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if kind is None:
        raise ArgumentError(f"{path}: fields are written to {', '.join(ENDINGS.values())}")
    write = {"csv": _csv, "vtk": _vtk, "nc": _netcdf, "npz": _npz, "ome-tiff": _ome_tiff}[kind]
    write_whole(path, write(field))


_UNITS = {"dy": "pixel", "dx": "pixel", "sigma_y": "pixel", "sigma_x": "pixel"}
_FLAGS = ("replaced", "masked")


def _csv(field: FieldTable) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", *field.values])
    for i, row in enumerate(field.rows):
        for j, column in enumerate(field.columns):
            values = [
                str(int(values[i, j])) if name in _FLAGS else _shown(values[i, j])
                for name, values in field.values.items()
            ]
            writer.writerow([f"{row:g}", f"{column:g}", *values])
    return text.getvalue().encode()


def _shown(value: float) -> str:
    """Seven digits, empty where there is no number."""
    return f"{value:.7g}" if np.isfinite(value) else ""


def _vtk(field: FieldTable) -> bytes:
    """A rectilinear grid; x are columns, y rows, which VTK draws upwards."""
    width, height = field.columns.size, field.rows.size
    lines = ["# vtk DataFile Version 3.0", "displacement in pixels, y downwards", "ASCII", "DATASET RECTILINEAR_GRID"]
    lines.append(f"DIMENSIONS {width} {height} 1")
    for axis, places in (("X", field.columns), ("Y", field.rows), ("Z", np.zeros(1))):
        lines += [f"{axis}_COORDINATES {places.size} double", " ".join(f"{place:g}" for place in places)]
    lines += [f"POINT_DATA {width * height}", "VECTORS displacement double"]
    lines += [f"{x:.7g} {y:.7g} 0" for y, x in zip(field.values["dy"].flat, field.values["dx"].flat, strict=True)]
    for name, values in field.values.items():
        if name not in ("dy", "dx"):
            lines += [f"SCALARS {name} double 1", "LOOKUP_TABLE default", *(f"{value:.7g}" for value in values.ravel())]
    return ("\n".join(lines) + "\n").encode()


def _netcdf(field: FieldTable) -> bytes:
    from scipy.io import netcdf_file

    content = io.BytesIO()
    content.close, close = lambda: None, content.close  # type: ignore[method-assign]  # the writer closes what it wrote
    file = netcdf_file(content, "w", version=1)
    for name, places in (("row", field.rows), ("column", field.columns)):
        file.createDimension(name, places.size)
        variable = file.createVariable(name, "d", (name,))
        variable[:] = places
        variable.units = "pixel"
    for name, values in field.values.items():
        variable = file.createVariable(name, "d", ("row", "column"))
        variable[:] = values
        variable.units = _UNITS.get(name, "1")
    file.flush()
    data = content.getvalue()
    file.close()
    close()
    return data


def _npz(field: FieldTable) -> bytes:
    content = io.BytesIO()
    arrays: dict[str, Any] = field.values | {"rows": field.rows, "columns": field.columns}
    np.savez_compressed(content, **arrays)
    return content.getvalue()


_IN_IMAGES = ("dy", "dx", "sigma_y", "sigma_x", "replaced")


def _ome_tiff(field: FieldTable) -> bytes:
    return ome_tiff({name: field.values[name][None] for name in _IN_IMAGES}, field.rows, field.columns)
