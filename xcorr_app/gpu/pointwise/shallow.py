"""Launch parameters of `shallow.cu`: a plan in; grid, defines and sizes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.problem import POINTWISE_TYPES
from xcorr_app.gpu.pointwise.shallow_plan import (
    MAX_HELD,
    THREADS,
    Patch,
    ShallowProblem,
    group_of,
    patch_of,
    plan_for,
    resident_blocks,
    shared_bytes_of,
)
from xcorr_app.gpu.runtime.launch import Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits

TUNABLES = frozenset(("PIXELS_X", "PIXELS_Y", "GROUP", "THREADS", "MIN_BLOCKS", "SHARE"))
"""Macros that a caller may set, and SHARE, the filters of a block."""

_MAX_BLOCKS = 2**31 - 1


def shallow_launch(
    problem: ShallowProblem,
    *,
    alignment: int = 16,
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines."""
    device, tuning = device or DeviceLimits(), tuning or {}
    refuse_unknown("shallow", tuning, TUNABLES)
    threads = tuning.get("THREADS", THREADS)
    patch, share = plan_for(problem, device, alignment=alignment, group=tuning.get("GROUP"), threads=threads)
    if "PIXELS_X" in tuning or "PIXELS_Y" in tuning:
        columns, rows = tuning.get("PIXELS_X", patch.columns), tuning.get("PIXELS_Y", patch.rows)
        patch = patch_of(problem, columns, rows, alignment)
    group = tuning.get("GROUP", group_of(problem, patch))
    held = patch.registers(problem.layer, group)
    if held > MAX_HELD:
        raise ArgumentError(f"no thread holds {held} values, sums and addresses: take fewer pixels than {patch}")
    share = ceil_div(tuning.get("SHARE", share), group) * group
    layer, shared_bytes = problem.layer, shared_bytes_of(problem, share, group)
    along, down = patch.grid(problem)
    blocks = ceil_div(layer.images * along * down, threads) * ceil_div(layer.filters, share)
    # Threads are numbered by 31 bits; a whole block may lie behind the last patch.
    if layer.images * along * down > _MAX_BLOCKS - 1024 or blocks > _MAX_BLOCKS or shared_bytes > device.shared_bytes:
        raise ArgumentError(f"{layer} with {share} filters a block is more than one launch can have")
    defines: dict[str, str | int] = {
        "IMAGE_TYPE": POINTWISE_TYPES[problem.image_type],
        "RESULT_TYPE": POINTWISE_TYPES[problem.result_type],
        "DENSITY": int(problem.density),
        "CLIP": int(problem.clip),
        "COUNT_CLIPPED": int(problem.count and problem.result_type != "float32"),
        "CHANNELS": layer.channels,
        "FILTER_HEIGHT": layer.filter_height,
        "FILTER_WIDTH": layer.filter_width,
        "STRIDE": layer.stride,
        "BANK": int(problem.bank),
        **patch.defines(),
        "GROUP": group,
        "THREADS": threads,
        "MIN_BLOCKS": tuning.get("MIN_BLOCKS", resident_blocks(problem, patch, group, threads)),
    }
    return Launch("pointwise/shallow", defines, blocks, threads, shared_bytes, extra=(share,))


def shallow_argument(problem: ShallowProblem, launch: Launch, white: float = 1.0) -> Any:
    """Pack the sizes as the kernel takes them: a struct by value."""
    layer, macros = problem.layer, launch.defines
    patch = Patch(int(macros["PIXELS_X"]), int(macros["PIXELS_Y"]), int(macros["VECTOR_IN"]), int(macros["VECTOR_OUT"]))
    width, out_width = patch.widths(problem)
    along, down = patch.grid(problem)
    numbers = {
        "filters": layer.filters,
        "pitch": ceil_div(layer.filters, 4) * 4,
        "patches": layer.images * along * down,
        "columns": along,
        "rows": down,
        "width": width,
        "channel": layer.height * layer.width,
        "out_width": out_width,
        "plane": layer.out_height * layer.out_width,
    }
    packed = np.zeros((), np.dtype([*((name, "i4") for name in numbers), ("scale", "f4")]))
    for name, number in numbers.items():
        packed[name] = number
    packed["scale"] = 1 / white
    return packed
