"""The result of a measurement of patches, put together from fields and the shifts of whole frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration import quality
from xcorr_app.registration.motion.models import PATCHES
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.patches.fitted_fields import FittedFields
from xcorr_app.registration.patches.patch_references import NO_MATTER
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.grid import Grid, with_edges

_FEWEST_TRUSTED = 1 / 3
"""Share of trusted patches below which a frame is uncertain."""


@dataclass(frozen=True)
class RigidShifts:
    """Shifts of whole frames."""

    shifts: NDArray[np.float64]
    flags: tuple[tuple[str, ...], ...]
    reference: str
    notes: tuple[str, ...]
    unreadable: dict[int, str]


def result_of(
    found: FittedFields, rigid: RigidShifts, grid: Grid, shape: tuple[int, int], max_sigma: float
) -> MotionResult:
    """What `estimate_motion` returns of patches of frames of a shape."""
    count = len(found.field)
    # At an edge, the nearest patch.
    spread = [np.abs(with_edges(axis)[:, None] - axis.middles).argmin(axis=1) for axis in (grid.rows, grid.columns)]
    of_nodes = np.add.outer(spread[0] * grid.shape[1], spread[1])
    measured = np.isfinite(found.field[:, 0, 0, 0])
    with np.errstate(invalid="ignore"):
        sure = (found.typical[:, 0] <= max_sigma) & (found.trusted.mean(axis=1) >= _FEWEST_TRUSTED)
    doubtful = ~(measured & sure)
    flags = []
    for words, doubt, known in zip(rigid.flags, doubtful.tolist(), measured.tolist(), strict=True):
        kept = tuple(word for word in words if word not in NO_MATTER) if words else words
        flags.append((*kept, quality.UNCERTAIN) if doubt and (known or not kept) else kept)
    matrices = np.tile(np.eye(3), (count, 1, 1))
    matrices[~measured] = np.nan
    matrices[measured, :2, 2] = found.mean[measured]
    overlap = np.prod(np.clip(1 - np.abs(found.mean) / np.array(shape), 0, 1), axis=1)
    field = Field(
        with_edges(grid.rows),
        with_edges(grid.columns),
        -np.moveaxis(found.field, 1, 3),
        np.moveaxis(found.sigma, 1, 3),
        found.trusted[:, of_nodes],
        found.significance[:, of_nodes],
    )
    return MotionResult(
        model=PATCHES,
        matrices=matrices,
        score=found.score,
        sigma=found.typical[:, 1:],
        sigma_angle=np.zeros(count),
        overlap=np.nan_to_num(overlap),
        flags=tuple(flags),
        shape=shape,
        reference=rigid.reference,
        unreadable=rigid.unreadable,
        notes=rigid.notes,
        field=field,
    )
