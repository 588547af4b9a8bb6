"""The table of the kernels that correlate by the definition: what each takes, how it is launched, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct import warp_launches
from xcorr_app.gpu.direct.costs import combined_cost, row_product_cost
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined, row_product
from xcorr_app.gpu.direct.tuning import TUNING
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

_LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus threads

_DISTRIBUTED = {"DISTRIBUTION": 2, "MAX_ROWS": 65536}

LARGEST: dict[str, dict[str, int]] = {
    "overlap-wise": {"THREADS": 1024},
    "shift-per-warp": {"SHIFTS_PER_BLOCK": 16},
    "warp-shuffle": {"WARPS": 16},
    "warp-shuffle-distributed": {"WARPS": 16, **_DISTRIBUTED},
    "multi-right": {"WARPS": 16, "RIGHTS": 8, **_DISTRIBUTED},
    "multi-left-right": {"WARPS": 8, "LEFTS": 4, "RIGHTS": 4, **_DISTRIBUTED},
    "multi-row": {"WARPS": 8, "SHIFTS": 8, "LEFT_ROWS": 8, "PHASES": 1, **_DISTRIBUTED},
    "combined-shuffle": {"WARPS": 8, "LEFTS": 4, "RIGHTS": 4, "SHIFTS": 4, "LEFT_ROWS": 4, "PHASES": 1, **_DISTRIBUTED},
}
"""Largest values of the macros that a user may set. Every combination up to these stays in registers, or is refused."""

_Choose = Callable[[Problem, Types, Mapping[str, int], DeviceLimits], Launch]
_Accepts = Callable[[Problem, DeviceLimits], "str | None"]
_Cost = Callable[[Problem, DeviceLimits], float]


def max_pairs(name: str, problem: Problem, *, distributed: bool = False) -> int:
    """Pairs of this kind that one launch may take so that its indices fit 32 bits; ArgumentError where not one does.

    `distributed` says that the rows of a shift are split among workers.
    """
    height, width = problem.plane_shape
    # No kernel has more threads, warps or blocks a pair than shifts and rows together, but for those where every
    # overlapping row of every shift may be a worker.
    tasks = height * width + problem.left_shape[0] + problem.right_shape[0]
    if distributed or name == "warp-shuffle-distributed":
        tasks = height * problem.left_shape[0] * ceil_div(width, WARP)
    pairs = _LARGEST_INDEX // tasks
    if pairs < 1:
        raise ArgumentError(f"a plane of {height} x {width} shifts is too large for {name}; ask for a smaller window")
    return pairs


def _accepts_shared_rights(problem: Problem, _: DeviceLimits) -> str | None:
    return None if problem.shared_rights else "multi-left-right needs form n-to-m: every left has the same rights"


def _launch(
    choose: _Choose,
    accepts: _Accepts,
    table: Mapping[str, int],
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid, macros and memory of a kernel; `tuning` are macro values, not checked, that replace the table's."""
    for element in (left_type, right_type):
        if element not in INPUT_TYPES:
            raise ArgumentError(f"the kernels read {', '.join(INPUT_TYPES)}, not {element}; convert the matrices first")
    device = device or DeviceLimits()
    if reason := accepts(problem, device):
        raise ArgumentError(reason)
    types = {"LEFT_TYPE": INPUT_TYPES[left_type], "RIGHT_TYPE": INPUT_TYPES[right_type], "SUM_TYPE": "float"}
    return choose(problem, types, {**table, **(tuning or {})}, device)


def _entry(
    name: str,
    choose: _Choose,
    *,
    sources: tuple[str, ...] = (),
    accepts: _Accepts = lambda _, __: None,
    cost: _Cost | None = None,
) -> KernelEntry[Problem]:
    return KernelEntry(
        name,
        (f"direct/{name.replace('-', '_')}", *sources),
        accepts,
        partial(_launch, choose, accepts, TUNING.get(name, {})),
        cost,
        frozenset(LARGEST.get(name, ())),
    )


KERNELS: dict[str, KernelEntry[Problem]] = {
    entry.name: entry
    for entry in (
        _entry("overlap-wise", warp_launches.overlap_wise),
        _entry("shift-per-warp", warp_launches.shift_per_warp),
        _entry("warp-shuffle", warp_launches.warp_shuffle),
        _entry("warp-shuffle-distributed", warp_launches.distributed),
        _entry("multi-right", partial(warp_launches.shuffled_tile, "multi_right")),
        _entry(
            "multi-left-right",
            partial(warp_launches.shuffled_tile, "multi_left_right"),
            accepts=_accepts_shared_rights,
        ),
        _entry("multi-row", partial(warp_launches.shuffled_tile, "multi_row")),
        _entry(
            "combined-shuffle",
            warp_launches.combined_shuffle,
        ),
        _entry(
            "combined",
            combined,
            sources=("direct/sum_segments",),
            cost=combined_cost,
        ),
        _entry(
            "row-product",
            row_product,
            cost=row_product_cost,
        ),
    )
}
"""Every kernel by the name under which a user asks for it, in the order of the ablation."""
