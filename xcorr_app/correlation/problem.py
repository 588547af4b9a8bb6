"""From shapes and windows to the terms of the kernels, and back."""

from __future__ import annotations

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem


def problem_of(
    left_shape: tuple[int, int],
    right_shape: tuple[int, int],
    window: ShiftWindow,
    lefts: int = 1,
    rights: int = 1,
    rights_per_left: int = 1,
) -> Problem:
    """Return what a batch of correlations over a window asks of the kernels."""
    first = window.dy_min, window.dx_min
    return Problem(left_shape, right_shape, first, window.shape, lefts, rights, rights_per_left)


def window_of(problem: Problem) -> ShiftWindow:
    """Return the window of shifts of a kernel's problem."""
    (dy, dx), (rows, columns) = problem.first_shift, problem.plane_shape
    return ShiftWindow(dy, dy + rows - 1, dx, dx + columns - 1)
