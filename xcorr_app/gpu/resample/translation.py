"""Launch parameters of `translate.cu`: a stack and a method in; grid, defines and sizes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.resample.problem import COPIED, PIXEL_TYPES, TranslationProblem, largest_piece, sum_type
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

_COLUMNS = {1: 8, 2: 8, 4: 4, 8: 2}
"""Neighbouring pixels of a thread by their bytes: 16 bytes, so that a warp reads and writes whole lines."""
_ROWS = (64, 32, 16, 8)
_WAVES = 3
"""Times that the device's threads should at least be filled: a last wave that is part full costs little."""
_THREADS_AT_ONCE = 1024
"""Of a multiprocessor: half of what it can hold, for the registers that a thread takes."""
_MAX_BLOCKS = 2**31 - 1


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
    rows = _rows(problem, groups, device or DeviceLimits())
    of_a_frame = groups * ceil_div(height, rows)
    threads = min(128, ceil_div(of_a_frame, WARP) * WARP)
    blocks = ceil_div(of_a_frame, threads)
    if problem.count * blocks > _MAX_BLOCKS or blocks * threads > _MAX_BLOCKS:
        raise ArgumentError(f"{problem} is more than one launch can have")
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
    names = ("height", "width", "groups", "rows", "blocks", "fills_outside")
    packed = np.zeros((), np.dtype([("outside", "u8"), *((name, "i4") for name in names)]))
    packed["outside"] = int.from_bytes(outside, "little")
    groups, blocks, rows = launch.extra
    packed["height"], packed["width"] = problem.frame_shape
    packed["groups"], packed["blocks"], packed["rows"] = groups, blocks, rows
    packed["fills_outside"] = problem.fills_outside
    return packed


def _rows(problem: TranslationProblem, groups: int, device: DeviceLimits) -> int:
    """Rows of a strip: many, since strips share TAPS - 1 rows, where enough strips are left to fill the device."""
    wanted = _WAVES * _THREADS_AT_ONCE * device.multiprocessors
    height = problem.frame_shape[0]
    for rows in _ROWS:
        if problem.count * groups * ceil_div(height, rows) >= wanted:
            return rows
    return _ROWS[-1]
