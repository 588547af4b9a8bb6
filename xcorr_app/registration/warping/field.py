"""A field of shifts for every frame: values at the nodes of a grid that spans the frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.results.doubtful_frames import applied_shifts
from xcorr_app.registration.warping.grid import pixel_bases
from xcorr_app.registration.warping.warp import at_every_pixel

_DECIMALS = 6
"""Of a pixel, that frames are moved by: those of the tables, so that whoever moves by a file moves alike."""


@dataclass(frozen=True, eq=False)
class Field:
    """What was found at each node: the middles of the patches, and the edges of the frame."""

    rows: NDArray[np.float64]
    """(gy,) row of the nodes in pixels, counted from the first."""
    columns: NDArray[np.float64]
    """(gx,) column of the nodes."""
    shifts: NDArray[np.float64]
    """(T, gy, gx, 2) rows, columns in pixels to add to the frame there to land on the reference; NaN of frames that
    have none. Between the nodes it is the cubic spline through them."""
    sigma: NDArray[np.float64]
    """(T, gy, gx, 2) standard errors in pixels."""
    trusted: NDArray[np.bool_]
    """(T, gy, gx) whether the patch by itself was found where its neighbours are; at an edge, the nearest patch."""
    significance: NDArray[np.float64]
    """(T, gy, gx) height of the patch's peak in standard deviations of its plane; NaN where not known."""

    def at_pixels(self, frame: int, shape: tuple[int, int]) -> NDArray[np.float64]:
        """Shifts (Y, X, 2) of a frame at every pixel."""
        bases = pixel_bases(self.rows, self.columns, shape)
        return np.moveaxis(at_every_pixel(np.moveaxis(self.shifts[frame], 2, 0), bases), 0, 2)

    def scaled(self, factor: float) -> Field:
        """Return the field of the same frames with pixels `factor` times as many: 0.5 where 2 x 2 were binned."""
        # Pixels are squares: the middle of the first is half a pixel from the edge.
        rows, columns = ((nodes + 0.5) * factor - 0.5 for nodes in (self.rows, self.columns))
        return replace(self, rows=rows, columns=columns, shifts=self.shifts * factor, sigma=self.sigma * factor)

    def applied(self, taken: NDArray[np.bool_], policy: str) -> NDArray[np.float64]:
        """Shifts (T, gy, gx, 2) to move by: those of frames not `taken` (T,) replaced as `ShiftResult.applied` does."""
        shifts = applied_shifts(self.shifts.reshape(len(self.shifts), -1), taken, policy)
        return np.round(shifts.reshape(self.shifts.shape), _DECIMALS)
