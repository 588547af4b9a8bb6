"""Launch parameters of `translate.cu`: a stack and a method in; grid, defines and sizes out."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from xcorr_app.gpu.resample.problem import (
    COPIED,
    PIXEL_TYPES,
    TranslationProblem,
    largest_piece,
    packed_sizes,
    strips,
    sum_type,
)
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

_COLUMNS = {1: 8, 2: 8, 4: 4, 8: 2}
"""Neighbouring pixels of a thread by their bytes: 16 bytes, so that a warp reads and writes whole lines."""
_THREADS_AT_ONCE = 1024
"""Of a multiprocessor: half of what it can hold, for the registers that a thread takes."""


def translation_launch(
    problem: TranslationProblem,
    device: DeviceLimits | None = None,
    *,
    alignment: int = 16,
) -> Launch:
    """Choose grid and defines; `alignment` is that of the result's address in bytes.

    Examples
    --------
    >>> launch = translation_launch(TranslationProblem((512, 512), 512))
    >>> launch.defines["COLUMNS"], launch.defines["STORE_BYTES"], launch.extra[2]
    (8, 16, 32)
    """
    taps, size = problem.taps, problem.itemsize
    height, width = problem.frame_shape
    columns = min(_COLUMNS[size], 4 if taps == 8 else 8)
    groups = ceil_div(width, columns)
    at_once = _THREADS_AT_ONCE * (device or DeviceLimits()).multiprocessors
    rows, threads, blocks = strips(problem.count, groups, height, at_once)
    counts = problem.counts and problem.overshoots
    defines: dict[str, str | int] = {
        "PIXEL_TYPE": COPIED[size] if taps == 1 else PIXEL_TYPES[problem.dtype],
        "SUM_TYPE": ("double" if size == 8 else "float") if taps == 1 else sum_type(problem.dtype),
        "TAPS": taps,
        "COLUMNS": columns,
        "STORE_BYTES": largest_piece(16, columns * size, width * size, alignment),
        "COUNTS": int(counts),
        "THREADS": threads,
    }
    shared_bytes = 2 * (16 + 8 * taps)
    extra = (groups, blocks, rows)
    return Launch("resample/translate", defines, problem.count * blocks, threads, shared_bytes, extra=extra)


def translation_argument(problem: TranslationProblem, launch: Launch, outside: bytes = b"") -> npt.NDArray[Any]:
    """Pack the sizes and the bytes of the pixel outside as the kernel takes them: a struct by value."""
    groups, blocks, rows = launch.extra
    sizes = {"groups": groups, "rows": rows, "blocks": blocks, "fills_outside": problem.fills_outside}
    return packed_sizes(outside, problem.frame_shape, **sizes)
