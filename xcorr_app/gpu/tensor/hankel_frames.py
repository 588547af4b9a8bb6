"""Launch parameters of the tensor-core kernel for many frames that meet one reference: a problem in; launches out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.hankel import hankel_launch, slides_left

__all__ = ["FramesLaunch", "frames_launch", "takes_frames"]

_FRAMES = 64
"""Rows of a product."""
_SIZES = (8, 11, 16, 17, 24, 32)
"""Numbers of ey of a tile."""
_KINDS = ((2, 32, 4, 1, 5.1), (3, 17, 2, 4, 4.5), (3, 24, 2, 2, 6.1), (4, 17, 2, 2, 6.1), (5, 11, 2, 4, 4.9))
"""Of tiles: groups of eight ex, most ey, sets of warps that bring rows, warps of a set, as a block's registers hold
them; and how long a tile takes at least, as long as so many of 16 x 8 shifts in ``hankel_warpgroup``."""
_EACH = 0.01
"""How much longer for every eight shifts: little, as bringing rows takes as long as the products, or longer."""
_OF_FOUR = 6.5
"""Tiles of 16 x 8 shifts that ``hankel_warpgroup`` could sum in the time that it takes besides its tiles."""
_BEGINNING, _BEGINNING_OF_FOUR = 12, 20
"""Rows of a piece, or segment, that could be summed until its first one is, in either."""
_LEAST_COLUMNS_OF_FOUR = 200
"""Fewer take ``hankel_warpgroup`` as long."""
_TUNING = {"PANEL": 64, "FRAME_BUFFERS": 4}
_CHAIN = 2048
"""Products that may add to one sum: each cuts off up to 2^-23 of it."""
_LEAST_ROWS = 32
"""Of a piece: each leaves its sums in the workspace."""
_SURELY = 0.95
"""Share of the other's expected time below which these launches are taken: the model is no better than that."""
_MOST_PLACES, _MOST_WORKSPACE = 256 << 20, 256 << 20
"""Bytes of the references' places, and of the sums of all pieces."""


@dataclass(frozen=True)
class FramesLaunch:
    """Three launches, one after the other, and the memory between them.

    Attributes
    ----------
    places : Launch
        Makes the references' places. Arguments: references, their tables, the places, then height, width and cells of
        a table, and `Launch.extra`.
    products : Launch
        Arguments: lefts, rights, the places, the workspace, left tables, right tables, problem, cells of a left table,
        cells of a right table, then `Launch.extra`.
    sums : Launch
        Arguments: the workspace, planes, left tables, right tables, then as `products`.
    place_words, workspace : int
        Elements of the places, uint32, and of the workspace, float32.
    """

    places: Launch
    products: Launch
    sums: Launch
    place_words: int
    workspace: int


def takes_frames(problem: Problem, device: DeviceLimits | None = None) -> bool:
    """Whether these launches are expected to take less time than ``hankel_warpgroup``, and fit memory.

    Parameters
    ----------
    problem : Problem
        Any.
    device : DeviceLimits, optional
        One with products of four warps.

    Returns
    -------
    bool
        By a model of both times.
    """
    device = device or DeviceLimits()
    chosen = frames_launch(problem, device=device)
    if 4 * chosen.place_words > _MOST_PLACES or 4 * chosen.workspace > _MOST_WORKSPACE:
        return False
    theirs = hankel_launch(problem, warpgroup=True, device=device).launch
    return _expected(problem, chosen.products, device) < _SURELY * _expected_of_four(problem, theirs, device)


def _expected(problem: Problem, launch: Launch, device: DeviceLimits) -> float:
    tiles_y, tiles_x, panels, segments, segment_rows = launch.extra
    tiles = tiles_y * tiles_x * _time(int(launch.defines["EX_TILES"]), int(launch.defines["N_TILES"]))
    elements = panels * int(launch.defines["PANEL"]) * segments * (segment_rows + _BEGINNING)
    return _filled(problem, _FRAMES) * tiles * elements * _waiting(launch, device)


def _expected_of_four(problem: Problem, launch: Launch, device: DeviceLimits) -> float:
    tiles_y, tiles_x, segments, segment_rows = launch.extra[:4]
    tiles = tiles_y * tiles_x * (int(launch.defines["M_TILES"]) * int(launch.defines["N_TILES"]) + _OF_FOUR)
    width = (problem.left_shape if slides_left(problem) else problem.right_shape)[1]
    elements = max(width, _LEAST_COLUMNS_OF_FOUR) * segments * (segment_rows + _BEGINNING_OF_FOUR)
    return _filled(problem, 4) * tiles * elements * _waiting(launch, device)


def _waiting(launch: Launch, device: DeviceLimits) -> float:
    """Time that blocks take as a multiple of what they would if all multiprocessors were busy to the end."""
    share = launch.blocks / device.multiprocessors
    return math.ceil(share) / share


def _filled(problem: Problem, together: int) -> int:
    """Frames of a reference, those included that products of so many are filled up with."""
    return ceil_div(problem.pairs if slides_left(problem) else problem.rights_per_left, together) * together


