"""Engine ``tensor`` with precision ``int8``: exact plain sums of uint8 matrices by products of bytes."""

from __future__ import annotations

import numpy as np

from xcorr_app.correlation.engines.base import Operand
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.direct.kernels import max_pairs
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.tensor.bytes_run import exact_sums

_SUM_BYTES = 256 << 20
"""Whole numbers made at a time: they become float64."""


class ByteCorrelator:
    """The kernel for fixed shapes and a fixed window."""

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow) -> None:
        self._shapes, self._window = (left_shape, right_shape), window

    def left(self, matrices: Array) -> Operand:
        """Keep left matrices ``(..., H, W)`` as they are."""
        return self._kept(matrices, 0)

    def right(self, matrices: Array) -> Operand:
        """Keep right matrices ``(..., H', W')`` as they are."""
        return self._kept(matrices, 1)

    def sums(self, left: Operand, right: Operand) -> Array:
        """Plain sums of every pair, shape ``(N, M, ny, nx)``, float64 that holds whole numbers."""
        xp = array_namespace(left.values)
        lefts = xp.ascontiguousarray(left.values).reshape(-1, *self._shapes[0])
        rights = xp.ascontiguousarray(right.values).reshape(-1, *self._shapes[1])
        sets, per_left = right.values.shape[:2]
        first = (self._window.dy_min, self._window.dx_min)
        problem = Problem(*self._shapes, first, self._window.shape, lefts.shape[0], sets * per_left, per_left)
        planes = xp.empty((problem.pairs, *self._window.shape), np.float64)
        at_once = max(1, _SUM_BYTES // (8 * self._window.shape[0] * self._window.shape[1]))
        for part in problem.parts(min(at_once, max_pairs("combined", problem))):
            these = lefts[part.left : part.left + part.problem.lefts]
            those = rights[part.right : part.right + part.problem.rights]
            planes[part.plane : part.plane + part.problem.pairs] = exact_sums(part.problem, these, those)
        return planes.reshape(lefts.shape[0], per_left, *self._window.shape)

    def _kept(self, matrices: Array, side: int) -> Operand:
        check_bytes(matrices)
        return Operand(matrices, self._shapes[side])


def check_bytes(*matrices: Array) -> None:
    """Refuse matrices that are not of uint8."""
    for stack in matrices:
        if stack.dtype != np.uint8:
            raise DataTypeError(
                f"precision 'int8' multiplies the bytes of uint8 images, these are {stack.dtype}: give uint8 images, "
                "measure them without a prefilter and against a frame, or take another precision"
            )
