"""Launch parameters of the kernels that find peaks: a problem in; grids, defines and memory out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xcorr_app.gpu.correlation_problem import INPUT_TYPES, Problem
from xcorr_app.gpu.correlation_tuning import window_tile
from xcorr_app.gpu.launch import DeviceLimits, Launch, ceil_div
from xcorr_app.gpu.tile_launches import combined_launch

__all__ = ["RECORD", "SMALL", "moment_launches", "peak_launch", "plane_peak_launch", "uncentre_launch"]

RECORD = 29
"""Numbers a peak's record holds: row and column in the plane, value, highest rival, the 5 x 5 values around."""

_SCRATCH = 64
"""Floats by which the threads of a block agree on a peak."""
_FEW_SHIFTS = 2048

SMALL = 128 * 128
"""Pixels up to which one block makes a matrix's whole table."""


@dataclass(frozen=True)
class MomentLaunches:
    """The launches that make the tables of rectangle sums of one side's matrices: one for small matrices, else two."""

    small: Launch
    sums: Launch
    table: Launch


def moment_launches(element: str, images: int, bands: int) -> MomentLaunches:
    """Choose the launches that make rectangle sums.

    Parameters
    ----------
    element : str
        NumPy name of the matrices' type.
    images, bands : int
        Number of matrices, and of bands of rows of each.

    Returns
    -------
    MomentLaunches
        Kernel arguments of the three: images, band edges, edge of each column, tables, height, width, bands, column
        cells; images, band edges, column edges, cells, height, width, bands, column cells; cells, tables, bands, column
        cells.
    """
    threads, few = 256, 128
    kept_bytes = 16 * few // 32 + 4 * few + 16
    of_element: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element]}
    return MomentLaunches(
        Launch("correlation/small_table", {**of_element, "THREADS": few}, images, few),
        Launch("correlation/overlap_sums", {**of_element, "THREADS": few}, images * bands, few, kept_bytes),
        Launch("correlation/overlap_table", {"THREADS": threads}, images, threads),
    )


def plane_peak_launch(
    problem: Problem, *, normalize: bool, device: DeviceLimits, centred: tuple[bool, bool] | None = None
) -> Launch | None:
    """Choose the launch that finds the peak of planes of sums; None where a plane does not fit shared memory.

    Parameters
    ----------
    problem : Problem
        Any.
    normalize : bool
        Whether scores are zero-mean normalised, or the sums themselves.
    device : DeviceLimits
        Whose shared memory holds the scores.
    centred : tuple of bool, optional
        Given where the planes hold sums of centred products: whether left and right are of integers, whose centres are
        whole numbers. Plain scores then need the tables too.

    Returns
    -------
    Launch or None
        Ready to compile and start.
    """
    shared_bytes = 4 * (_SCRATCH + problem.plane_shape[0] * problem.plane_shape[1])
    if shared_bytes > device.shared_bytes:
        return None
    warps = 4 if problem.plane_shape[0] * problem.plane_shape[1] <= _FEW_SHIFTS else 8
    defines: dict[str, str | int] = {"WARPS": warps, "NORMALIZE": int(normalize)}
    if centred is not None:
        defines |= {"CENTRED": 1, **_integers(centred)}
    return Launch("correlation/plane_peak", defines, problem.pairs, warps * 32, shared_bytes)


def uncentre_launch(problem: Problem, centred: tuple[bool, bool]) -> Launch:
    """Choose the launch that turns planes of sums of centred products into plain sums, in place.

    Parameters
    ----------
    problem : Problem
        Any whose pairs times shifts stay below 2^31.
    centred : tuple of bool
        Whether left and right are of integers.

    Returns
    -------
    Launch
        Kernel arguments: planes, then as for `plane_peak_launch` without records.
    """
    threads = 256
    blocks = problem.pairs * ceil_div(problem.plane_shape[0] * problem.plane_shape[1], threads)
    return Launch("correlation/uncentre", {"THREADS": threads, **_integers(centred)}, blocks, threads)


def _integers(centred: tuple[bool, bool]) -> dict[str, str | int]:
    return {"LEFT_INTEGER": int(centred[0]), "RIGHT_INTEGER": int(centred[1])}


def peak_launch(
    problem: Problem,
    *,
    normalize: bool,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch | None:
    """Choose the launch that sums, normalises and searches a window without writing its plane.

    Parameters
    ----------
    problem : Problem
        Any.
    normalize : bool
        Whether scores are zero-mean normalised, or the sums themselves.
    left_type, right_type : str
        NumPy names of the matrices' types.
    device : DeviceLimits
        Decides how finely few pairs are cut, and whether the window fits one block.
    tuning : mapping, optional
        Macro values that replace the table's.

    Returns
    -------
    Launch or None
        None where the window is larger than one block covers.
    """
    tile = window_tile(problem)
    if tile is None:
        return None
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    extra_bytes = 4 * (_SCRATCH + 2 * (-(-shifts // 4) * 4))
    types: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "SUM_TYPE": "float",
        "NORMALIZE": int(normalize),
    }
    segments = _segments(problem.pairs, tile["MIN_BLOCKS"] * device.multiprocessors, problem.left_shape[0])
    macros = {**tile, "SEGMENTS": segments, **(tuning or {})}
    return combined_launch(problem, types, macros, device, kernel="correlation/combined_peak", extra_bytes=extra_bytes)


def _segments(pairs: int, slots: int, rows: int) -> int:
    """Number of segments of the rows at which `slots` blocks at a time are busy to the end, the smallest if several."""
    if pairs >= 8 * slots:
        return 1

    def cost(segments: int) -> float:
        share = pairs * segments / slots
        return math.ceil(share) / share * (1 + 0.01 * segments)

    return min(range(1, max(1, min(rows // 8, 64)) + 1), key=cost)
