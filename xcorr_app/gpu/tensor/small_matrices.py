"""What the kernels for small matrices share: the sizes they are compiled for, and what they keep in shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

__all__ = [
    "SCRATCH",
    "are_small",
    "blocks_at_once",
    "defines_of",
    "fp16_floats",
    "has_one_table",
    "row_float4s",
    "sums_floats",
    "table_floats",
    "totals_floats",
]

SCRATCH = 64
"""Floats by which the warps of a block agree."""
_LARGEST = 64
"""Rows and columns of a matrix that a block holds, at most."""
_RESERVED = 1024
"""Bytes of shared memory that a block has beside its own."""


def are_small(problem: Problem) -> bool:
    """Whether a block holds both matrices."""
    return max(*problem.left_shape, *problem.right_shape) <= _LARGEST


def defines_of(problem: Problem, left_type: str, right_type: str, macros: Mapping[str, int]) -> dict[str, str | int]:
    """Return all macros: the kernels are compiled for their sizes, so what need not be multiplied is known then."""
    names = ("LEFT_HEIGHT", "LEFT_WIDTH", "RIGHT_HEIGHT", "RIGHT_WIDTH", "SHIFT_Y0", "SHIFT_X0", "SHIFTS_Y", "SHIFTS_X")
    sizes = dict(zip(names, problem.arguments(), strict=False))
    return {**macros, "LEFT_TYPE": INPUT_TYPES[left_type], "RIGHT_TYPE": INPUT_TYPES[right_type], **sizes}


def has_one_table(problem: Problem) -> bool:
    """Whether one summed-area table serves both matrices: they have the same size, in whole float4s."""
    return problem.left_shape == problem.right_shape and problem.left_shape[1] % 4 == 0


def row_float4s(width: int) -> int:
    """Threads that share a row, a float4 each: a power of two."""
    return next(float4s for float4s in (4, 8, 16, 32) if width <= 4 * float4s)


def table_floats(shape: tuple[int, int]) -> int:
    """Of a summed-area table."""
    height, width = shape
    return (height + 1) * (ceil_div(width, 4) * 4 + 4)


def totals_floats(shape: tuple[int, int], warps: int) -> int:
    """Of the sums of columns that warps hand on while they make the table."""
    return warps * 4 * row_float4s(shape[1])


def fp16_floats(problem: Problem, stacked: int, columns: int) -> int:
    """Of both matrices in half precision, for tiles of so many columns in all."""
    left_height, (right_height, right_width) = problem.left_shape[0], problem.right_shape
    steps_k, group_rows = ceil_div(right_width, 16), 8 * stacked
    of_left = ceil_div(left_height, group_rows) * group_rows * (16 * steps_k + columns + 4)
    return of_left + (right_height + 15) * (ceil_div(steps_k, 2) * 16 + 4)


def sums_floats(rows: int, columns: int) -> int:
    """Of tiles of so many rows and columns in all."""
    return rows * (columns + 4)


def blocks_at_once(shared_bytes: int, device: DeviceLimits) -> int:
    """Blocks of which a multiprocessor's shared memory has room."""
    return (device.shared_bytes + _RESERVED) // (shared_bytes + _RESERVED)
