"""Launch parameters of dynamic blocking as planned, and a matrix as the kernels read it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.mix import LOG2_TO_DENSITY
from xcorr_app.gpu.pointwise.planner import plan_pointwise, shared_for
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS, PointwiseProblem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

_ROWS_BEYOND = 128
"""Rows of zeros behind the stored matrix, for the last tile of channels."""
_CHANNELS_STAGED = 16
"""Channels between two barriers that `dynamic_launch` aims at."""
_MAX_ROUNDS = 4


def stored_matrix(matrix: Any, xp: Any, *, density: bool = False) -> Any:
    """Bring a matrix into the kernels' order: (channels and rows of zeros, filters rounded up to 4), float32."""
    filters, channels = matrix.shape
    values = xp.zeros((channels + _ROWS_BEYOND, ceil_div(filters, 4) * 4), np.float32)
    values[:channels, :filters] = xp.asarray(matrix * LOG2_TO_DENSITY if density else matrix, dtype=np.float32).T
    return values


def pointwise_argument(problem: PointwiseProblem, white: float = 1.0) -> Any:
    """Pack the sizes as the kernels take them: a struct by value."""
    names = ("filters", "channels", "pitch", "inner", "pixels")
    numbers = (problem.filters, problem.channels, ceil_div(problem.filters, 4) * 4, problem.inner, problem.pixels)
    return np.array((*numbers, 1 / white), np.dtype([*((name, "i4") for name in names), ("scale", "f4")]))


def dynamic_launch(
    problem: PointwiseProblem, limits: DeviceLimits, *, tuning: Mapping[str, int] | None = None
) -> Launch:
    """Return the launch of dynamic blocking, cut as the planner says."""
    _check_elements(problem)
    options = BlockingOptions.of(tuning or {})
    plan = plan_pointwise(problem.filters, problem.channels, problem.pixels, limits, options)
    count, groups, first = plan.channel_count, plan.lane_groups, plan.layout == "L1"
    row = plan.warps[0] * (groups if first else 1) * ceil_div(plan.thread_filters, 4) * 4
    row += plan.warps[1] * (1 if first else groups) * ceil_div(plan.thread_pixels, 4) * 4 + (8 if count > 1 else 0)
    rounds = options.rounds or 1
    if options.rounds is None and options.staging == "async":
        rounds = min(_MAX_ROUNDS, ceil_div(_CHANNELS_STAGED, count), plan.channel_steps)
        while rounds > 1 and 8 * row * count * rounds > shared_for(limits, plan.blocks_per_multiprocessor, options):
            rounds -= 1
    defines: dict[str, str | int] = {
        **problem.macros(),
        "LAYOUT": 1 if first else 2,
        "INTERLEAVED": int(problem.interleaved),
        "CHANNEL_COUNT": count,
        "WARP_FILTERS": plan.warp_filters,
        "WARP_PIXELS": plan.warp_pixels,
        "THREAD_FILTERS": plan.thread_filters,
        "THREAD_PIXELS": plan.thread_pixels,
        "WARPS_FILTERS": plan.warps[0],
        "WARPS_PIXELS": plan.warps[1],
        "ROUNDS": rounds,
        "REGISTER_STAGING": int(options.staging == "registers"),
        "MIN_BLOCKS": plan.blocks_per_multiprocessor,
    }
    shared_bytes = 8 * row * count * rounds
    if shared_bytes > limits.shared_bytes:
        raise ArgumentError(f"the plan's tiles take {shared_bytes} bytes of shared memory, more than {limits} has")
    blocks, extra = math.prod(plan.grid), (plan.grid[1], plan.tiles_per_block)
    return Launch("pointwise/pointwise", defines, blocks, options.warps * WARP, shared_bytes, extra=extra)


def _check_elements(problem: PointwiseProblem) -> None:
    if problem.pixels * max(problem.channels, problem.filters) > MAX_ELEMENTS:
        raise ArgumentError(f"{problem} has more than {MAX_ELEMENTS} elements: hand it over in parts")
