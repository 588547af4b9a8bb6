"""Displacement fields as images that viewers open: a pixel for each point of the grid, a channel for each number."""

from __future__ import annotations

import hashlib
import io
import uuid
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ENDING = ".ome.tif"
_UNITS = {"nm", "µm", "mm", "cm", "m", "Å"}
"""Of lengths, that OME-XML knows and images come with."""


@dataclass(frozen=True)
class PixelSize:
    """Of the images that were measured."""

    rows: float = 1.0
    columns: float = 1.0
    unit: str = "pixel"

    @classmethod
    def of(cls, size: tuple[float, float] | None, unit: str | None) -> PixelSize:
        """Of a file; counted in pixels where it does not say, or in a unit that OME-XML does not know."""
        return cls(*size, unit) if size is not None and unit in _UNITS else cls()


def ome_tiff(channels: dict[str, Floats], rows: Floats, columns: Floats, size: PixelSize | None = None) -> bytes:
    """Content of an OME-TIFF (float32, axes TCYX) of numbers (T, gy, gx), whose points lie at evenly spread places.

    The size of a pixel is the step of the grid; where its first point lies is said in words. The same numbers give the
    same bytes.
    """
    import tifffile

    size = size or PixelSize()
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
            "PhysicalSizeY": steps[0] * size.rows,
            "PhysicalSizeYUnit": size.unit,
            "PhysicalSizeX": steps[1] * size.columns,
            "PhysicalSizeXUnit": size.unit,
            "Channel": {"Name": list(channels)},
        },
    )
    return content.getvalue()
