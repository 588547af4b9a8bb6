"""Launch of the kernel that recomputes the neighbourhoods of peaks: a problem in; grid, defines and memory out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xcorr_app.gpu.correlation_problem import INPUT_TYPES, Problem
from xcorr_app.gpu.launch import WARP, DeviceLimits, Launch, ceil_div

__all__ = ["SHIFTS", "near_peak_launch"]

SHIFTS = 25
"""Sums that a block leaves in the workspace where several blocks share a pair: doubles."""

_OWN = 4
"""Neighbouring columns of a lane."""
_ROUND = 5
"""Rows of one round of the walk."""
_MORE = 4
"""Rows of left that a strip meets more than it has rows: strips of some rounds less these end without a remainder."""
_OVERHEAD = 8
"""What beginning and ending a strip costs besides, in rows (counted in instructions)."""
_WARPS = 4
_LONGEST = 128
"""Rows that one float sums up at most, four columns of them."""
_ADDING = 0.15
"""What a block more costs a pair at its end, in rows: one block adds up what all have left."""


def near_peak_launch(
    problem: Problem,
    *,
    normalize: bool,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose the launch that rewrites the values of peaks' records, and those around, from sums in single precision.

    Parameters
    ----------
    problem : Problem
        Any.
    normalize : bool
        Whether scores are zero-mean normalised, or the sums themselves.
    left_type, right_type : str
        NumPy names of the matrices' types.
    device : DeviceLimits
        Decides how finely few pairs are cut.
    tuning : mapping, optional
        Macro values that replace the table's; also ``STRIP_ROWS``, the rows of right that a warp takes.

    Returns
    -------
    Launch
        Ready to compile and start. Kernel arguments: lefts, rights, workspace of ``pairs * segments * SHIFTS`` doubles
        and ``pairs`` zeroed integers (neither is touched for one segment); then, as for ``plane_peak``, what follows
        the planes.
    """
    height, width = problem.right_shape
    macros = {"LANES": _lanes(width), **(tuning or {})}
    lanes = macros["LANES"]
    groups = ceil_div(width, lanes * _OWN)
    fewest = ceil_div(groups * ceil_div(height, _LONGEST), WARP // lanes)
    warps = next((count for count in (1, 2) if fewest <= count), _WARPS)
    resident = 16 if left_type == "float32" else 12  # warps a multiprocessor that the registers allow
    macros = {"WARPS": warps, "MIN_BLOCKS": max(1, resident // warps), **macros}
    warps = macros["WARPS"]
    tasks = warps * WARP // lanes
    slots = macros["MIN_BLOCKS"] * device.multiprocessors
    strip_rows = macros.pop("STRIP_ROWS", 0) or _strip_rows(problem.pairs, height, groups, tasks, slots)
    segments = ceil_div(groups * ceil_div(height, strip_rows), tasks)
    defines: dict[str, str | int] = {
        **macros,
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "NORMALIZE": int(normalize),
    }
    shared_bytes = 8 * SHIFTS * warps + 16
    extra = (segments, strip_rows)
    return Launch(
        "correlation/near_peak", defines, problem.pairs * segments, warps * WARP, shared_bytes, extra, segments
    )


def _lanes(width: int) -> int:
    """Lanes that share a strip's rows: as many as waste fewest columns."""
    return min((32, 16, 8), key=lambda lanes: ceil_div(width, lanes * _OWN) * lanes)


def _strip_rows(pairs: int, height: int, groups: int, tasks: int, slots: int) -> int:
    """Rows of a strip at which `slots` blocks at a time are done first: waves of blocks times a strip, and the sums."""

    def cost(strips: int) -> float:
        segments = ceil_div(groups * strips, tasks)
        return math.ceil(pairs * segments / slots) * (rows_of(strips) + _MORE + _OVERHEAD) + _ADDING * segments

    def rows_of(strips: int) -> int:
        return ceil_div(ceil_div(height, strips) + _MORE, _ROUND) * _ROUND - _MORE

    return rows_of(min(range(ceil_div(height, _LONGEST), ceil_div(height, _ROUND) + 1), key=cost))
