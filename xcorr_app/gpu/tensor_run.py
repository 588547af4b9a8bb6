"""Windows of shifts on the device's tensor cores: planes of centred sums in half precision."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from xcorr_app.gpu.correlation_plan import device_limits
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.hankel_launch import HankelLaunch, hankel_launch, slides_left
from xcorr_app.gpu.launch import DeviceLimits
from xcorr_app.gpu.peak_launch import uncentre_launch
from xcorr_app.gpu.placement import current_device
from xcorr_app.gpu.rectangle_tables import RectangleTables, start

__all__ = [
    "HALF_ERROR",
    "centred_sums",
    "has_tensor_cores",
    "multiplies_by_groups",
    "plain_sums",
    "why_no_tensor_cores",
]

HALF_ERROR = 1e-3
"""Error of a normalised score from sums of halves, at most, where overlaps vary about as much as the whole matrices:
each factor rounds by 2^-11 of itself at most."""
_OLDEST = 80
_WARPGROUP = 90


@functools.cache
def _capability(device: int) -> int:
    return int(importlib.import_module("cupy").cuda.Device(device).compute_capability)


def why_no_tensor_cores() -> str | None:
    """Say why the current device cannot run the kernels; None if it can.

    Returns
    -------
    str or None
        Names what it has and what it would need.
    """
    found = _capability(current_device())
    if found >= _OLDEST:
        return None
    return f"the device has compute capability {found / 10}; tensor cores for half precision with it need 8.0"


def has_tensor_cores() -> bool:
    """Whether the current device can run the kernels."""
    return why_no_tensor_cores() is None


def multiplies_by_groups() -> bool:
    """Whether the current device has products of four warps, the faster of the two kernels."""
    return _capability(current_device()) == _WARPGROUP


def centred_sums(
    problem: Problem,
    lefts: Any,
    rights: Any,
    tables: tuple[Any, Any],
    cells: tuple[int, int],
    *,
    split: int = 1,
    out: Any = None,
) -> Any:
    """Sum products of centred matrices over a window of shifts.

    Parameters
    ----------
    problem : Problem
        Of so many pairs that a launch's indices fit 32 bits.
    lefts, rights : cupy.ndarray
        Dense, each of a type that kernels read.
    tables : tuple of cupy.ndarray
        What `RectangleTables` made of them.
    cells : tuple of int
        Elements of one table of each.
    split : int, optional
        Halves that stand for a value: 1 (products of 11 bits), or 2 (22 bits).
    out : cupy.ndarray, optional
        Dense array of the result's shape and type to write into.

    Returns
    -------
    cupy.ndarray of float32, shape (pairs, ny, nx)
        ``sum (left - cL) (right - cR)`` over each overlap; the centres follow from the tables: ``scaling.cuh``.
    """
    cupy = importlib.import_module("cupy")
    device = current_device()
    warpgroup = multiplies_by_groups() and split == 1 and _share(problem) >= 4
    chosen = _launch(problem, str(lefts.dtype), str(rights.dtype), split, warpgroup, device_limits(device))
    planes = cupy.empty((problem.pairs, *problem.plane_shape), cupy.float32) if out is None else out
    workspace, arrived = cupy.empty(chosen.workspace, cupy.float32), cupy.zeros(chosen.counters, cupy.int32)
    halves: tuple[Any, ...] = ()
    if chosen.halves is not None:
        plain, table, size = (rights, tables[1], cells[1]) if slides_left(problem) else (lefts, tables[0], cells[0])
        halves = (cupy.empty(chosen.half_words, cupy.uint32),)
        start(chosen.halves, (plain, table, *halves), (*plain.shape[-2:], size, *chosen.halves.extra))
    arrays = (lefts, rights, *halves, planes, workspace, arrived, *tables)
    start(chosen.launch, arrays, (*problem.arguments(), *cells, *chosen.launch.extra))
    return planes


def plain_sums(
    problem: Problem, lefts: Any, rights: Any, window: RectangleTables, *, split: int = 2, out: Any = None
) -> Any:
    """Sum products over a window of shifts, nearly in single precision.

    Parameters
    ----------
    problem : Problem
        As for `centred_sums`.
    lefts, rights : cupy.ndarray
        Dense, (n, H, W) and (m, H', W').
    window : RectangleTables
        Of the problem's window.
    split, out : optional
        As for `centred_sums`.

    Returns
    -------
    cupy.ndarray of float32, shape (pairs, ny, nx)
        Plain sums.
    """
    tables = window.left(lefts), window.right(rights)
    planes = centred_sums(problem, lefts, rights, tables, window.cells, split=split, out=out)
    launch = uncentre_launch(problem, (lefts.dtype.kind != "f", rights.dtype.kind != "f"))
    start(launch, (planes, *tables, window.rows, window.columns), (*problem.arguments(), *window.sizes, 1))
    return planes


def _share(problem: Problem) -> int:
    """Number of matrices that slide over one plain one."""
    return problem.pairs if slides_left(problem) else problem.rights_per_left


@functools.lru_cache(maxsize=256)
def _launch(
    problem: Problem, left_type: str, right_type: str, split: int, warpgroup: bool, device: DeviceLimits
) -> HankelLaunch:
    return hankel_launch(
        problem, left_type=left_type, right_type=right_type, split=split, warpgroup=warpgroup, device=device
    )
