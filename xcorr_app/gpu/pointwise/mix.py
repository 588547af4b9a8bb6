"""Launch parameters of `mix.cu`, the streaming form of channel mixing: a thread's share, and the matrix as argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div

MIX_CHANNELS = 32
"""Most channels, of either side, of the streaming form: a thread holds a pixel's results in registers."""
LOG2_TO_DENSITY = -math.log10(2.0)
"""The kernels take log2; this factor, which makes an optical density of it, goes into the matrix."""

EXACT_CHANNELS = 8
"""Up to so many channels on both sides integer results are summed in double, as on the CPU: memory is slower still."""

_THREADS = 128
_VECTOR_BYTES, _MAX_VECTOR = 16, 8
_MAX_SUMS = {1: 128, 2: 64}
"""Sums of a thread, by the registers that a sum takes."""
_BYTES_IN_FLIGHT = 64
"""That a thread should have asked for before it waits."""
_MAX_LOADS = 8
_STRAIGHT = 512
"""Most multiply-adds of a piece of code without a loop: more would not stay in the instruction cache."""
_CHUNK_REGISTERS = 64
_FEW_PIXELS = 2
"""Of a thread, where many channels of few bytes are mixed: measured a third faster than eight."""
_REGISTERS, _REGISTERS_BESIDES = 65536, 56
"""Of a multiprocessor; and what a thread takes besides sums, values and factors: addresses, constants, conversions."""
_MAX_BLOCKS = 2**31 - 1


def sums_in_double(problem: PointwiseProblem) -> bool:
    """Whether the sums of a problem are float64: of few channels, where the result is rounded to integers."""
    few = max(problem.channels, problem.filters) <= EXACT_CHANNELS
    return few and problem.result_type != "float32" and not problem.density


def mix_launch(problem: PointwiseProblem, *, alignment: int = 16) -> Launch:
    """Choose grid and defines of the streaming form."""
    if max(problem.channels, problem.filters) > MIX_CHANNELS:
        raise ArgumentError(f"mix computes up to {MIX_CHANNELS} channels, not {problem.channels} to {problem.filters}")
    chosen = _interleaved(problem, alignment) if problem.interleaved else _planar(problem, alignment)
    chosen = {"THREADS": _THREADS, **chosen}
    defines: dict[str, str | int] = {
        **problem.macros(),
        "SUM_TYPE": "double" if sums_in_double(problem) else "float",
        "CHANNELS": problem.channels,
        "RESULTS": problem.filters,
        "INTERLEAVED": int(problem.interleaved),
        **chosen,
    }
    of_block = chosen["THREADS"] * chosen["PIXELS"]
    if problem.interleaved:
        blocks = ceil_div(problem.pixels, of_block)
    else:
        blocks = problem.outer * ceil_div(problem.inner, of_block) * ceil_div(problem.filters, chosen["FILTERS"])
    if blocks > _MAX_BLOCKS:
        raise ArgumentError(f"{problem} takes {blocks} blocks, more than one launch can have: hand it over in parts")
    return Launch("pointwise/mix", defines, blocks, chosen["THREADS"])


def mixing_argument(matrix: npt.NDArray[Any], problem: PointwiseProblem, launch: Launch, white: float = 1.0) -> Any:
    """Pack what the kernel takes by value: the matrix in its order, and sizes."""
    filters = int(launch.defines.get("FILTERS", problem.filters))
    groups = ceil_div(problem.filters, filters)
    sums = np.dtype(np.float64 if launch.defines["SUM_TYPE"] == "double" else np.float32)
    padded = np.zeros((groups * filters, problem.channels))
    padded[: problem.filters] = matrix
    if problem.density:
        padded *= LOG2_TO_DENSITY
    fields = [("at", sums, (padded.size,)), ("scale", "f4"), ("blocks_an_image", "i4"), ("inner", "i8")]
    at = padded.reshape(groups, filters, -1).transpose(0, 2, 1).ravel()
    blocks = ceil_div(problem.inner, launch.threads * int(launch.defines["PIXELS"]))
    inner = problem.pixels if problem.interleaved else problem.inner
    return np.array((at, 1 / white, blocks, inner), np.dtype(fields, align=True))


def _planar(problem: PointwiseProblem, alignment: int) -> dict[str, int]:
    """Vectors as wide as memory and alignment allow, then pixels to keep memory busy, then filters that fit."""
    words = 2 if sums_in_double(problem) else 1
    widest = min(_MAX_VECTOR, _VECTOR_BYTES // max(problem.image_bytes, problem.result_bytes))
    vector = widest
    while vector > 1 and (
        problem.inner % vector or alignment % (vector * max(problem.image_bytes, problem.result_bytes))
    ):
        vector //= 2
    filters, pixels = problem.filters, widest
    while words == 2 and filters * pixels * words > _MAX_SUMS[2] and pixels > 2:
        pixels //= 2
    if max(problem.channels, problem.filters) > EXACT_CHANNELS and problem.image_bytes < 4:
        pixels = min(pixels, _FEW_PIXELS)
    vector = min(vector, pixels)
    while (
        problem.channels * pixels * problem.image_bytes < _BYTES_IN_FLIGHT
        and filters * pixels * 2 * words <= 64
        and pixels < 32
    ):
        pixels *= 2
    while filters * pixels * words > _MAX_SUMS[words]:
        filters = ceil_div(filters, 2)
    sums = filters * pixels * words
    vector = min(vector, pixels)
    loads = _MAX_LOADS if sums <= 64 and pixels * problem.image_bytes <= 16 else _MAX_LOADS // 2
    loads = min(problem.channels, loads, max(2, 2 * _MAX_LOADS * vector // pixels))
    straight = problem.channels * filters * pixels <= _STRAIGHT and problem.channels <= 2 * loads
    ahead = loads * pixels * problem.image_bytes // 4
    registers = sums + ahead + (pixels + filters) * words + _REGISTERS_BESIDES
    return {
        # Small planes: no more warps than have pixels.
        "THREADS": min(_THREADS, WARP * ceil_div(problem.inner, WARP * pixels)),
        "VECTOR": vector,
        "PIXELS": pixels,
        "FILTERS": filters,
        "LOADS": loads,
        "UNROLL": ceil_div(problem.channels, loads) if straight else 1,
        "MIN_BLOCKS": max(1, min(4, _REGISTERS // (_THREADS * registers))),
    }


def _interleaved(problem: PointwiseProblem, alignment: int) -> dict[str, int]:
    """Pixels of a thread whose chunks fit the registers; as many as fill a vector of the narrower type, if they do."""
    pixels = _VECTOR_BYTES // min(problem.image_bytes, problem.result_bytes)
    words = 2 if sums_in_double(problem) else 1

    def too_many() -> bool:
        chunks = pixels * (problem.channels * problem.image_bytes + problem.filters * problem.result_bytes) // 4
        return chunks > _CHUNK_REGISTERS or pixels * problem.channels * problem.filters * words > _STRAIGHT

    while pixels > 1 and too_many():
        pixels //= 2
    return {"PIXELS": pixels, "ALIGNED": int(alignment >= _VECTOR_BYTES), "MIN_BLOCKS": 3}
