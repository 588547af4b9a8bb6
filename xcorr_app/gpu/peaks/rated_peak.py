"""Peaks of planes in device memory, with what lies around each and how the rest of its plane spreads: one launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import dense, empty, placed, to_host
from xcorr_app.gpu.runtime.binder import null_pointer, start
from xcorr_app.gpu.runtime.launch import Launch

RATED_RECORD = 49
"""Doubles that the kernel writes for a plane."""
_THREADS = 256
_SHARED_BYTES = 16 * (_THREADS // 32)


@dataclass(frozen=True)
class RatedPeaks:
    """What the kernel finds in n planes, on the host; see ``kernels/peaks/rated_peak.cu``.

    `medians` (n, 2, 4) are, of the plane and of its inverse hyperbolic tangent, the median away from the peak, the
    median distance from it, and the median steps down and across; `transformed` (n,) is that tangent at the peak.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: NDArray[np.float64]
    rival: NDArray[np.float64]
    climbs: NDArray[np.bool_]
    samples: NDArray[np.int64]
    around: NDArray[np.float64]
    near: NDArray[np.float64]
    medians: NDArray[np.float64]
    transformed: NDArray[np.float64]

    @classmethod
    def of(cls, records: NDArray[np.float64]) -> RatedPeaks:
        """Take records (n, RATED_RECORD) apart."""
        row, column, samples = (records[:, i].astype(np.intp) for i in (0, 1, 5))
        around, near = records[:, 6:31].reshape(-1, 5, 5), records[:, 31:40].reshape(-1, 3, 3)
        medians = records[:, 40:48].reshape(-1, 2, 4)
        climbs = records[:, 4] > 0
        return cls(row, column, records[:, 2], records[:, 3], climbs, samples, around, near, medians, records[:, 48])


def rated_peak_launch(planes: int, *, fisher: bool, rate: bool = True) -> Launch:
    """Choose the launch for so many planes; `fisher` says whether they are scores, to be transformed too.

    Without `rate` the medians are left out.
    """
    return Launch("peaks/rated_peak", {"FISHER": int(fisher), "RATE": int(rate)}, planes, _THREADS, _SHARED_BYTES)


def rate_peaks(
    planes: Any,
    scores: Any,
    box: tuple[slice, slice],
    strides: tuple[int, int],
    tied: NDArray[np.integer] | None,
    zero: tuple[int, int] | None,
    *,
    fisher: bool,
    rate: bool = True,
) -> RatedPeaks:
    """Find and rate the peaks of planes (n, ny, nx) within a box; `scores` are as large, or larger on every side.

    `tied` (n, 2) are elements that take the place of a peak where the plane is as high there; without them, of equal
    elements that nearest to `zero` does, where that is given. Without `rate` the medians are NaN.
    """
    count, height, width = planes.shape
    planes, scores = (dense(each, dtype=np.float64) for each in (planes, scores))
    records = empty((count, RATED_RECORD))
    workspace = empty(planes.shape) if fisher else null_pointer()
    of_planes = null_pointer() if tied is None else placed(np.ascontiguousarray(tied, dtype=np.int32))
    (top, left), (rows, columns) = (s.start for s in box), (s.stop - s.start for s in box)
    numbers = (
        height,
        width,
        (scores.shape[1] - height) // 2,
        top,
        left,
        rows,
        columns,
        *strides,
        *_ties(tied, zero),
    )
    launch = rated_peak_launch(count, fisher=fisher, rate=rate)
    start(launch, (planes, scores, of_planes, workspace, records), numbers)
    return RatedPeaks.of(to_host(records))


def _ties(tied: NDArray[np.integer] | None, zero: tuple[int, int] | None) -> tuple[int, int, int]:
    """How the kernel decides between equal elements, and to which row and column the nearest is meant."""
    if tied is not None:
        return 1, 0, 0
    return (0, 0, 0) if zero is None else (2, *zero)
