"""Every kernel that convolves with a bank of filters: what it takes, its launch; and the choice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from xcorr_app.gpu.im2win import launches
from xcorr_app.gpu.im2win.problem import MAX_ELEMENTS, Im2winProblem
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import Launch, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits

_STRIDE_FOR_WINDOW = 9
"""Strides from which the window tensor's neighbouring elements save more than writing them costs: an estimate."""
Tuning = Mapping[str, int] | None


def form_for(problem: Im2winProblem) -> str:
    """Choose between the kernels that take a window tensor and the images.

    The lanes of a warp read neighbouring columns of the output from the images, `stride` pixels apart, and the same
    lines of the cache again for the next element of the filter. The window tensor costs a pass over it, as many times
    the images as the filters have rows, divided by the stride, and is read in pieces of 32 bytes at any stride.
    """
    tensor_is_small = problem.filter_height <= problem.stride
    return "im2win" if problem.stride >= _STRIDE_FOR_WINDOW and tensor_is_small else "implicit"


def _why_no_window(problem: Im2winProblem, _: DeviceLimits) -> str | None:
    if problem.window_elements // problem.images > MAX_ELEMENTS:
        return f"one image's window tensor has more than {MAX_ELEMENTS} elements"
    return None


def _basic_launch(problem: Im2winProblem, _: DeviceLimits, tuning: Tuning = None, *, implicit: bool = False) -> Launch:
    refuse_unknown("a thread a result", tuning or (), ())
    return launches.basic_launch(problem, implicit=implicit)


def _product_launch(
    problem: Im2winProblem, limits: DeviceLimits, tuning: Tuning = None, *, implicit: bool = False
) -> Launch:
    return launches.convolve_launch(problem, implicit=implicit, device=limits, tuning=tuning)


_PRODUCT = ("im2win/im2win_filters", "im2win/im2win_convolve", "im2win/add_segments")

KERNELS: Mapping[str, KernelEntry[Im2winProblem]] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "im2win",
            ("im2win/im2win_transform", *_PRODUCT),
            _why_no_window,
            _product_launch,
            tunables=launches.TUNABLES,
        ),
        KernelEntry(
            "im2win-basic",
            ("im2win/im2win_transform", "im2win/im2win_filters", "im2win/im2win_basic"),
            _why_no_window,
            _basic_launch,
        ),
        KernelEntry(
            "implicit-basic",
            ("im2win/im2win_pad", "im2win/im2win_filters", "im2win/im2win_basic"),
            lambda *_: None,
            partial(_basic_launch, implicit=True),
        ),
        KernelEntry(
            "implicit",
            ("im2win/im2win_pad", *_PRODUCT),
            lambda *_: None,
            partial(_product_launch, implicit=True),
            tunables=launches.TUNABLES,
        ),
    )
}
"""By the name under which a user asks for it."""
