"""A displacement field on a grid: what was measured, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.field.field_files import save
from xcorr_app.shown import axes_of, html_table

Floats = NDArray[np.float64]
_MAX_ARROWS = 40
"""Arrows along the longer side; of more, every second, third ... is drawn."""


@dataclass(frozen=True, eq=False, repr=False)
class DisplacementField:
    """Displacement at every point of a grid and what can be said about it. NumPy arrays."""

    rows: Floats
    """(gy,) row of the points, the middles of their windows, in pixels counted from the first."""
    columns: Floats
    """(gx,) column of the points."""
    displacement: Floats
    """(gy, gx, 2) rows, columns in pixels by which the second image shows displaced what the first shows there; NaN
    where masked. Where `replaced`, what its neighbours say."""
    sigma: Floats
    """(gy, gx, 2) standard errors in pixels, for noise that is independent from pixel to pixel; NaN where replaced."""
    score: Floats
    """(gy, gx) zero-mean normalised correlation of the windows as last compared."""
    significance: Floats
    """(gy, gx) height of the peak in standard deviations of its plane; NaN where not known."""
    replaced: NDArray[np.bool_]
    """(gy, gx) whether the measured vector was not trusted and its neighbours took its place."""
    masked: NDArray[np.bool_]
    """(gy, gx) whether there was too little to see."""
    notes: tuple[str, ...] = ()

    @property
    def slopes(self) -> Floats:
        """(gy, gx, 2, 2) of the displacement's component (first index: rows, columns) along rows and columns."""
        return slopes_of(self.displacement, self.rows, self.columns)

    @property
    def strain(self) -> Floats:
        """(gy, gx, 3) small strains: along rows, along columns, shear (half the sum of the mixed slopes)."""
        slopes = self.slopes
        shear = (slopes[..., 0, 1] + slopes[..., 1, 0]) / 2
        return np.stack([slopes[..., 0, 0], slopes[..., 1, 1], shear], axis=-1)

    @property
    def vorticity(self) -> Floats:
        """(gy, gx) twice the rate of turning, from columns towards rows: clockwise as displayed is positive."""
        slopes = self.slopes
        return np.asarray(slopes[..., 0, 1] - slopes[..., 1, 0])

    def __len__(self) -> int:
        return self.replaced.size

    def __repr__(self) -> str:
        return f"DisplacementField({self.summary()})"

    def _repr_html_(self) -> str:
        size, sigma = (np.linalg.norm(each, axis=2).ravel() for each in (self.displacement, self.sigma))
        figures = {"displacement (px)": size, "standard error (px)": sigma, "score": self.score.ravel()}
        known = [values[np.isfinite(values)] for values in figures.values()]
        columns = {
            f"{share} %": [f"{np.percentile(values, share):.3f}" if values.size else "" for values in known]
            for share in (5, 50, 95)
        }
        return html_table(repr(self), {"share of points below": list(figures), **columns})

    def summary(self) -> str:
        """Say in a line how many points there are, how many were not trusted, and how large the displacement is."""
        size = np.hypot(*np.moveaxis(self.displacement, 2, 0))
        largest = f", largest displacement {np.nanmax(size):.2f} px" if np.isfinite(size).any() else ""
        rows, columns = self.replaced.shape
        return f"{rows} x {columns} points, {self.replaced.sum()} replaced, {self.masked.sum()} masked{largest}"

    def plot(self, axes: Any = None) -> Any:
        """Draw arrows on the grid, red where they are what neighbours say; returns the axes of matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; without, in a new figure.
        """
        axes = axes_of(axes)
        every = max(1, int(np.ceil(max(self.replaced.shape) / _MAX_ARROWS)))
        part = slice(None, None, every), slice(None, None, every)
        y, x = np.meshgrid(self.rows[part[0]], self.columns[part[1]], indexing="ij")
        vectors, replaced = self.displacement[part], self.replaced[part]
        for chosen, colour, label in ((~replaced, "#1d3557", "measured"), (replaced, "#d1495b", "replaced")):
            shown = chosen & np.isfinite(vectors).all(axis=2)
            if shown.any():
                across, down = vectors[shown][:, 1], vectors[shown][:, 0]
                axes.quiver(x[shown], y[shown], across, down, color=colour, angles="xy", label=label)
        half = max(float(grid[1] - grid[0]) if len(grid) > 1 else 2.0 for grid in (self.rows, self.columns)) / 2
        axes.set(
            xlabel="column (pixels)",
            ylabel="row (pixels)",
            aspect="equal",
            xlim=(float(self.columns[0]) - half, float(self.columns[-1]) + half),
            ylim=(float(self.rows[-1]) + half, float(self.rows[0]) - half),
        )
        return axes

    def save(self, path: Path | str) -> None:
        """Write the field to a file, which is replaced if it exists.

        By the ending of its name: ``.csv``, ``.npz`` or ``.ome.tif``
        (OME-TIFF of the channels dy, dx, sigma_y, sigma_x and replaced, whose pixel is the step of the grid).

        Raises
        ------
        ArgumentError
            The name ends in none of them.
        OutputError
            The file cannot be written.
        """
        strain = self.strain
        values = {
            "dy": self.displacement[..., 0],
            "dx": self.displacement[..., 1],
            "sigma_y": self.sigma[..., 0],
            "sigma_x": self.sigma[..., 1],
            "score": self.score,
            "significance": self.significance,
            "strain_yy": strain[..., 0],
            "strain_xx": strain[..., 1],
            "strain_xy": strain[..., 2],
            "vorticity": self.vorticity,
            "replaced": self.replaced.astype(np.float64),
            "masked": self.masked.astype(np.float64),
        }
        save(self.rows, self.columns, values, Path(path))


def slopes_of(values: Floats, rows: Floats, columns: Floats) -> Floats:
    """Slopes (gy, gx, 2, 2) of values (gy, gx, 2) along rows and columns; zero along an axis of one point."""
    found = np.zeros((*values.shape, 2))
    for axis, places in ((0, rows), (1, columns)):
        if places.size > 1:
            found[..., axis] = np.gradient(values, places, axis=axis)
    return found
