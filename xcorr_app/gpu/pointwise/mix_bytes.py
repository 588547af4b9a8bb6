"""Launch parameters of `mix_bytes.cu`, channel mixing of integers on tensor cores, and the matrix as it takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS, allows_vector, why_not_streamed
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = ["TUNABLES", "byte_matrix", "bytes_argument", "bytes_launch", "has_widest_loads", "why_not_bytes"]

_VECTOR_BYTES = 16
"""Of the wider type, a load or store where planes allow it."""
_THREADS = 64
"""Of a block."""
_BLOCKS, _BLOCKS_OF_LESS = 4, 6
"""Blocks of a multiprocessor, where a warp's work takes all the registers that it may have: sixteen pixels a lane, or
more channels than sixteen on either side; and elsewhere, to keep memory as busy."""
_MAX_PIXELS_OF_LANE = 16
TUNABLES = frozenset(("THREADS", "MIN_BLOCKS", "VECTOR"))
"""Macros that a caller may set."""

_MAX_PIXELS = 2**31 - 2**10
"""Of a plane: a strip's last pixel still has a number of 32 bits."""

_ROWS, _DIGITS = 16, 4
"""Results of a product on tensor cores; bytes of an element of the matrix."""
_WHOLE_BITS = 30
"""A row's largest element becomes a whole number of 2^29 to 2^30 in size."""
_EXPONENTS = -60, 60
"""Of sizes, as floats hold them: beyond the upper all but zero is clipped, below the lower all is rounded to zero."""


def why_not_bytes(problem: PointwiseProblem, alignment: int, limits: DeviceLimits) -> str | None:
    """Say why the kernel does not compute a problem, if it does not."""
    integers = "float32" not in (problem.image_type, problem.result_type) and not problem.density
    what = " of integers"
    if not integers or problem.inner > _MAX_PIXELS:
        return f"mix_bytes takes planes of whole fours of up to {MIX_CHANNELS} channels{what}, not {problem}"
    return why_not_streamed("mix_bytes", problem, alignment, limits, what)


def bytes_launch(
    problem: PointwiseProblem,
    limits: DeviceLimits,
    *,
    alignment: int = 16,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines."""
    if refusal := why_not_bytes(problem, alignment, limits):
        raise ArgumentError(refusal)
    refuse_unknown("mix_bytes", tuning or (), TUNABLES)
    vector = _VECTOR_BYTES // max(problem.image_bytes, problem.result_bytes)
    while not allows_vector(problem, alignment, vector):
        vector //= 2
    full = max(problem.channels, problem.filters) > _ROWS or vector == _MAX_PIXELS_OF_LANE
    chosen = {
        "THREADS": _THREADS,
        "MIN_BLOCKS": _BLOCKS if full else _BLOCKS_OF_LESS,
        "VECTOR": vector,
        **(tuning or {}),
    }
    defines: dict[str, str | int] = {
        **problem.macros(),
        "CHANNELS": problem.channels,
        "RESULTS": problem.filters,
        **chosen,
    }
    threads = chosen["THREADS"]
    # As many blocks as are resident at once: each walks over the strips that are its own.
    strips = problem.outer * ceil_div(problem.inner, 8 * chosen["VECTOR"])
    blocks = min(ceil_div(strips, threads // WARP), limits.multiprocessors * chosen["MIN_BLOCKS"])
    words = ceil_div(problem.filters, _ROWS) * _ROWS * (MIX_CHANNELS * _DIGITS // 4 + 1)
    return Launch("pointwise/mix_bytes", defines, blocks, threads, shared_bytes=4 * words)


def byte_matrix(matrix: Any, problem: PointwiseProblem, xp: Any) -> Any:
    """Bring a matrix into the kernel's order: whole numbers of four bytes, times a power of two for each row."""
    own = np if isinstance(matrix, np.ndarray) else xp  # one transfer of what is small
    factors = own.asarray(matrix, np.float64)
    exponents = own.frexp(abs(factors).max(axis=1, keepdims=True))[1]  # sizes are below 2^exponent
    exponents = own.maximum(exponents, _EXPONENTS[0])
    rows = ceil_div(problem.filters, _ROWS)
    whole = own.zeros((rows * _ROWS, MIX_CHANNELS), np.int32)
    nearest = own.rint(own.ldexp(factors, _WHOLE_BITS - exponents))
    whole[: problem.filters, : problem.channels] = nearest.astype(np.int32)
    # A byte above 127 stands for one below zero, and lends to the next: adding 128 to each but the upper one does it.
    digits = ((whole + 0x808080) ^ 0x808080).view(np.uint8).reshape(rows, 2, 8, 2, 4, 4, _DIGITS)
    # Axes: sixteen rows, half of them, row, half of the channels, every fourth of them, channel, digit.
    fragments = digits[..., ::-1].transpose(0, 6, 2, 5, 3, 1, 4)
    # Sum 1 holds the upper byte times the second digit, which weighs 2^16.
    units = own.zeros((rows * _ROWS, 1), np.float32)
    scale = own.minimum(exponents, _EXPONENTS[1]) - _WHOLE_BITS + 8 * (problem.image_bytes + 1)
    units[: problem.filters] = own.ldexp(own.ones(scale.shape), scale)
    parts = (own.ascontiguousarray(fragments).view(np.uint32).ravel(), units.view(np.uint32).ravel())
    return xp.asarray(own.concatenate(parts))


def bytes_argument(problem: PointwiseProblem, launch: Launch) -> Any:
    """Pack the sizes as the kernel takes them: a struct by value."""
    strips, warps = ceil_div(problem.inner, 8 * int(launch.defines["VECTOR"])), launch.blocks * launch.threads // WARP
    names = ("strips_a_plane", "strips", "warps", "images_further", "strips_further")
    numbers = (strips, problem.outer * strips, warps, *divmod(warps, strips), problem.inner)
    return np.array(numbers, np.dtype([*((name, "i4") for name in names), ("inner", "i8")], align=True))


def has_widest_loads(problem: PointwiseProblem, alignment: int) -> bool:
    """Whether planes are made of whole vectors of 16 bytes, or of as many pixels as 16 bytes of the wider type hold."""
    return allows_vector(problem, alignment, _VECTOR_BYTES // max(problem.image_bytes, problem.result_bytes))
