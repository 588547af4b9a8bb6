"""Engine ``warp-shuffle``: the project's CUDA kernels, correlation by its definition on the device.

Which kernel runs is decided by shape and batch (:func:`xcorr_app.gpu.correlation_tuning.fastest_variant`); the sums are
float32. See ``kernels/README.md`` for the algorithms and what they reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xcorr_app.correlation.engines.base import Operand
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.arrays import Array
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.correlation_run import correlate_on_device
from xcorr_app.gpu.correlation_tuning import fastest_variant


class WarpShuffleEngine:
    """Plain sums by CUDA kernels."""

    name = "warp-shuffle"

    def unavailable(self, xp: Any) -> str | None:
        """Say that only device arrays are taken."""
        return "it runs on a CUDA device, with CuPy arrays" if xp is np else None

    def bind(
        self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, xp: Any
    ) -> WarpShuffleCorrelator:
        """Return a correlator over the window."""
        return WarpShuffleCorrelator(left_shape, right_shape, window, xp)


class WarpShuffleCorrelator:
    """The kernels for fixed shapes and a fixed window."""

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, xp: Any) -> None:
        self._shapes, self._window, self._xp = (left_shape, right_shape), window, xp

    def left(self, matrices: Array) -> Operand:
        """Keep left matrices ``(..., H, W)`` as they are."""
        return self._kept(matrices, 0)

    def right(self, matrices: Array) -> Operand:
        """Keep right matrices ``(..., H', W')`` as they are."""
        return self._kept(matrices, 1)

    def sums(self, left: Operand, right: Operand) -> Array:
        """Plain sums of every pair, shape ``(N, M, ny, nx)``, float32."""
        lefts = left.values.reshape(-1, *left.shape)
        rights = right.values.reshape(-1, *right.shape)
        per_left = right.values.shape[1]
        problem = Problem(
            left.shape,
            right.shape,
            (self._window.dy_min, self._window.dx_min),
            self._window.shape,
            lefts=lefts.shape[0],
            rights=rights.shape[0],
            rights_per_left=per_left,
        )
        variant = fastest_variant(problem, self._xp.cuda.Device().attributes["MultiProcessorCount"])
        planes = correlate_on_device(lefts, rights, problem, variant)
        return planes.reshape(lefts.shape[0], per_left, *self._window.shape)

    def _kept(self, matrices: Array, side: int) -> Operand:
        if matrices.dtype != np.float32:
            raise DataTypeError(
                f"engine 'warp-shuffle' sums in float32, the matrices are {matrices.dtype}: convert them to float32, "
                "or use engine 'fft'"
            )
        return Operand(matrices, self._shapes[side])
