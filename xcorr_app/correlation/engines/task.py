"""What an engine will be asked to do, as far as the choice between engines needs to know it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem


def window_of(problem: Problem) -> ShiftWindow:
    """Return the window of shifts of a kernel's problem."""
    (dy, dx), (rows, columns) = problem.first_shift, problem.plane_shape
    return ShiftWindow(dy, dy + rows - 1, dx, dx + columns - 1)


@dataclass(frozen=True)
class Task:
    """Shapes, window, pairing and precision of a batch of correlations.

    Parameters
    ----------
    left_shape, right_shape : (int, int)
        Rows and columns of one matrix.
    window : ShiftWindow
    dtype : numpy.dtype
        Precision of the planes: float32 or float64.
    lefts, rights, rights_per_left : int
        Number of left matrices, of right matrices, and of rights that each left meets.
    """

    left_shape: tuple[int, int]
    right_shape: tuple[int, int]
    window: ShiftWindow
    dtype: np.dtype[np.floating]
    lefts: int = 1
    rights: int = 1
    rights_per_left: int = 1

    @property
    def problem(self) -> Problem:
        """The same in the terms of the kernels."""
        return Problem(
            self.left_shape,
            self.right_shape,
            (self.window.dy_min, self.window.dx_min),
            self.window.shape,
            self.lefts,
            self.rights,
            self.rights_per_left,
        )
