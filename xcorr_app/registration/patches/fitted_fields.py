"""The fields of a chunk of frames and what is known of their patches, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.patches.field_fit import FieldFit
from xcorr_app.registration.patches.patch_match import Matched

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FittedFields:
    """One entry a frame; NaN of frames that could not be measured."""

    field: Floats
    """(T, 2, gy, gx) rows, columns in pixels from a pixel of the reference to the place in the frame that shows it."""
    sigma: Floats
    """(T, 2, gy, gx) standard errors in pixels."""
    score: Floats
    """(T,)"""
    trusted: NDArray[np.bool_]
    """(T, n) whether each patch by itself was found where its neighbours are."""
    significance: Floats
    """(T, n)"""
    typical: Floats
    """(T, 3) median standard error, and those along rows and columns."""
    mean: Floats
    """(T, 2) of the field."""

    @classmethod
    def of(cls, fits: Sequence[FieldFit], matches: Sequence[Matched]) -> FittedFields:
        """Put frames together that were measured one by one."""
        field, sigma = np.stack([fit.field for fit in fits]), np.stack([fit.sigma for fit in fits])
        errors = sigma.reshape(len(fits), 2, -1)
        return cls(
            field,
            sigma,
            np.array([fit.score for fit in fits]),
            np.stack([match.trusted for match in matches]),
            np.stack([match.significance for match in matches]),
            np.column_stack([np.median(errors, axis=(1, 2)), np.median(errors, axis=2)]),
            field.mean(axis=(2, 3)),
        )

    @classmethod
    def nothing(cls, count: int, nodes: tuple[int, int], patches: int) -> FittedFields:
        """Frames that could not be measured."""
        shapes: list[tuple[int, ...]] = [(2, *nodes), (2, *nodes), (), (patches,), (patches,), (3,), (2,)]
        arrays = [np.full((count, *shape), np.nan) for shape in shapes]
        arrays[3] = np.zeros((count, patches), dtype=bool)
        return cls(*arrays)

    def among(self, count: int, numbers: NDArray[np.intp]) -> FittedFields:
        """Put frames into their places (t,) among `count`, of which the others could not be measured."""
        whole = self.nothing(count, (self.field.shape[2], self.field.shape[3]), self.trusted.shape[1])
        for name, values in vars(self).items():
            getattr(whole, name)[numbers] = values
        return whole

    @classmethod
    def joined(cls, parts: Sequence[FittedFields]) -> FittedFields:
        """Chunks one after the other."""
        return (
            parts[0]
            if len(parts) == 1
            else cls(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))
        )
