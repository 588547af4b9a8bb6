"""Pointwise convolution on the device: a stack and a matrix in, every pixel's channels mixed, by one of the kernels."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ShapeError
from xcorr_app.gpu.pointwise.blocking import pointwise_argument, stored_matrix
from xcorr_app.gpu.pointwise.kernels import kernel_for, parts_of, pointwise_launch
from xcorr_app.gpu.pointwise.mix import mixing_argument
from xcorr_app.gpu.pointwise.problem import LARGEST_KEPT, PointwiseProblem
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of

COUNTERS = 256
"""Counters of clipped values that the kernels spread their additions over; also in `mix.cuh`."""


def pointwise_on_device(
    stack: Any,
    matrix: npt.ArrayLike,
    axis: int = -3,
    *,
    target: npt.DTypeLike | None = None,
    log_white: float | None = None,
    clip: bool = False,
    clipped: Any = None,
    kernel: str = "auto",
    tuning: Mapping[str, int] | None = None,
    out: Any = None,
) -> Any:
    """Multiply the channel vector of every pixel by a matrix."""
    cupy = sys.modules["cupy"]  # whose array this is
    factors = np.asarray(matrix, np.float64)
    if not -stack.ndim <= axis < stack.ndim or factors.ndim != 2 or factors.shape[1] != stack.shape[axis]:
        raise ShapeError(f"a matrix of shape {factors.shape} needs as many columns as {stack.shape} has along {axis}")
    axis %= stack.ndim
    before, after = stack.shape[:axis], stack.shape[axis + 1 :]
    result_type = np.dtype(target or stack.dtype)
    problem = PointwiseProblem(
        outer=math.prod(before),
        channels=factors.shape[1],
        filters=factors.shape[0],
        inner=math.prod(after),
        image_type=name_of(stack.dtype),
        result_type=name_of(result_type),
        density=log_white is not None,
        clip=clip,
        count=clipped is not None,
    )
    shape = (*before, problem.filters, *after)
    with on_device_of(stack, out):
        images = cupy.ascontiguousarray(stack).reshape(problem.outer, problem.channels, problem.inner)
        if out is None:
            out = cupy.empty(shape, result_type)
        elif out.shape != shape or out.dtype != result_type or not out.flags.c_contiguous:
            raise ShapeError(f"out must be a dense {result_type} array of shape {shape}, not {out.dtype} {out.shape}")
        if clipped is not None and (clipped.shape != (COUNTERS,) or clipped.dtype != np.uint64):
            raise ShapeError(f"clipped must be {COUNTERS} counters of uint64, not {clipped.dtype} {clipped.shape}")
        results = out.reshape(problem.outer, problem.filters, problem.inner)
        counters = results if clipped is None else clipped  # not touched where nothing is counted
        addresses = images.data.ptr | results.data.ptr | 16
        macros = tuple(sorted((tuning or {}).items()))
        how: MixingHow = (current_device(), problem, kernel, addresses & -addresses, macros, log_white or 1.0)
        kept = factors.size <= LARGEST_KEPT
        launches = _kept_launches(how, factors.tobytes()) if kept else mixing_launches(how, factors)
        for part, values in launches:
            arrays = (images[part.first :], results[part.first :]) if part.first else (images, results)
            part.run(*arrays, counters, *values)
    return out


MixingHow: TypeAlias = tuple[int, PointwiseProblem, str, int, tuple[tuple[str, int], ...], float]
"""Device, problem, kernel, alignment, macros, white."""
_Launches: TypeAlias = "list[tuple[_Part, tuple[Any, ...]]]"
"""Every part with the arguments that follow its arrays: the matrix in its kernel's order, and sizes."""


@functools.lru_cache(maxsize=64)
def _kept_launches(how: MixingHow, content: bytes) -> _Launches:
    """Prepare a matrix once for many calls: to bring it to the device takes longer than the kernels of most stacks."""
    problem = how[1]
    matrix = np.frombuffer(content).reshape(problem.filters, problem.channels)
    return constants(sys.modules["cupy"], lambda: mixing_launches(how, matrix))


def mixing_launches(how: MixingHow, matrix: npt.NDArray[np.float64]) -> _Launches:
    """Prepare a matrix, on the host, for stacks of one size."""
    *_, white = how
    problem, stored = how[1], None
    found: _Launches = []
    for part in _bound_parts(*how[:5]):
        if part.launch.entry == "mix":
            found.append((part, (as_struct(mixing_argument(matrix, part.problem, part.launch, white)),)))
        else:
            if stored is None:
                stored = stored_matrix(matrix, sys.modules["cupy"], density=problem.density)
            found.append((part, (stored, as_struct(pointwise_argument(part.problem, white)))))
    return found


@dataclass(frozen=True)
class _Part:
    """One launch, ready for arrays: its part of the stack begins at `first` on the outer axis."""

    first: int
    problem: PointwiseProblem
    launch: Launch
    run: BoundLaunch


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int, problem: PointwiseProblem, kernel: str, alignment: int, macros: tuple[tuple[str, int], ...]
) -> tuple[_Part, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    limits = device_limits(device)
    if kernel == "auto":
        kernel = kernel_for(problem) or "blocking"
    parts = []
    for first, piece in parts_of(problem, kernel):
        launch = pointwise_launch(piece, kernel, alignment=alignment, limits=limits, tuning=dict(macros))
        parts.append(_Part(first, piece, launch, BoundLaunch.of(launch, launch.extra)))
    return tuple(parts)
