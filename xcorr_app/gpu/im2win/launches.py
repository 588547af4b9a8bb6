"""How the Im2win kernels are compiled and started: macros and grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.problem import MAX_TILE_DEPTH, Im2winProblem
from xcorr_app.gpu.im2win.tiles import plan_for
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

DEFAULTS: Mapping[str, int] = {"MICRO_M": 8, "VECTOR": 4, "BUFFERS": 2, "PREFETCH": 1, "FRAGMENTS": 2}
"""Macros of the high-performance form that no problem changes, all its steps on."""

_MAX_BUFFERS = 2
"""Offsets are handed on by the barrier between two tiles; more tiles are asked for before the first barrier."""

_BASIC_ROWS = 32
_THREADS = 256
"""Of a block of the kernels that stream."""


def add_segments_launch(elements: int, segments: int) -> Launch:
    """Return the launch that adds the workspace's sums to a result of so many elements."""
    vector = 1 if elements % 4 else 4
    blocks = ceil_div(elements, vector * _THREADS)
    defines = {"VECTOR": vector, "THREADS": _THREADS}
    return Launch("im2win/add_segments", defines, blocks, _THREADS, extra=(elements, segments))


def transform_launch(problem: Im2winProblem) -> Launch:
    """Return the launch that makes the window tensor of a part."""
    defines = {**_filter_size(problem), "THREADS": _THREADS}
    blocks = ceil_div(problem.window_elements, 4 * _THREADS)
    return Launch("im2win/im2win_transform", defines, blocks, _THREADS)


def basic_launch(problem: Im2winProblem, rows: int = _BASIC_ROWS, *, implicit: bool = False) -> Launch:
    """Return the launch of the basic form: a thread sums one output element."""
    blocks = ceil_div(problem.filters, rows) * ceil_div(problem.columns, WARP)
    defines = {**_filter_size(problem), "IMPLICIT": int(implicit), "ROWS": rows}
    return Launch("im2win/im2win_basic", defines, blocks, WARP * rows)


def convolve_launch(
    problem: Im2winProblem,
    *,
    implicit: bool = False,
    segments: int | None = None,
    tuning: Mapping[str, int] | None = None,
    device: DeviceLimits | None = None,
) -> Launch:
    """Return the launch of the high-performance form."""
    device = device or DeviceLimits()
    plan = plan_for(problem, device, segments=segments)
    chosen = {**plan.tile.defines(), **DEFAULTS, "TILE_K": plan.depth}
    chosen |= tuning or {}
    threads, depth = WARP * chosen["WARPS_M"] * chosen["WARPS_N"], chosen["TILE_K"]
    tile_m = chosen["WARPS_M"] * chosen["LANES_M"] * chosen["MICRO_M"]
    tile_n = chosen["WARPS_N"] * (WARP // chosen["LANES_M"]) * chosen["MICRO_N"]
    tiles = ceil_div(problem.depth, depth)
    of_segment = ceil_div(tiles, plan.segments)
    parts = ceil_div(tiles, of_segment)  # none is empty
    blocks = ceil_div(problem.filters, tile_m) * ceil_div(problem.columns, tile_n) * parts
    # Tiles, or where sums pass through on their way out; offsets of two tiles; where columns start.
    floats = max(chosen["BUFFERS"] * depth * (tile_m + 4 + tile_n + 4), threads * chosen["MICRO_N"])
    shared_bytes = 4 * (floats + 2 * ceil_div(depth, 4) * 4 + tile_n)
    if chosen["BUFFERS"] > _MAX_BUFFERS:
        raise ArgumentError(f"BUFFERS is at most {_MAX_BUFFERS}, not {chosen['BUFFERS']}")
    if threads > 1024 or threads < depth or depth > MAX_TILE_DEPTH or shared_bytes > device.shared_bytes:
        raise ArgumentError(f"no block can hold {threads} threads with {shared_bytes} bytes of shared memory: {chosen}")
    defines = {**_filter_size(problem), "IMPLICIT": int(implicit), **chosen}
    options: dict[str, Any] = {"extra": (of_segment,), "segments": parts}
    return Launch("im2win/im2win_convolve", defines, blocks, threads, shared_bytes, **options)


def _filter_size(problem: Im2winProblem) -> dict[str, int]:
    return {"FILTER_HEIGHT": problem.filter_height, "FILTER_WIDTH": problem.filter_width}
