"""What moves the frames of a stack: shifts, matrices or fields, of those frames that are not left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.warping.matrices import about_middle
from xcorr_app.registration.warping.warp import ByFields, ByMatrices, Warp


@dataclass(frozen=True, eq=False)
class Moves:
    """Of every frame of one stack."""

    shifts: NDArray[np.float64]
    """(T, 2) pixels to add; NaN of frames that are left out."""
    matched: str
    """How frames found their shifts, in words."""
    largest: float
    """Pixels that a frame, its middle where it turns, or a part of it is moved by; NaN where none is."""
    warp: Warp | None = None
    """Warps frames that do not move as a whole; `shifts` only say then which are left out."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(T,) which frames are not left out."""
        return np.asarray(np.isfinite(self.shifts).all(axis=1))


def of_table(moves: NDArray[np.float64], matched: str, shape: tuple[int, int]) -> Moves:
    """By shifts (T, 2) or matrices (T, 3, 3), NaN where there is none, of frames of a shape."""
    if moves.ndim == 2:
        return Moves(moves, matched, _largest(moves))
    middles = np.stack([about_middle(matrix, shape)[:2, 2] for matrix in moves])
    return Moves(-moves[:, :2, 2], matched, _largest(middles), ByMatrices(moves))


def of_fields(result: MotionResult, scale: float, count: int, shape: tuple[int, int]) -> Moves:
    """By the fields of a measurement, for a stack of `count` frames of a shape, `scale` times that of those measured.

    Raises ShapeError where it is of another stack.
    """
    field = result.field
    assert field is not None  # noqa: S101 - the caller looked
    if len(field.shifts) != count:
        raise ShapeError(f"it has the fields of {len(field.shifts)} frames, the stack {count}")
    if any(abs(scale * before - now) >= 1 for before, now in zip(result.shape, shape, strict=True)):
        rows, columns = result.shape
        raise ShapeError(f"its fields are of frames of {rows} x {columns}, these have {shape[0]} x {shape[1]}; --scale")
    field = field.scaled(scale)
    applied = field.applied(result.trusted, result.doubtful)
    warp = ByFields(applied, field.rows, field.columns)
    return Moves(applied.mean(axis=(1, 2)), "by frame number", _largest(applied.reshape(-1, 2)), warp)


def _largest(shifts: NDArray[np.float64]) -> float:
    lengths = np.hypot(*shifts.T)
    return float(np.nanmax(lengths)) if np.isfinite(lengths).any() else math.nan
