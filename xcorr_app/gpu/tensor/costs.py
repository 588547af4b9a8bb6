"""How long the tensor-core kernels take: models of counted work, with constants measured on one H200.

Sums of products are counted over whole tiles of shifts. What a way to peaks or planes does besides takes a constant,
and a time for an element or a shift.
"""

from __future__ import annotations

import math

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.costs import MEASURED_MULTIPROCESSORS, in_turns, search_cost
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch, moving_is_left
from xcorr_app.gpu.tensor.hankel_frames import FRAMES, frames_launch, tile_time
from xcorr_app.gpu.tensor.hankel_pieces import pieces_launch
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch
from xcorr_app.gpu.tensor.small_planes import small_planes_launch

__all__ = [
    "beside_peaks",
    "beside_planes",
    "frames_cost",
    "hankel_cost",
    "pieces_cost",
    "shares_one",
    "small_peaks_cost",
    "small_planes_cost",
    "split_hankel_cost",
    "warpgroup_cost",
]

_PIECES = 2.5e8
"""Products of fp16 a microsecond, where all multiprocessors have blocks."""
_HANKEL_ELEMENT, _HANKEL_TILE = 5.1e-4, 1.5e-4
"""Microseconds of a row and column in ``hankel`` in fp16, of one multiprocessor: staged, and for a tile of shifts."""
_SPLIT_UNIT = 4.8e-4
"""Microseconds of a row and column of a tile of 16 x 8 shifts in ``hankel`` in split fp16, of one multiprocessor."""
_TILES_OF_SPLIT, _TILES_OF_UNALIGNED, _START_OF_SPLIT = 0.4, 0.57, 0.245
"""Tiles that it could sum while it stages an element, and more for either side whose rows are not read by fours; and
the share of a window's rows that staging them before the first row takes."""
_UNIT = 2.6e-7
"""Microseconds of a row and column of a tile of 16 x 8 shifts in ``hankel_warpgroup``, the measure of the next four."""
_TILES_OF_WARPGROUP = 6.5
"""Tiles of 16 x 8 shifts that it could sum in the time that it takes besides its tiles."""
_START_OF_FRAMES, _START_OF_WARPGROUP = 12, 20
"""Rows of a piece, or segment, that could be summed until its first one is, in either."""
_MIN_COLUMNS_OF_WARPGROUP = 200
"""Fewer take it as long."""
_FRAMES_SHARE = 0.85
"""Of the model's time that ``hankel_frames`` takes, as the median of measurements."""
_FEW_PIECES = 2
"""Blocks of ``hankel_pieces`` for a multiprocessor up to which they take less time than products of four warps, whose
segments are long: of 2 to 32 matrices of 128^2 to 2048^2 at most 8 % more, and down to half."""

_LATENCY = 27.0
"""Microseconds of a launch each of sums, search and neighbourhoods, with nothing to do."""
_NEIGHBOURHOOD = 1.1e-6
"""Microseconds an element that the sums around a peak take in single precision."""
_TABLE_OF_PEAKS = 3.3e-6
"""Microseconds an element of summed-area tables, beyond those that the models of engine direct hold."""
_TABLE, _PLANE_LATENCY, _UNCENTRE = 1.1e-6, 46.0, 2e-6
"""Microseconds an element of summed-area tables, of planes' four launches, and a shift of a plane made plain."""

_SMALL_LATENCY = 6.2
"""Microseconds of the launch that does all of a pair in one block, of a pair alone."""
_SMALL_PRODUCTS = 2e8
"""Products of fp16 a microsecond in that launch."""
_SMALL_ELEMENT, _SMALL_SHIFT, _SMALL_PAIR = 1e-6, 4e-6, 0.006
"""Microseconds there: an element of either matrix (tables, fp16 copy), a shift (its centre, search), a pair."""
_PLANES_ELEMENT, _PLANES_SHIFT, _PLANES_PAIR = 1.5e-6, 1e-6, 0.022
"""The same of the launch that writes planes."""


def shares_one(problem: Problem) -> int:
    """Matrices that move over one fixed matrix."""
    return problem.pairs if moving_is_left(problem) else problem.rights_per_left


def frames_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel_frames``: whole bundles of 64 frames."""
    launch = frames_launch(problem, device=device).products
    tiles_y, tiles_x, panels, segments, segment_rows = launch.extra
    tiles = tiles_y * tiles_x * tile_time(int(launch.defines["EX_TILES"]), int(launch.defines["N_TILES"]))
    elements = panels * int(launch.defines["PANEL"]) * segments * (segment_rows + _START_OF_FRAMES)
    return _FRAMES_SHARE * _in_units(problem, FRAMES, tiles * elements, launch, device)


def warpgroup_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel_warpgroup``: whole bundles of four matrices."""
    launch = hankel_launch(problem, warpgroup=True, device=device).launch
    tiles_y, tiles_x, segments, segment_rows = launch.extra[:4]
    tiles = tiles_y * tiles_x * (int(launch.defines["M_TILES"]) * int(launch.defines["N_TILES"]) + _TILES_OF_WARPGROUP)
    width = (problem.left_shape if moving_is_left(problem) else problem.right_shape)[1]
    elements = max(width, _MIN_COLUMNS_OF_WARPGROUP) * segments * (segment_rows + _START_OF_WARPGROUP)
    return _in_units(problem, 4, tiles * elements, launch, device)


