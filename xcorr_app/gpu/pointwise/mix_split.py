"""Launch parameters of `mix_split.cu`, the streaming form of channel mixing on tensor cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.mix import why_not_streamed
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = ["TUNABLES", "split_argument", "split_launch"]

_STRIP = 32
"""Pixels that a warp mixes at a time."""
_THREADS, _BLOCKS, _BLOCKS_THAT_ROUND = 64, 6, 4
"""Of a block; blocks of a multiprocessor, whose registers hold the matrix and a strip for each warp; the same where
floats are rounded to integers, which takes more of them."""
TUNABLES = frozenset(("THREADS", "MIN_BLOCKS"))
"""Macros that a caller may set."""


def split_launch(
    problem: PointwiseProblem,
    limits: DeviceLimits,
    *,
    alignment: int = 16,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines."""
    if refusal := why_not_streamed("mix_split", problem, alignment, limits):
        raise ArgumentError(refusal)
    refuse_unknown("mix_split", tuning or (), TUNABLES)
    rounds = problem.image_type == "float32" and problem.result_type != "float32"
    chosen = {"THREADS": _THREADS, "MIN_BLOCKS": _BLOCKS_THAT_ROUND if rounds else _BLOCKS, **(tuning or {})}
    defines: dict[str, str | int] = {
        **problem.macros(),
        "CHANNELS": problem.channels,
        "RESULTS": problem.filters,
        **chosen,
    }
    threads = chosen["THREADS"]
    # As many blocks as are resident at once: each walks over the strips that are its own.
    strips = problem.outer * ceil_div(problem.inner, _STRIP)
    blocks = min(ceil_div(strips, threads // WARP), limits.multiprocessors * chosen["MIN_BLOCKS"])
    return Launch("pointwise/mix_split", defines, blocks, threads, extra=(blocks * threads // WARP,))


def split_argument(problem: PointwiseProblem, white: float = 1.0) -> Any:
    """Pack the sizes as the kernel takes them: a struct by value."""
    strips = ceil_div(problem.inner, _STRIP)
    fields = [("pitch", "i4"), ("scale", "f4"), ("strips_a_plane", "i4"), ("strips", "i4"), ("inner", "i8")]
    pitch = ceil_div(problem.filters, 4) * 4
    return np.array((pitch, 1 / white, strips, problem.outer * strips, problem.inner), np.dtype(fields))
