"""Correlation planes on the device: arrays in, plane out, through one variant of the kernels."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.compile import kernel_function
from xcorr_app.gpu.correlation_launch import DeviceLimits, Launch, launch_of, most_pairs
from xcorr_app.gpu.correlation_problem import INPUT_TYPES, Problem

__all__ = ["correlate_on_device"]


def correlate_on_device(
    lefts: Any,
    rights: Any,
    problem: Problem,
    variant: str = "combined",
    *,
    sum_type: str = "float",
    tuning: Mapping[str, int] | None = None,
    out: Any = None,
) -> Any:
    """Compute the correlation planes of a batch with one variant of the kernels.

    Parameters
    ----------
    lefts, rights : cupy.ndarray
        (lefts, height, width) and (rights, height, width), of the same type: uint8, uint16, int16 or float32. Copied
        where they are not dense.
    problem : Problem
        Sizes, window and pairing; must agree with the arrays.
    variant : str, optional
        One of `xcorr_app.gpu.correlation_launch.VARIANTS`.
    sum_type : str, optional
        ``"float"`` or ``"double"``: type of the sums and of the planes.
    tuning : mapping, optional
        Macro values that replace the table's.
    out : cupy.ndarray, optional
        Dense array to write into, (pairs, shifts along y, shifts along x).

    Returns
    -------
    cupy.ndarray
        ``C[pair, iy, ix]``, sums for the shift `problem.first_shift` + (iy, ix).

    Raises
    ------
    ShapeError
        Where the arrays and the problem disagree.
    DataTypeError
        For types that no kernel reads.
    DeviceError
        Where a kernel does not compile.
    """
    cupy = importlib.import_module("cupy")
    _check(lefts, rights, problem)
    lefts, rights = cupy.ascontiguousarray(lefts), cupy.ascontiguousarray(rights)
    shape, dtype = (problem.pairs, *problem.plane_shape), "float64" if sum_type == "double" else "float32"
    planes = cupy.empty(shape, dtype) if out is None else out
    if planes.shape != shape or planes.dtype != dtype or not planes.flags.c_contiguous:
        raise ShapeError(f"out must be a dense {dtype} array of shape {shape}, not {planes.dtype} {planes.shape}")
    attributes = cupy.cuda.Device().attributes
    device = DeviceLimits(attributes["MultiProcessorCount"], attributes["MaxSharedMemoryPerBlockOptin"])
    for part in problem.parts(most_pairs(variant, problem)):
        launch = launch_of(
            variant,
            part.problem,
            input_type=str(lefts.dtype),
            sum_type=sum_type,
            device=device,
            tuning=tuning,
        )
        arrays = (lefts[part.left :], rights[part.right :], planes[part.plane : part.plane + part.problem.pairs])
        _start(cupy, launch, part.problem, *arrays)
    return planes


def _start(cupy: Any, launch: Launch, problem: Problem, lefts: Any, rights: Any, planes: Any) -> None:
    """Run one launch, and the sum over its segments where it has several."""
    if launch.zero_first:
        planes.fill(0)
    target = planes
    if launch.segments > 1:
        target = cupy.empty((launch.segments, *planes.shape), planes.dtype)
    _call(cupy, launch, problem, (lefts, rights, target))
    if launch.then:
        _call(cupy, launch.then, problem, (lefts, rights, target))
    if launch.segments > 1:
        _call(cupy, launch.sum_of_segments(problem), problem, (target, planes))


def _call(cupy: Any, launch: Launch, problem: Problem, arrays: tuple[Any, ...]) -> None:
    function = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    numbers = tuple(cupy.int32(value) for value in (*problem.arguments(), *launch.extra))
    function((launch.blocks,), (launch.threads,), (*arrays, *numbers), shared_mem=launch.shared_bytes)


def _check(lefts: Any, rights: Any, problem: Problem) -> None:
    expected = ((problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape))
    if (lefts.shape, rights.shape) != expected:
        raise ShapeError(f"lefts {lefts.shape} and rights {rights.shape} must have the shapes {expected}")
    if lefts.dtype != rights.dtype or str(lefts.dtype) not in INPUT_TYPES:
        raise DataTypeError(
            f"lefts ({lefts.dtype}) and rights ({rights.dtype}) must share one of the types {', '.join(INPUT_TYPES)}"
        )
