"""Mean, standard deviation, kymograph and thumbnails of a stack, gathered frame by frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.report.records import Pictures

_BAND = 5
"""Rows in the middle of the frame that a kymograph averages."""
_MAX_THUMBNAILS = 24


class Projections:
    """Running sums over frames before and after they are moved, and thumbnails of the first few of those flagged."""

    def __init__(self, count: int, shape: tuple[int, int], flagged: list[int]) -> None:
        self._before, self._after = _Sums(count, shape), _Sums(count, shape)
        self._wanted = frozenset(flagged[:_MAX_THUMBNAILS])
        self._thumbnails: dict[int, NDArray[np.generic]] = {}

    def add(
        self, frame: int, before: NDArray[np.generic], after: NDArray[np.generic], covered: tuple[slice, slice]
    ) -> None:
        """Take in one frame as it was and as it is written; `covered` is the part that holds moved pixels."""
        everything = slice(0, before.shape[0]), slice(0, before.shape[1])
        self._before.add(frame, before, everything)
        self._after.add(frame, after, covered)
        if frame in self._wanted:
            self._thumbnails[frame] = before.copy()

    def pictures(self) -> Pictures:
        """What a report shows, reduced to the size it is shown at."""
        before, after = self._before, self._after
        return Pictures(
            mean_before=before.mean(),
            mean_after=after.mean(),
            std_before=before.deviation(),
            std_after=after.deviation(),
            kymograph_before=before.kymograph,
            kymograph_after=after.kymograph,
            thumbnails=self._thumbnails,
        ).shrunk()


class _Sums:
    """Sums of values, of their squares and of how many there are, pixel by pixel."""

    def __init__(self, count: int, shape: tuple[int, int]) -> None:
        self._sum, self._squares = np.zeros(shape), np.zeros(shape)
        self._number = np.zeros(shape, dtype=np.int32)
        middle = shape[0] // 2
        self._band = slice(max(0, middle - _BAND // 2), min(shape[0], middle + _BAND // 2 + 1))
        self.kymograph = np.full((count, shape[1]), np.nan, dtype=np.float32)

    def add(self, frame: int, image: NDArray[np.generic], covered: tuple[slice, slice]) -> None:
        values = image[covered].astype(np.float64)
        if image.dtype.kind == "f":
            finite = np.isfinite(values)
            values[~finite] = 0.0
            self._number[covered] += finite
        else:
            self._number[covered] += 1
        # Values near the limit of float64 may overflow: a picture is for looking at only.
        with np.errstate(over="ignore", invalid="ignore"):
            band = image[self._band, covered[1]]
            if band.size and covered[0].start <= self._band.start and self._band.stop <= covered[0].stop:
                self.kymograph[frame, covered[1]] = band.mean(axis=0, dtype=np.float64)
            self._sum[covered] += values
            np.multiply(values, values, out=values)
            self._squares[covered] += values

    def mean(self) -> NDArray[np.float32]:
        """NaN where no frame has a value."""
        return self._where_any(self._sum / np.maximum(self._number, 1))

    def deviation(self) -> NDArray[np.float32]:
        """NaN where no frame has a value."""
        number = np.maximum(self._number, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = self._squares / number - (self._sum / number) ** 2
            return self._where_any(np.sqrt(np.maximum(variance, 0.0)))

    def _where_any(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self._number > 0, values, np.nan).astype(np.float32)