def frames_launch(
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> FramesLaunch:
    """Choose the launches that make planes of centred sums of many frames that meet one reference.

    Parameters
    ----------
    problem : Problem
        Any; frames are the rights of a left, or the lefts of the only right.
    left_type, right_type : str, optional
        NumPy names of the matrices' types.
    device : DeviceLimits, optional
        Decides how finely frames are cut.
    tuning : mapping, optional
        Macro values that replace the table's; also ``SEGMENTS``.

    Returns
    -------
    FramesLaunch
        Ready to compile and start.

    Raises
    ------
    ArgumentError
        For a name that the kernel does not have.
    """
    device = device or DeviceLimits()
    of_left = slides_left(problem)
    frame_shape, one_shape = problem.right_shape, problem.left_shape
    if of_left:
        frame_shape, one_shape = one_shape, frame_shape
    rows, columns = problem.plane_shape
    macros = {**_TUNING, **_tile(rows, columns, tuning or {})}
    refuse_unknown("hankel_frames", tuning or (), (*macros, "SEGMENTS"))
    macros |= tuning or {}
    asked = macros.pop("SEGMENTS", 0)
    tiles_y, tiles_x = ceil_div(rows, macros["N_TILES"]), ceil_div(columns, 8 * macros["EX_TILES"])
    ones = 1 if of_left else problem.lefts
    bundles = ones * ceil_div(problem.pairs if of_left else problem.rights_per_left, _FRAMES)
    panels = ceil_div(frame_shape[1], macros["PANEL"])
    parts = bundles * tiles_y * tiles_x
    segments = asked or _segments(parts * panels, device.multiprocessors, frame_shape[0], macros["PANEL"])
    segment_rows = ceil_div(frame_shape[0], segments)
    segments = ceil_div(frame_shape[0], segment_rows)
    threads, pieces = 128 * macros["EX_TILES"], panels * segments
    bringing = 32 * macros["SETS"] * macros["SET_WARPS"]
    defines: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "FRAMES_ARE_LEFT": int(of_left),
    }
    products = Launch(
        "tensor/hankel_frames",
        {**defines, **macros},
        parts * pieces,
        threads + bringing,
        _shared_bytes(macros),
        (tiles_y, tiles_x, panels, segments, segment_rows),
        segments=pieces,
    )
    tile = {name: macros[name] for name in ("N_TILES", "EX_TILES")}
    sums = Launch(
        "tensor/sum_frames",
        {**defines, **tile},
        parts * macros["N_TILES"],
        threads,
        extra=(tiles_y, tiles_x, pieces),
    )
    places = _places(right_type if of_left else left_type, ones, one_shape)
    place_words = 4 * ones * one_shape[0] * (one_shape[1] + 7)
    return FramesLaunch(places, products, sums, place_words, parts * pieces * threads * 4 * macros["N_TILES"])


def _tile(rows: int, columns: int, tuning: Mapping[str, int]) -> dict[str, int]:
    """Shifts that a block sums, groups of eight ex and number of ey, and who brings it rows."""
    allowed = [(groups, size) for groups, most, *_ in _KINDS for size in _SIZES if size <= most]
    if "EX_TILES" in tuning and "N_TILES" in tuning:
        allowed = [(tuning["EX_TILES"], tuning["N_TILES"])]

    def cost(tile: tuple[int, int]) -> float:
        groups, size = tile
        return ceil_div(rows, size) * ceil_div(columns, 8 * groups) * _time(groups, size)

    groups, size = min(allowed, key=cost)
    _, _, sets, set_warps, _ = _kind(groups, size)
    return {"EX_TILES": groups, "N_TILES": size, "SETS": sets, "SET_WARPS": set_warps}


def _time(groups: int, size: int) -> float:
    """Time of a tile of so many groups of eight ex, and so many ey."""
    return _kind(groups, size)[-1] + groups * size * _EACH


def _kind(groups: int, size: int) -> tuple[int, int, int, int, float]:
    fitting = (kind for kind in _KINDS if kind[0] == groups and size <= kind[1])
    return next(fitting, (groups, size, 1, 4, 0.0))


def _places(element: str, matrices: int, shape: tuple[int, int]) -> Launch:
    threads = 256
    blocks = ceil_div(shape[0] * (shape[1] + 7), threads)
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element], "THREADS": threads}
    return Launch("tensor/to_fp16_hankel", defines, matrices * blocks, threads, extra=(blocks,))


def _segments(parts: int, slots: int, rows: int, panel: int) -> int:
    """Number of segments of the rows at which as many blocks are busy to the end as may be, the smallest if several."""
    fewest = ceil_div(rows * panel, 16 * _CHAIN)

    def cost(segments: int) -> float:
        share = parts * segments / slots
        return math.ceil(share) / share * (1 + 0.01 * segments)

    return min(range(fewest, max(fewest, min(rows // _LEAST_ROWS, 64)) + 1), key=cost)


def _shared_bytes(macros: Mapping[str, int]) -> int:
    """Bytes of a block of ``hankel_frames``, as the kernel lays them out."""
    met, buffers = macros["N_TILES"] - 1, macros["FRAME_BUFFERS"]
    rows = 2 * met + buffers + macros["SETS"]
    places = macros["PANEL"] + 8 * (macros["EX_TILES"] - 1)
    chunk = 16 * _FRAMES + (32 if macros["PANEL"] < 64 else 16)  # as the kernel pads its stores
    return 16 * (2 + _FRAMES + buffers + rows * places) + buffers * macros["PANEL"] // 8 * chunk
