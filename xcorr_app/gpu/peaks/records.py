"""What the kernels find of a peak, on the host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PeakRecords:
    """Peaks of n planes, on the host.

    Attributes
    ----------
    row, column : ndarray of int, shape (n,)
        Of the peak in its plane.
    value : ndarray of float64, shape (n,)
        Its height; NaN where no shift counts.
    rival : ndarray of float64, shape (n,)
        Height of the highest other local maximum at least 3 shifts away; -inf where there is none.
    around : ndarray of float64, shape (n, 5, 5)
        Values around the peak; NaN outside the plane and where a shift does not count. In the outer sixteen also where
        half precision is enough to tell that they are lower than the peak.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: NDArray[np.float64]
    rival: NDArray[np.float64]
    around: NDArray[np.float64]

    @classmethod
    def of(cls, records: Any) -> PeakRecords:
        """Bring what the kernels returned to the host."""
        host: NDArray[np.float64] = records.get()
        row, column = host[:, 0].astype(np.intp), host[:, 1].astype(np.intp)
        return cls(row, column, host[:, 2], host[:, 3], host[:, 4:].reshape(-1, 5, 5))

    def decided(self) -> PeakRecords:
        """Return the records with the rows of those that were marked as undecided as they would be without the mark."""
        return replace(self, row=np.where(self.row < 0, -1 - self.row, self.row))