def pieces_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel_pieces``; infinite for many pairs, of which longer segments read less."""
    chosen = pieces_launch(problem, device=device)
    if chosen is None:
        return math.inf
    four_share = device.has_wgmma and shares_one(problem) >= 4
    if four_share and chosen.launch.blocks > _FEW_PIECES * device.multiprocessors:
        return math.inf
    return _of_tiles(problem, chosen.launch, device, _PIECES)


def hankel_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel``; infinite where products of four warps take the problem, at twice its rate."""
    if device.has_wgmma and shares_one(problem) >= 4:
        return math.inf
    launch = hankel_launch(problem, device=device).launch
    m_tiles, n_tiles, panel, teams = (int(launch.defines[name]) for name in ("M_TILES", "N_TILES", "PANEL", "TEAMS"))
    width, fixed_width = problem.right_shape[1], problem.left_shape[1]
    if moving_is_left(problem):
        width, fixed_width = fixed_width, width
    columns = ceil_div(min(fixed_width, width + 16 * m_tiles), panel) * panel
    waves = max(1.0, math.ceil(launch.blocks / device.multiprocessors))
    return waves * teams * launch.extra[3] * columns * (_HANKEL_ELEMENT + _HANKEL_TILE * m_tiles * n_tiles)


def split_hankel_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel`` of values in split fp16: whole panels of columns, of the rows that meet any of the window."""
    launch = hankel_launch(problem, split=2, device=device).launch
    (height, width), (fixed_height, fixed_width) = problem.right_shape, problem.left_shape
    if moving_is_left(problem):
        (height, width), (fixed_height, fixed_width) = problem.left_shape, problem.right_shape
    m_tiles, n_tiles, panel = (int(launch.defines[name]) for name in ("M_TILES", "N_TILES", "PANEL"))
    columns = ceil_div(min(fixed_width, width + 16 * m_tiles), panel) * panel
    rows = launch.extra[3] * min(1.0, (fixed_height + 8 * n_tiles) / height) + _START_OF_SPLIT * 8 * n_tiles
    unaligned = (width % 4 != 0) + (fixed_width % 4 != 0)
    tiles = m_tiles * n_tiles + _TILES_OF_SPLIT + _TILES_OF_UNALIGNED * unaligned
    waves = max(1.0, math.ceil(launch.blocks / device.multiprocessors))
    return _SPLIT_UNIT * waves * int(launch.defines["TEAMS"]) * rows * columns * tiles


def beside_peaks(problem: Problem, device: DeviceLimits) -> float:
    """What follows sums on the way to peaks: the search, and values around each peak recomputed."""
    elements = problem.pairs * math.prod(problem.right_shape)
    scale = MEASURED_MULTIPROCESSORS / device.multiprocessors
    return _LATENCY + elements * _NEIGHBOURHOOD * scale + search_cost(problem, device)


def tables_of_peaks(problem: Problem, device: DeviceLimits) -> float:
    """Summed-area tables of the right matrices, which scores need."""
    elements = problem.rights * math.prod(problem.right_shape)
    return elements * _TABLE_OF_PEAKS * MEASURED_MULTIPROCESSORS / device.multiprocessors


def beside_planes(problem: Problem, device: DeviceLimits) -> float:
    """What planes take besides sums: tables of both sides, and centred sums made plain."""
    elements = problem.lefts * math.prod(problem.left_shape) + problem.rights * math.prod(problem.right_shape)
    shifts = problem.pairs * math.prod(problem.plane_shape)
    scale = MEASURED_MULTIPROCESSORS / device.multiprocessors
    return _PLANE_LATENCY + (elements * _TABLE + shifts * _UNCENTRE) * scale


def small_peaks_cost(problem: Problem, device: DeviceLimits) -> float:
    """Peaks of plain sums of small matrices, in one launch; infinite where it does not take them."""
    if small_hankel_launch(problem, left_type="float32", right_type="float32", device=device) is None:
        return math.inf
    return _of_small(problem, device, 1, (_SMALL_ELEMENT, _SMALL_SHIFT, _SMALL_PAIR))


def small_planes_cost(problem: Problem, device: DeviceLimits, split: int = 2) -> float:
    """Planes of small matrices, in one launch; infinite where it does not take them."""
    if small_planes_launch(problem, left_type="float32", right_type="float32", device=device, split=split) is None:
        return math.inf
    products = 3 if split == 2 else 1
    return _of_small(problem, device, products, (_PLANES_ELEMENT, _PLANES_SHIFT, _PLANES_PAIR))


def _of_small(problem: Problem, device: DeviceLimits, products: int, each: tuple[float, float, float]) -> float:
    of_element, of_shift, of_pair = each
    elements = math.prod(problem.left_shape) + math.prod(problem.right_shape)
    multiplying = products * problem.products / problem.pairs / _SMALL_PRODUCTS
    pair = of_pair + multiplying + elements * of_element + math.prod(problem.plane_shape) * of_shift
    return _SMALL_LATENCY + in_turns(problem, device) * pair


def _of_tiles(problem: Problem, launch: Launch, device: DeviceLimits, rate: float) -> float:
    tile = 8 * int(launch.defines["N_TILES"]) * 16 * int(launch.defines["M_TILES"])
    busy = min(device.multiprocessors, launch.blocks) / MEASURED_MULTIPROCESSORS
    products = problem.pairs * math.prod(problem.right_shape) * tile * launch.extra[0] * launch.extra[1]
    return products / (rate * busy)


def _in_units(problem: Problem, together: int, each: float, launch: Launch, device: DeviceLimits) -> float:
    """Microseconds of so many units a matrix, those included that fill up bundles and the last wave of blocks."""
    references = 1 if moving_is_left(problem) else problem.lefts
    matrices = references * ceil_div(shares_one(problem), together) * together
    share = launch.blocks / device.multiprocessors
    waiting = math.ceil(share) / share
    return _UNIT * matrices * each * waiting * MEASURED_MULTIPROCESSORS / device.multiprocessors
