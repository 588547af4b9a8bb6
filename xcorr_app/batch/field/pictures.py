"""Pictures of a displacement field: arrows, and maps of its size, strain and vorticity."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from xcorr_app.registration.field.measured_field import DisplacementField

_INCHES = 7.0


def pictures_of(field: DisplacementField, kind: str) -> dict[str, bytes]:
    """Draw a field as ``png`` or ``svg``; the pictures by the names they have in files."""
    strain = field.strain
    size = np.hypot(field.displacement[..., 0], field.displacement[..., 1])
    maps = {
        "magnitude": (size, "displacement (pixels)", "viridis"),
        "strain_yy": (strain[..., 0], "strain along rows", "RdBu_r"),
        "strain_xx": (strain[..., 1], "strain along columns", "RdBu_r"),
        "strain_xy": (strain[..., 2], "shear strain", "RdBu_r"),
        "vorticity": (field.vorticity, "vorticity, clockwise positive", "RdBu_r"),
    }
    drawn = {"quiver": _drawn(field, kind, partial(_quiver, field, size))}
    for name, (values, title, colours) in maps.items():
        drawn[name] = _drawn(field, kind, partial(_map, field, values, title, colours))
    return drawn


def _drawn(field: DisplacementField, kind: str, draw: Callable[[Figure, Axes], None]) -> bytes:
    height, width = (float(np.ptp(axis)) + 1 for axis in (field.rows, field.columns))
    figure = Figure(figsize=(_INCHES, float(np.clip(_INCHES * height / width, 2.0, 12.0))), dpi=120, layout="tight")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw(figure, axes)
    axes.set_xlabel("column (pixels)")
    axes.set_ylabel("row (pixels)")
    axes.set_aspect("equal")
    content = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    # Names within an SVG come from a salt: without one of its own they differ from run to run.
    with rc_context({"svg.hashsalt": "xcorr"}):
        figure.savefig(content, format=kind, metadata=metadata)
    return content.getvalue()


def _quiver(field: DisplacementField, size: NDArray[np.float64], _figure: Figure, axes: Axes) -> None:
    field.plot(axes)
    largest = float(np.nanmax(size)) if np.isfinite(size).any() else 0.0
    axes.set_title(f"displacement, at most {largest:.3g} pixels; red: replaced by what the neighbours say", fontsize=9)


def _map(
    field: DisplacementField, values: NDArray[np.float64], title: str, colours: str, figure: Figure, axes: Axes
) -> None:
    limits: dict[str, Any] = {}
    known = np.abs(values[np.isfinite(values)])
    if colours == "RdBu_r" and known.size:
        # A few wild points would leave the rest without colour.
        largest = max(float(np.percentile(known, 99)), 1e-12)
        limits = {"vmin": -largest, "vmax": largest}
    half = [float(np.diff(axis).mean()) / 2 if axis.size > 1 else 0.5 for axis in (field.rows, field.columns)]
    extent = (
        field.columns[0] - half[1],
        field.columns[-1] + half[1],
        field.rows[-1] + half[0],
        field.rows[0] - half[0],
    )
    image = axes.imshow(values, cmap=colours, extent=extent, interpolation="nearest", **limits)
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_title(title, fontsize=9)
