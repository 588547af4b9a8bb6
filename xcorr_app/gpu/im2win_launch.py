"""How the Im2win kernels are compiled and started: tiles, the steps of the ablation, grids."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win_problem import Im2winProblem
from xcorr_app.gpu.launch import WARP, DeviceLimits, Launch, ceil_div

__all__ = ["ABLATION", "DEFAULTS", "STEPS", "TILES", "basic_launch", "convolve_launch", "tile_for", "transform_launch"]

DEFAULTS: Mapping[str, int] = {
    "LANES_M": 4,
    "MICRO_M": 8,
    "MICRO_N": 8,
    "TILE_K": 8,
    "VECTOR": 4,
    "BUFFERS": 2,
    "PREFETCH": 1,
    "FRAGMENTS": 2,
}
"""Macros of the high-performance form, all its steps on."""

TILES = ((4, 2), (2, 4), (3, 2), (2, 2), (1, 4), (2, 1), (1, 2), (1, 1))
"""Warps of a block along the filters (32 filters each) and along the columns (64 columns each)."""

_ONE_SUM = {"MICRO_M": 1, "MICRO_N": 1, "VECTOR": 1, "WARPS_M": 8, "WARPS_N": 4, "MIN_BLOCKS": 1}
_ONE_BUFFER = {"BUFFERS": 1, "PREFETCH": 0}

STEPS: Mapping[str, Mapping[str, int]] = {
    "tiles in shared memory": {**_ONE_SUM, **_ONE_BUFFER, "FRAGMENTS": 1},
    "+ micro-kernel": {**_ONE_BUFFER, "VECTOR": 1, "FRAGMENTS": 1},
    "+ vector loads": {**_ONE_BUFFER, "FRAGMENTS": 1},
    "+ double buffer": {"PREFETCH": 0, "FRAGMENTS": 1},
    "+ prefetch": {},
}
"""From the basic form to the full kernel, one step more each time: macros that replace those of the full kernel."""

ABLATION: Mapping[str, Mapping[str, int]] = {
    "no micro-kernel": _ONE_SUM,
    "no vector loads": {"VECTOR": 1},
    "no double buffer": _ONE_BUFFER,
    "no prefetch to shared memory": {"PREFETCH": 0},
    "no prefetch to registers": {"FRAGMENTS": 1},
}
"""One step left out at a time: macros that replace those of the full kernel."""

_STAGING = 8
"""What copying an element into a tile costs, in multiply-adds: an estimate, for the choice of a tile alone."""
_REGISTERS_FOR = 512
"""Threads of a multiprocessor at the 128 registers that a thread of 8 x 8 sums needs."""
_BASIC_ROWS = 32
_TRANSFORM_THREADS = 256


def transform_launch(problem: Im2winProblem, *, vector: int = 4) -> Launch:
    """Return the launch that makes the window tensor of a part.

    Parameters
    ----------
    problem : Im2winProblem
        Of the part: its window tensor keeps `MOST_ELEMENTS`.
    vector : int, optional
        Elements that a thread writes at once: 4, or 1 for the ablation.

    Returns
    -------
    Launch
        Takes images and window tensor.

    Raises
    ------
    ArgumentError
        For another number.
    """
    if vector not in (1, 4):
        raise ArgumentError(f"a thread writes 1 or 4 elements at once, not {vector}")
    defines = {**_filter_size(problem), "VECTOR": vector, "THREADS": _TRANSFORM_THREADS}
    blocks = ceil_div(problem.window_elements, vector * _TRANSFORM_THREADS)
    return Launch("filtering/im2win_transform", defines, blocks, _TRANSFORM_THREADS)


def basic_launch(problem: Im2winProblem, rows: int = _BASIC_ROWS) -> Launch:
    """Return the launch of the basic form: a thread sums one output element.

    Parameters
    ----------
    problem : Im2winProblem
        Of the part.
    rows : int, optional
        Filters of a block; 32 in the document.

    Returns
    -------
    Launch
        Takes window tensor, filters and output.
    """
    blocks = ceil_div(problem.filters, rows) * ceil_div(problem.columns, WARP)
    return Launch("filtering/im2win_basic", {**_filter_size(problem), "ROWS": rows}, blocks, WARP * rows)


def convolve_launch(
    problem: Im2winProblem, *, tuning: Mapping[str, int] | None = None, device: DeviceLimits | None = None
) -> Launch:
    """Return the launch of the high-performance form.

    Parameters
    ----------
    problem : Im2winProblem
        Of the part.
    tuning : mapping, optional
        Macros that replace the table's, such as an entry of `ABLATION`.
    device : DeviceLimits, optional
        Limits to keep; without it those that every device has.

    Returns
    -------
    Launch
        Takes window tensor, filters and output.

    Raises
    ------
    ArgumentError
        For a name that the kernel does not have, or a tile that no block can hold.
    """
    device = device or DeviceLimits()
    warps = dict(zip(("WARPS_M", "WARPS_N"), tile_for(problem, device), strict=True))
    unknown = set(tuning or ()) - {*DEFAULTS, *warps, "MIN_BLOCKS"}
    if unknown:
        raise ArgumentError(f"the Im2win convolution has no tunable {', '.join(sorted(unknown))}")
    chosen = {**DEFAULTS, **warps, **(tuning or {})}
    threads = WARP * chosen["WARPS_M"] * chosen["WARPS_N"]
    chosen.setdefault("MIN_BLOCKS", max(1, _REGISTERS_FOR // threads))
    tile_m = chosen["WARPS_M"] * chosen["LANES_M"] * chosen["MICRO_M"]
    tile_n = chosen["WARPS_N"] * (WARP // chosen["LANES_M"]) * chosen["MICRO_N"]
    shared_bytes = 4 * (chosen["BUFFERS"] * chosen["TILE_K"] * (tile_m + 4 + tile_n + 4) + tile_n)
    if threads > 1024 or threads % chosen["TILE_K"] or shared_bytes > device.shared_bytes:
        raise ArgumentError(f"no block can hold {threads} threads with {shared_bytes} bytes of shared memory: {chosen}")
    blocks = ceil_div(problem.filters, tile_m) * ceil_div(problem.columns, tile_n)
    return Launch("filtering/im2win_convolve", {**_filter_size(problem), **chosen}, blocks, threads, shared_bytes)


def tile_for(problem: Im2winProblem, device: DeviceLimits) -> tuple[int, int]:
    """Choose the block's warps: the least work for the multiprocessor that has most blocks to do.

    Parameters
    ----------
    problem : Im2winProblem
        Of the part.
    device : DeviceLimits
        Whose multiprocessors share the blocks.

    Returns
    -------
    tuple of int
        An entry of `TILES`; the first of equals.
    """

    def cost(tile: tuple[int, int]) -> int:
        tile_m, tile_n = tile[0] * 32, tile[1] * 64
        blocks = ceil_div(problem.filters, tile_m) * ceil_div(problem.columns, tile_n)
        return ceil_div(blocks, device.multiprocessors) * (tile_m * tile_n + _STAGING * (tile_m + tile_n))

    return min(TILES, key=cost)


def _filter_size(problem: Im2winProblem) -> dict[str, int]:
    return {"FILTER_HEIGHT": problem.filter_height, "FILTER_WIDTH": problem.filter_width}
