"""Tables of frames: dataclasses whose arrays have one entry a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp] | NDArray[np.bool_] | slice


class Columns:
    """Base of such dataclasses; what is no array is of all frames together."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Columns by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of all frames, part after part."""
        return cls(**{name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays})

    def of(self, rows: Rows) -> Self:
        """Those of some of the frames."""
        return replace(self, **{name: values[rows] for name, values in self.arrays.items()})  # type: ignore[type-var]

    def put(self, rows: Rows, other: Self) -> None:
        """Write those of `other` into these rows."""
        for name, values in other.arrays.items():
            getattr(self, name)[rows] = values

    def where(self, taken: NDArray[np.bool_], new: Mapping[str, NDArray[Any]]) -> Self:
        """Take frames (T,) from new columns; those that are not here stay away."""
        found = {
            name: np.where(taken.reshape(-1, *(1,) * (values.ndim - 1)), new[name], values)
            for name, values in self.arrays.items()
            if name in new
        }
        return replace(self, **found)  # type: ignore[type-var]


@dataclass(frozen=True)
class FineShifts(Columns):
    """Shifts of n frames that were refined, and their standard errors, in pixels; NaN where there is none."""

    shift: NDArray[np.float64]
    """(n, 2)"""
    sigma: NDArray[np.float64]
    """(n, 2)"""

    @classmethod
    def empty(cls, count: int) -> FineShifts:
        """Nothing found yet of `count` frames."""
        return cls(*np.full((2, count, 2), np.nan))
