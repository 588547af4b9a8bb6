"""How long the tensor-core kernels take: models of counted work, with constants measured on one H200.

Sums of products are counted over whole tiles of shifts. What a way to peaks or planes does besides takes a constant,
and a time for an element or a shift.
"""

from __future__ import annotations

import math

from xcorr_app.gpu.direct.costs import share_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.costs import search_cost
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch, moving_is_left
from xcorr_app.gpu.tensor.hankel_frames import FRAMES, frames_launch, tile_time

_HANKEL_ELEMENT, _HANKEL_TILE = 5.1e-4, 1.5e-4
"""Microseconds of a row and column in ``hankel`` in fp16, of one multiprocessor: staged, and for a tile of shifts."""
_UNIT = 2.6e-7
"""Microseconds of a row and column of a tile of 16 x 8 shifts in ``hankel_warpgroup``, the measure of the next four."""
_TILES_OF_WARPGROUP = 6.5
"""Tiles of 16 x 8 shifts that it could sum in the time that it takes besides its tiles."""
_START = 16
"""Rows of a piece, or segment, that could be summed until its first one is, in either."""
_MIN_COLUMNS_OF_WARPGROUP = 200
"""Fewer take it as long."""
_FRAMES_SHARE = 0.85
"""Of the model's time that ``hankel_frames`` takes, as the median of measurements."""
_LATENCY = 27.0
"""Microseconds of a launch each of sums, search and neighbourhoods, with nothing to do."""
_NEIGHBOURHOOD = 1.1e-6
"""Microseconds an element that the sums around a peak take in single precision."""
_TABLE_OF_PEAKS = 3.3e-6
"""Microseconds an element of summed-area tables, beyond those that the models of engine direct hold."""


def shares_one(problem: Problem) -> int:
    """Matrices that move over one fixed matrix."""
    return problem.pairs if moving_is_left(problem) else problem.rights_per_left


def frames_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel_frames``: whole bundles of 64 frames."""
    launch = frames_launch(problem, device=device).products
    tiles_y, tiles_x, panels, segments, segment_rows = launch.extra
    tiles = tiles_y * tiles_x * tile_time(int(launch.defines["EX_TILES"]), int(launch.defines["N_TILES"]))
    elements = panels * int(launch.defines["PANEL"]) * segments * (segment_rows + _START)
    return _FRAMES_SHARE * _in_units(problem, FRAMES, tiles * elements, launch, device)


def warpgroup_cost(problem: Problem, device: DeviceLimits) -> float:
    """Sums by ``hankel_warpgroup``: whole bundles of four matrices."""
    launch = hankel_launch(problem, warpgroup=True, device=device).launch
    tiles_y, tiles_x, segments, segment_rows = launch.extra[:4]
    tiles = tiles_y * tiles_x * (int(launch.defines["M_TILES"]) * int(launch.defines["N_TILES"]) + _TILES_OF_WARPGROUP)
    width = (problem.left_shape if moving_is_left(problem) else problem.right_shape)[1]
    elements = max(width, _MIN_COLUMNS_OF_WARPGROUP) * segments * (segment_rows + _START)
    return _in_units(problem, 4, tiles * elements, launch, device)


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


def beside_peaks(problem: Problem, device: DeviceLimits) -> float:
    """What follows sums on the way to peaks: the search, and values around each peak recomputed."""
    elements = problem.pairs * math.prod(problem.right_shape)
    return _LATENCY + elements * _NEIGHBOURHOOD * share_of(device) + search_cost(problem, device)


def tables_of_peaks(problem: Problem, device: DeviceLimits) -> float:
    """Summed-area tables of the right matrices, which scores need."""
    elements = problem.rights * math.prod(problem.right_shape)
    return elements * _TABLE_OF_PEAKS * share_of(device)


def _in_units(problem: Problem, together: int, each: float, launch: Launch, device: DeviceLimits) -> float:
    """Microseconds of so many units a matrix, of whole bundles, on as many multiprocessors as there are blocks."""
    references = 1 if moving_is_left(problem) else problem.lefts
    matrices = references * ceil_div(shares_one(problem), together) * together
    return _UNIT * matrices * each * share_of(device) * max(1.0, device.multiprocessors / launch.blocks)
