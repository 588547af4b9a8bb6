"""Launch of the kernel that recomputes the neighbourhoods of peaks: a problem in; grid, defines and memory out."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

SHIFTS = 25
"""Doubles that a block leaves in the workspace at most, where several blocks share a pair."""

_OWN = 4
"""Neighbouring columns of a lane."""
_WARPS = 4
_LONGEST = 128
"""Rows that one float sums up at most, four columns of them."""
_RESIDENT = {3: 28, 5: 16}
"""Warps a multiprocessor that the registers allow."""
_MAX_BLOCKS = 16
"""That a multiprocessor of any architecture takes."""
_OVERHEAD = {3: 12, 5: 8}
"""What beginning and ending a strip costs beside its rows of left, in rows (counted in instructions)."""
_ADDING = {3: 0.25, 5: 0.05}
"""What a block more costs a pair at its end, in rows: one block adds up what all have left."""
_WHOLE, _NEAREST = 5, 3
"""Shifts along each axis of a record's neighbourhood, and of what every peak needs."""
_FEW = 1 << 22
"""Elements of all rights below which a second launch takes longer (5 us) than sixteen sums do (1e-6 us an element)."""


@functools.lru_cache(maxsize=256)
def near_peak_launches(
    problem: Problem, *, error: float | None, normalize: bool, left_type: str, right_type: str, device: DeviceLimits
) -> tuple[Launch, ...]:
    """Choose the launches, to be made in turn, that rewrite peaks' values from sums in single precision."""
    choose = functools.partial(
        near_peak_launch, problem, normalize=normalize, left_type=left_type, right_type=right_type, device=device
    )
    if error is None or problem.for_choice.pairs * math.prod(problem.right_shape) < _FEW:
        return (choose(),)
    return tuple(choose(side=side, margin=2 * error) for side in (_NEAREST, _WHOLE))


def near_peak_launch(
    problem: Problem,
    *,
    side: int = _WHOLE,
    margin: float | None = None,
    normalize: bool,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose the launch that rewrites the values of peaks' records, and those around, from sums in single precision."""
    height, width = problem.right_shape
    macros = {"LANES": _lanes(width), **(tuning or {})}
    lanes = macros["LANES"]
    groups = ceil_div(width, lanes * _OWN)
    fewest = ceil_div(groups * ceil_div(height, _LONGEST), WARP // lanes)
    warps = next((count for count in (1, 2) if fewest <= count), _WARPS)
    macros = {"WARPS": warps, "AHEAD": 1, **macros}
    warps = macros["WARPS"]
    macros = {"MIN_BLOCKS": min(_MAX_BLOCKS, max(1, _RESIDENT[side] // warps)), **macros}
    tasks = warps * WARP // lanes
    slots = macros["MIN_BLOCKS"] * device.multiprocessors
    strip_rows = macros.pop("STRIP_ROWS", 0) or _strip_rows(
        problem.for_choice.pairs, height, groups, tasks, slots, side, side + macros["AHEAD"]
    )
    segments = ceil_div(groups * ceil_div(height, strip_rows), tasks)
    defines: dict[str, str | int] = {
        **macros,
        "SIDE": side,
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "NORMALIZE": int(normalize),
    }
    if margin is not None:
        defines["RING_MARGIN"] = str(margin)
    shared_bytes = 8 * side * side * warps + 24
    extra = (segments, strip_rows)
    return Launch("peaks/near_peak", defines, problem.pairs * segments, warps * WARP, shared_bytes, extra, segments)


def _lanes(width: int) -> int:
    """Lanes that share a strip's rows: as many as waste fewest columns."""
    return min((32, 16, 8), key=lambda lanes: ceil_div(width, lanes * _OWN) * lanes)


def _strip_rows(pairs: int, height: int, groups: int, tasks: int, slots: int, side: int, of_round: int) -> int:
    """Rows of a strip at which `slots` blocks at a time are done first: waves of blocks times a strip, and the sums.

    A strip takes more rows of left than it has, and ends without a remainder where these are whole rounds of the walk.
    """
    more = side - 1

    def cost(strips: int) -> float:
        segments = ceil_div(groups * strips, tasks)
        rows = rows_of(strips) + more + _OVERHEAD[side]
        return math.ceil(pairs * segments / slots) * rows + _ADDING[side] * segments

    def rows_of(strips: int) -> int:
        return ceil_div(ceil_div(height, strips) + more, of_round) * of_round - more

    return rows_of(min(range(ceil_div(height, _LONGEST), ceil_div(height, of_round) + 1), key=cost))
