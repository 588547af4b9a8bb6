"""Launch parameters of the correlation kernels: a variant and a problem in; grid, defines and memory out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import band_product, combined, row_product
from xcorr_app.gpu.direct.tuning import TUNING, band_shape
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

__all__ = ["VARIANTS", "computes", "launch_of", "most_pairs"]

LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus threads


def launch_of(
    variant: str,
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    sum_type: str = "float",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid, defines and memory of a variant.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    problem : Problem
        Of at most `most_pairs` pairs.
    left_type, right_type : str, optional
        NumPy names of the matrices' types.
    sum_type : str, optional
        ``"float"`` or ``"double"``: type of the sums and of the plane.
    device : DeviceLimits, optional
        Decides how finely few pairs are cut and how much is staged at a time.
    tuning : mapping, optional
        Values of the kernel's macros that replace the table's, not checked against its source; also ``SEGMENTS`` for
        ``combined``.

    Returns
    -------
    Launch
        Ready to compile and start.

    Raises
    ------
    ArgumentError
        For an unknown variant or type, and for a form, a size or a tuning that the variant does not compute.
    """
    if variant not in VARIANTS:
        raise ArgumentError(f"unknown variant {variant!r}; choose from {', '.join(VARIANTS)}")
    for name in (left_type, right_type):
        if name not in INPUT_TYPES:
            raise ArgumentError(f"kernels read {', '.join(INPUT_TYPES)}, not {name}; convert the matrices first")
    if sum_type not in ("float", "double"):
        raise ArgumentError(f"sums are float or double, not {sum_type!r}")
    device = device or DeviceLimits()
    chosen = dict(TUNING.get(variant, {})) | dict(tuning or {})
    types: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "SUM_TYPE": sum_type,
    }
    return VARIANTS[variant](problem, types, chosen, device)


def computes(variant: str, problem: Problem, device: DeviceLimits | None = None) -> bool:
    """Whether a variant is for such a problem.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    problem : Problem
        Any.
    device : DeviceLimits, optional
        Whose shared memory counts.

    Returns
    -------
    bool
        False for ``multi-left-right`` where not every left meets the same rights, and for ``band-product`` where
        matrices or window are too large for it.
    """
    if variant == "multi-left-right":
        return problem.shared_rights
    if variant == "band-product":
        return band_shape(problem, (device or DeviceLimits()).shared_bytes, is_double=False) is not None
    return True


def most_pairs(variant: str, problem: Problem) -> int:
    """Return how many pairs of this kind one launch may take, so that its indices fit 32 bits.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    problem : Problem
        Of any number of pairs.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ArgumentError
        Where one pair alone is too large.
    """
    height, width = problem.plane_shape
    # No kernel has more threads, warps or blocks a pair than shifts and rows together, but for the two where every
    # overlapping row of every shift may be a worker, or a block.
    tasks = height * width + problem.left_shape[0] + problem.right_shape[0]
    if variant == "warp-shuffle-distributed":
        tasks = height * problem.left_shape[0] * ceil_div(width, WARP)
    if variant == "row-per-warp":
        tasks = max(tasks, height * ceil_div(width, WARP) * 16)
    pairs = LARGEST_INDEX // tasks
    if pairs < 1:
        raise ArgumentError(
            f"a plane of {height} x {width} shifts is too large for {variant}; ask for a smaller window"
        )
    return pairs


def _per_shift(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    threads = tuning["THREADS"]
    blocks = ceil_div(problem.pairs * shifts, threads)
    return Launch("direct/overlap_wise", {**types, **tuning}, blocks, threads)


def _shift_per_warp(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    per_block = tuning["SHIFTS_PER_BLOCK"]
    blocks = ceil_div(problem.pairs * shifts, per_block)
    return Launch("direct/shift_per_warp", {**types, **tuning}, blocks, per_block * WARP)


def _by_warp(kernel: str, types: Types, tuning: Mapping[str, int], warps: int, *, zero_first: bool = False) -> Launch:
    """Return the launch of a kernel whose tasks are warps, ``WARPS`` of them a block."""
    per_block = tuning["WARPS"]
    blocks = ceil_div(warps, per_block)
    return Launch(f"direct/{kernel}", {**types, **tuning}, blocks, per_block * WARP, zero_first=zero_first)


def _warp_shuffle(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    return _by_warp("warp_shuffle", types, tuning, problem.pairs * height * ceil_div(width, WARP))


def _row_per_warp(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    rows = min(problem.left_shape[0], problem.right_shape[0])
    warps = {"WARPS": next((count for count in (1, 2, 4, 8) if rows <= count), 16), **tuning}["WARPS"]
    sum_floats = 2 if types["SUM_TYPE"] == "double" else 1
    return Launch(
        "direct/row_per_warp",
        {**types, "WARPS": warps},
        problem.pairs * height * ceil_div(width, WARP),
        warps * WARP,
        4 * warps * (96 + WARP * sum_floats),
    )


def _distributed(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    (height, width), rows = problem.plane_shape, tuning["MAX_ROWS"]
    if tuning["DISTRIBUTION"] == 0:
        workers = height
    elif tuning["DISTRIBUTION"] == 1:
        workers = height * ceil_div(min(problem.left_shape[0], problem.right_shape[0]), rows)
    else:
        workers = sum(ceil_div(overlap, rows) for overlap in problem.overlaps(0))
    warps = max(1, problem.pairs * workers * ceil_div(width, WARP))
    return _by_warp("warp_shuffle_distributed", types, tuning, warps, zero_first=True)


def _multi_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    groups = problem.lefts * ceil_div(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_right", types, tuning, groups * height * ceil_div(width, WARP))


def _multi_left_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    if not problem.shared_rights:
        raise ArgumentError("multi-left-right needs form n-to-m: every left meets the same rights")
    height, width = problem.plane_shape
    groups = ceil_div(problem.lefts, tuning["LEFTS"]) * ceil_div(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_left_right", types, tuning, groups * height * ceil_div(width, WARP))


def _multi_row(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    return _by_warp(
        "multi_row", types, tuning, problem.pairs * ceil_div(height, tuning["SHIFTS"]) * ceil_div(width, WARP)
    )


VARIANTS: dict[str, Callable[[Problem, Types, Mapping[str, int], DeviceLimits], Launch]] = {
    "overlap-wise": _per_shift,
    "shift-per-warp": _shift_per_warp,
    "row-per-warp": _row_per_warp,
    "warp-shuffle": _warp_shuffle,
    "warp-shuffle-distributed": _distributed,
    "multi-right": _multi_right,
    "multi-left-right": _multi_left_right,
    "multi-row": _multi_row,
    "combined": combined,
    "row-product": row_product,
    "band-product": band_product,
}
"""Every variant by name, in the order of the ablation."""
