"""Every kernel that convolves with a bank of filters, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xcorr_app.gpu.im2win.problem import MAX_ELEMENTS, Im2winProblem


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
