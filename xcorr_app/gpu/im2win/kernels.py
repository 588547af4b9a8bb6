"""Every kernel that convolves with a bank of filters, and what it takes; and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xcorr_app.gpu.im2win.problem import MAX_ELEMENTS, Im2winProblem

_STRIDE_FOR_WINDOW = 9
"""Strides from which the window tensor's neighbouring elements save more than writing them costs: an estimate."""


def form_for(problem: Im2winProblem) -> str:
    """Choose between the kernels that take a window tensor and the images.

    The lanes of a warp read neighbouring columns of the output from the images, `stride` pixels apart, and the same
    lines of the cache again for the next element of the filter. The window tensor costs a pass over it, as many times
    the images as the filters have rows, divided by the stride, and is read in pieces of 32 bytes at any stride.
    """
    tensor_is_small = problem.filter_height <= problem.stride
    return "im2win" if problem.stride >= _STRIDE_FOR_WINDOW and tensor_is_small else "implicit"


def _why_no_window(problem: Im2winProblem) -> str | None:
    if problem.window_elements // problem.images > MAX_ELEMENTS:
        return f"one image's window tensor has more than {MAX_ELEMENTS} elements"
    return None


def _takes_all(_: Im2winProblem) -> str | None:
    return None


WHY_NOT: Mapping[str, Callable[[Im2winProblem], str | None]] = {
    "im2win": _why_no_window,
    "im2win-basic": _why_no_window,
    "implicit-basic": _takes_all,
    "implicit": _takes_all,
}
"""By the name under which a user asks for it: why it does not take a problem; None where it does."""
