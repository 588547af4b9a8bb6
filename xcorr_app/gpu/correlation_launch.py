"""Launch parameters of the correlation kernels: a variant and a problem in; grid, defines and memory out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.correlation_problem import INPUT_TYPES, Problem
from xcorr_app.gpu.correlation_tuning import TUNING, combined_tile, row_product_shape, segment_count

__all__ = ["VARIANTS", "DeviceLimits", "Launch", "launch_of", "most_pairs"]

WARP = 32
LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus threads


@dataclass(frozen=True)
class DeviceLimits:
    """What launches need to know of a device; the defaults fit any from compute capability 8.0 on.

    Attributes
    ----------
    multiprocessors : int
        Number of multiprocessors.
    shared_bytes : int
        Most shared memory of one block.
    """

    multiprocessors: int = 132
    shared_bytes: int = 99 * 1024


@dataclass(frozen=True)
class Launch:
    """How one kernel is compiled and started for one problem.

    Attributes
    ----------
    kernel : str
        Path below the kernels' root without its ending.
    defines : mapping
        Macros to compile it with.
    blocks, threads, shared_bytes : int
        Grid (one axis), block (one axis) and dynamic shared memory in bytes.
    extra : tuple of int
        Kernel arguments that follow the problem's.
    segments : int
        Planes that a launch leaves in a workspace where more than one, to be added up by `sum_of_segments`.
    zero_first : bool
        The kernel adds into the plane, or leaves shifts without overlap alone: it must be zero before.
    block_y : int
        Shifts dy a block computes; the sum over segments needs it.
    then : Launch or None
        A second launch on the same arrays.
    """

    kernel: str
    defines: Mapping[str, str | int]
    blocks: int
    threads: int
    shared_bytes: int = 0
    extra: tuple[int, ...] = ()
    segments: int = 1
    zero_first: bool = False
    block_y: int = 1
    then: Launch | None = None

    @property
    def entry(self) -> str:
        """Name of the kernel."""
        return self.kernel.rsplit("/", 1)[-1]

    def sum_of_segments(self, problem: Problem) -> Launch:
        """Return the launch that adds up the segments' planes."""
        defines = {name: self.defines[name] for name in ("INPUT_TYPE", "SUM_TYPE")}
        threads, (height, width) = 256, problem.plane_shape
        blocks = problem.pairs * _ceil(height * width, threads)
        defines |= {"THREADS": threads, "BLOCK_Y": self.block_y}
        return Launch("correlation/sum_segments", defines, blocks, threads, extra=self.extra)


