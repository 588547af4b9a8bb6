"""Correlation planes on the device: arrays in, plane out, through one variant of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.direct.plan import Plan, plan_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of


def correlate_on_device(
    lefts: Any,
    rights: Any,
    problem: Problem,
    variant: str = "combined",
    *,
    tuning: Mapping[str, int] | None = None,
    out: Any = None,
) -> Any:
    """Planes ``C[pair, iy, ix]`` of a batch by one kernel; arrays are copied where not dense, `out` must be dense."""
    left_type, right_type = _checked_types(lefts, rights, problem)
    with on_device_of(lefts, rights):
        plan = plan_of(problem, variant, left_type=left_type, right_type=right_type, tuning=tuning)
        return run_plan(plan, lefts, rights, (problem.pairs, *problem.plane_shape), out)


def run_plan(plan: Plan, lefts: Any, rights: Any, shape: tuple[int, ...], out: Any = None) -> Any:
    """Run a plan on arrays that agree with it, in a new array or in `out`; ShapeError where that does not fit."""
    if not lefts.flags.c_contiguous:
        lefts = dense(lefts)
    if not rights.flags.c_contiguous:
        rights = dense(rights)
    if out is None:
        out = empty(shape, np.float32)
    elif out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise ShapeError(f"out must be a dense float32 array of shape {shape}, not {out.dtype} {out.shape}")
    plan.run(lefts, rights, out)
    return out


def _checked_types(lefts: Any, rights: Any, problem: Problem) -> tuple[str, str]:
    expected = ((problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape))
    if (lefts.shape, rights.shape) != expected:
        raise ShapeError(f"lefts {lefts.shape} and rights {rights.shape} must have the shapes {expected}")
    names = name_of(lefts.dtype), name_of(rights.dtype)
    if not set(names) <= set(INPUT_TYPES):
        raise DataTypeError(
            f"lefts ({lefts.dtype}) and rights ({rights.dtype}) must be of the types {', '.join(INPUT_TYPES)}"
        )
    return names
