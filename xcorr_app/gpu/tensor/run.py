"""Windows of shifts on the device's tensor cores: planes of centred sums in half precision."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.search import uncentre_launch
from xcorr_app.gpu.peaks.summed_area import RectangleTables
from xcorr_app.gpu.runtime.binder import BoundLaunch, start
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.tensor.hankel import HankelLaunch, hankel_launch, slides_left
from xcorr_app.gpu.tensor.hankel_frames import frames_launch, takes_frames
from xcorr_app.gpu.tensor.hankel_pieces import pieces_launch
from xcorr_app.gpu.tensor.small_planes import small_planes_launch

__all__ = [
    "HALF_ERROR",
    "CentredSums",
    "FrameSums",
    "centred_sums",
    "chosen_launch",
    "has_tensor_cores",
    "multiplies_by_groups",
    "plain_sums",
    "prepared_sums",
    "why_no_tensor_cores",
]

HALF_ERROR = 1e-3
"""Error of a normalised score from sums of halves, at most, where overlaps vary about as much as the whole matrices:
each factor rounds by 2^-11 of itself at most. What `FrameSums` cut off, up to 3e-4, comes on top; only images of two
grey levels that round the worst way come near the sum of both."""
_OLDEST = 80
_WARPGROUP = 90
_FEW_PIECES = 2
"""Blocks of ``hankel_pieces`` for a multiprocessor up to which they take less time than products of four warps, whose
segments are long: of 2 to 32 matrices of 128^2 to 2048^2 at most 8 % more, and down to half."""


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
    prepared = prepared_sums(problem, lefts.dtype, rights.dtype, cells, split=split)
    planes = out
    if planes is None:
        planes = importlib.import_module("cupy").empty((problem.pairs, *problem.plane_shape), "float32")
    prepared(lefts, rights, tables, planes)
    return planes


def prepared_sums(
    problem: Problem, left_type: Any, right_type: Any, cells: tuple[int, int], *, split: int = 1
) -> CentredSums | FrameSums:
    """Prepare what `centred_sums` does on the current device, or take what was prepared before.

    Parameters
    ----------
    problem, cells, split
        As for `centred_sums`.
    left_type, right_type : numpy.dtype
        Of the matrices.

    Returns
    -------
    CentredSums or FrameSums
        With its kernels compiled.
    """
    return _prepared(current_device(), problem, left_type, right_type, cells, split)


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
    small = _small_launch(current_device(), problem, lefts.dtype, rights.dtype, split)
    if small is not None:
        cupy = importlib.import_module("cupy")
        planes = cupy.empty((problem.pairs, *problem.plane_shape), cupy.float32) if out is None else out
        start(small, (lefts, rights, planes), (problem.rights_per_left, problem.rights))
        return planes
    tables = window.left(lefts), window.right(rights)
    planes = centred_sums(problem, lefts, rights, tables, window.cells, split=split, out=out)
    launch = uncentre_launch(problem, (lefts.dtype.kind != "f", rights.dtype.kind != "f"))
    start(launch, (planes, *tables, window.rows, window.columns), (*problem.arguments(), *window.sizes, 1))
    return planes


@functools.lru_cache(maxsize=256)
def _small_launch(device: int, problem: Problem, left_type: Any, right_type: Any, split: int) -> Launch | None:
    limits = device_limits(device)
    return small_planes_launch(
        problem, left_type=left_type.name, right_type=right_type.name, device=limits, split=split
    )


def _share(problem: Problem) -> int:
    """Number of matrices that slide over one plain one."""
    return problem.pairs if slides_left(problem) else problem.rights_per_left


class CentredSums:
    """What is prepared for the sums of one problem on the current device; see `prepared_sums`."""

    def __init__(
        self, problem: Problem, types: tuple[str, str], cells: tuple[int, int], split: int, device: DeviceLimits
    ) -> None:
        left_type, right_type = types
        chosen = chosen_launch(
            problem,
            left_type=left_type,
            right_type=right_type,
            split=split,
            groups=multiplies_by_groups(),
            device=device,
        )
        self._scratch = Scratch((chosen.half_words, "uint32"), (chosen.workspace, "float32"), counters=chosen.counters)
        self._start = BoundLaunch.of(chosen.launch, (*problem.arguments(), *cells, *chosen.launch.extra))
        self._plain = 1 if slides_left(problem) else 0
        self._start_halves = None
        if chosen.halves is not None:
            shape = problem.right_shape if self._plain else problem.left_shape
            self._start_halves = BoundLaunch.of(chosen.halves, (*shape, cells[self._plain], *chosen.halves.extra))

    def __call__(self, lefts: Any, rights: Any, tables: tuple[Any, Any], planes: Any) -> None:
        """Write the planes."""
        halves, workspace, arrived = self._scratch()
        if self._start_halves is None:
            self._start(lefts, rights, planes, workspace, arrived, *tables)
            return
        self._start_halves((lefts, rights)[self._plain], tables[self._plain], halves)
        self._start(lefts, rights, halves, planes, workspace, arrived, *tables)


class FrameSums:
    """As `CentredSums`, where many frames meet one reference: places of the references, products, sums of pieces.

    Places and the sums of pieces take up to 256 MiB each, where `takes_frames` says yes.

    Parameters
    ----------
    problem : Problem
        Of frames that meet one reference; `takes_frames` says where this is the faster.
    types : tuple of str
        NumPy names of the types of lefts and rights.
    cells : tuple of int
        Elements of one table of each.
    device : DeviceLimits
        The current one's, which has products of four warps.
    tuning : mapping, optional
        As for `frames_launch`.
    """

    def __init__(
        self,
        problem: Problem,
        types: tuple[str, str],
        cells: tuple[int, int],
        device: DeviceLimits,
        tuning: Mapping[str, int] | None = None,
    ) -> None:
        left_type, right_type = types
        chosen = frames_launch(problem, left_type=left_type, right_type=right_type, device=device, tuning=tuning)
        self._reference = 1 if slides_left(problem) else 0
        shape = problem.right_shape if self._reference else problem.left_shape
        self._scratch = Scratch((chosen.place_words, "uint32"), (chosen.workspace, "float32"))
        self._places = BoundLaunch.of(chosen.places, (*shape, cells[self._reference], *chosen.places.extra))
        self._products, self._sums = (
            BoundLaunch.of(launch, (*problem.arguments(), *cells, *launch.extra))
            for launch in (chosen.products, chosen.sums)
        )

    def __call__(self, lefts: Any, rights: Any, tables: tuple[Any, Any], planes: Any) -> None:
        """Write the planes."""
        places, workspace, _ = self._scratch()
        self._places((lefts, rights)[self._reference], tables[self._reference], places)
        self._products(lefts, rights, places, workspace, *tables)
        self._sums(workspace, planes, *tables)


@functools.lru_cache(maxsize=256)
def _prepared(
    device: int, problem: Problem, left_type: Any, right_type: Any, cells: tuple[int, int], split: int
) -> CentredSums | FrameSums:
    types, limits = (left_type.name, right_type.name), device_limits(device)
    if split == 1 and multiplies_by_groups() and takes_frames(problem, limits):
        return FrameSums(problem, types, cells, limits)
    return CentredSums(problem, types, cells, split, limits)


def chosen_launch(
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    split: int = 1,
    groups: bool,
    device: DeviceLimits,
) -> HankelLaunch:
    """Choose the kernel that makes planes of centred sums, and its launch.

    Parameters
    ----------
    problem, left_type, right_type, split, device
        As for `hankel_launch`.
    groups : bool
        Whether the device has products of four warps.

    Returns
    -------
    HankelLaunch
        Of ``hankel_pieces`` for few pairs, of ``hankel_warpgroup`` where four matrices share the one they meet, or of
        ``hankel``.
    """
    warpgroup = groups and split == 1 and _share(problem) >= 4
    if split == 1 and not slides_left(problem):
        chosen = pieces_launch(problem, left_type=left_type, right_type=right_type, device=device)
        if chosen is not None and (not warpgroup or chosen.launch.blocks <= _FEW_PIECES * device.multiprocessors):
            return chosen
    return hankel_launch(
        problem, left_type=left_type, right_type=right_type, split=split, warpgroup=warpgroup, device=device
    )