def launch_of(
    variant: str,
    problem: Problem,
    *,
    input_type: str = "float32",
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
    input_type : str, optional
        NumPy name of the matrices' type.
    sum_type : str, optional
        ``"float"`` or ``"double"``: type of the sums and of the plane.
    device : DeviceLimits, optional
        Decides how finely few pairs are cut and how much is staged at a time.
    tuning : mapping, optional
        Values of the kernel's macros that replace the table's; also ``SEGMENTS`` for ``combined``.

    Returns
    -------
    Launch
        Ready to compile and start.

    Raises
    ------
    ArgumentError
        For an unknown variant, type or macro, or a form the variant does not compute.
    """
    if variant not in VARIANTS:
        raise ArgumentError(f"unknown variant {variant!r}; choose from {', '.join(VARIANTS)}")
    if input_type not in INPUT_TYPES:
        raise ArgumentError(f"kernels read {', '.join(INPUT_TYPES)}, not {input_type}; convert the matrices first")
    if sum_type not in ("float", "double"):
        raise ArgumentError(f"sums are float or double, not {sum_type!r}")
    device = device or DeviceLimits()
    chosen = dict(TUNING.get(variant, {})) | dict(tuning or {})
    types: dict[str, str | int] = {"INPUT_TYPE": INPUT_TYPES[input_type], "SUM_TYPE": sum_type}
    return VARIANTS[variant](problem, types, chosen, device)


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
    # No kernel has more threads, warps or blocks a pair than shifts and rows together, but for the one where every
    # overlapping row of every shift may be a worker.
    tasks = height * width + problem.left_shape[0] + problem.right_shape[0]
    if variant == "warp-shuffle-distributed":
        tasks = height * problem.left_shape[0] * _ceil(width, WARP)
    pairs = LARGEST_INDEX // tasks
    if pairs < 1:
        raise ArgumentError(
            f"a plane of {height} x {width} shifts is too large for {variant}; ask for a smaller window"
        )
    return pairs


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


Types = Mapping[str, str | int]


def _per_shift(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    threads = tuning["THREADS"]
    blocks = _ceil(problem.pairs * shifts, threads)
    return Launch("correlation/overlap_wise", {**types, **tuning}, blocks, threads)


def _shift_per_warp(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    per_block = tuning["SHIFTS_PER_BLOCK"]
    blocks = _ceil(problem.pairs * shifts, per_block)
    return Launch("correlation/shift_per_warp", {**types, **tuning}, blocks, per_block * WARP)


def _by_warp(kernel: str, types: Types, tuning: Mapping[str, int], warps: int, *, zero_first: bool = False) -> Launch:
    """Return the launch of a kernel whose tasks are warps, ``WARPS`` of them a block."""
    per_block = tuning["WARPS"]
    blocks = _ceil(warps, per_block)
    return Launch(f"correlation/{kernel}", {**types, **tuning}, blocks, per_block * WARP, zero_first=zero_first)


def _warp_shuffle(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    return _by_warp("warp_shuffle", types, tuning, problem.pairs * height * _ceil(width, WARP))


def _distributed(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    (height, width), rows = problem.plane_shape, tuning["MAX_ROWS"]
    if tuning["DISTRIBUTION"] == 0:
        workers = height
    elif tuning["DISTRIBUTION"] == 1:
        workers = height * _ceil(min(problem.left_shape[0], problem.right_shape[0]), rows)
    else:
        workers = sum(_ceil(overlap, rows) for overlap in overlap_heights(problem))
    warps = max(1, problem.pairs * workers * _ceil(width, WARP))
    return _by_warp("warp_shuffle_distributed", types, tuning, warps, zero_first=True)


def _multi_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    groups = problem.lefts * _ceil(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_right", types, tuning, groups * height * _ceil(width, WARP))


def _multi_left_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    if not problem.shared_rights:
        raise ArgumentError("multi-left-right needs form n-to-m: every left meets the same rights")
    height, width = problem.plane_shape
    groups = _ceil(problem.lefts, tuning["LEFTS"]) * _ceil(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_left_right", types, tuning, groups * height * _ceil(width, WARP))


def _multi_row(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    height, width = problem.plane_shape
    return _by_warp("multi_row", types, tuning, problem.pairs * _ceil(height, tuning["SHIFTS"]) * _ceil(width, WARP))


def _combined(problem: Problem, types: Types, tuning: Mapping[str, int], device: DeviceLimits) -> Launch:
    macros = combined_tile(problem, is_double=types["SUM_TYPE"] == "double") | dict(tuning)
    asked = macros.pop("SEGMENTS", 0)
    block_x, block_y = macros["TILE_X"] * macros["WARPS_X"], macros["TILE_Y"] * macros["WARPS_Y"]
    if macros["WARPS_X"] > 1 and macros["TILE_X"] % 4:
        raise ArgumentError(f"TILE_X = {macros['TILE_X']} must be a multiple of 4 where WARPS_X is more than 1")
    tiles = _ceil(problem.plane_shape[0], block_y) * _ceil(problem.plane_shape[1], block_x)
    rows = min(problem.left_shape[0], problem.right_shape[0] + block_y - 1)
    wanted = asked or segment_count(problem, tiles, rows, device.multiprocessors)
    segment_rows = _ceil(rows, wanted)
    segments = _ceil(rows, segment_rows)
    while (floats := _staged_floats(macros, block_x, block_y)) * 4 > device.shared_bytes:
        longer = max(("CHUNK_ROWS", "CHUNK_COLUMNS"), key=lambda name: macros[name])
        macros[longer] = macros[longer] // 8 * 4
        if macros[longer] < 4:
            raise ArgumentError(f"a tile of {block_y} x {block_x} shifts needs more shared memory than the device has")
    warps = macros["WARPS_X"] * macros["WARPS_Y"] * macros["WARPS_K"]
    sum_bytes = 8 if types["SUM_TYPE"] == "double" else 4
    exchange = warps * macros["TILE_X"] * macros["TILE_Y"] * sum_bytes if macros["WARPS_K"] > 1 else 0
    return Launch(
        "correlation/combined",
        {**types, **macros},
        problem.pairs * tiles * segments,
        warps * WARP,
        max(4 * floats, exchange),
        extra=(segments, segment_rows),
        segments=segments,
        block_y=block_y,
    )


def _staged_floats(macros: Mapping[str, int], block_x: int, block_y: int) -> int:
    """Return the size of the tiles of ``combined``: its LEFT_COLUMNS and RIGHT_ROWS."""
    rows, columns = macros["CHUNK_ROWS"], macros["CHUNK_COLUMNS"]
    return rows * ((columns + block_x + 6) // 4 * 4) + (rows + block_y - 1) * columns


def _row_product(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    macros = row_product_shape(
        problem, is_double=types["SUM_TYPE"] == "double", is_float=types["INPUT_TYPE"] == "float"
    ) | dict(tuning)
    block, pairs, shift_rows = macros["BLOCK"], macros["PAIRS"], macros["SHIFT_ROWS"]
    groups = _ceil(max(problem.left_shape[0], problem.right_shape[0]), shift_rows)
    one_piece = max(problem.left_shape[1], problem.right_shape[1]) <= block
    macros["STORE"] = int(one_piece)
    if pairs not in (1, 2, 4, 8):
        raise ArgumentError(f"PAIRS = {pairs} must be 1, 2, 4 or 8")
    macros["WHOLE"] = int(max(problem.left_shape[0], problem.right_shape[0]) <= macros["CHUNK_ROWS"])
    rows = 2 * macros["CHUNK_ROWS"] + (0 if macros["WHOLE"] else shift_rows - 1)
    pair_floats = _ceil(rows * (block + 4), 32) * 32 + 32 // min(pairs, 8)
    largest_offset = max(_ceil(problem.left_shape[1], block), _ceil(problem.right_shape[1], block)) - 1
    even = Launch(
        "correlation/row_product",
        {**types, **macros},
        _ceil(problem.pairs, pairs) * groups * (2 * (largest_offset // 2) + 1),
        pairs * shift_rows,
        4 * pairs * pair_floats,
        extra=(0,),
        zero_first=not (one_piece and problem.within_full_plane()),
    )
    if largest_offset == 0:
        return even
    odd_blocks = _ceil(problem.pairs, pairs) * groups * (2 * ((largest_offset + 1) // 2))
    return replace(even, then=replace(even, blocks=odd_blocks, extra=(1,), zero_first=False))


def overlap_heights(problem: Problem) -> list[int]:
    """Return the number of overlapping rows at each dy of the window.

    Parameters
    ----------
    problem : Problem
        Any.

    Returns
    -------
    list of int
        One height a row of the plane, 0 where nothing overlaps.
    """
    (left, _), (right, _) = problem.left_shape, problem.right_shape
    shifts = range(problem.first_shift[0], problem.first_shift[0] + problem.plane_shape[0])
    return [max(0, min(right, left - dy) - max(0, -dy)) for dy in shifts]


VARIANTS: dict[str, Callable[[Problem, Types, Mapping[str, int], DeviceLimits], Launch]] = {
    "overlap-wise": _per_shift,
    "shift-per-warp": _shift_per_warp,
    "warp-shuffle": _warp_shuffle,
    "warp-shuffle-distributed": _distributed,
    "multi-right": _multi_right,
    "multi-left-right": _multi_left_right,
    "multi-row": _multi_row,
    "combined": _combined,
    "row-product": _row_product,
}
"""Every variant by name, in the order of the ablation."""
