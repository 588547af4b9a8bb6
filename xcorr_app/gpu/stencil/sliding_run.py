"""Long Gaussians on the device: stack in, filtered stack out, at a cost that is the same for all lengths."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, null_pointer
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.stencil.cosine_series import (
    EXACT_TOLERANCE,
    TOLERANCE,
    CosineSeries,
    gaussian_series,
    start_table,
)
from xcorr_app.gpu.stencil.problem import FILTER_TYPES
from xcorr_app.gpu.stencil.sliding import SlidingPass, packed_table, segment_rows, series_argument, sliding_launch

__all__ = ["BETWEEN_BYTES", "prepare_sliding", "sliding_gaussian_on_device"]

BETWEEN_BYTES = 2**30
"""Memory for what the first pass leaves to the second, in bytes; a larger stack is worked on in parts."""

_WHAT = "A long filter's result and what lies between its axes"
_Macros = tuple[tuple[str, int], ...]
_Types = tuple[str, str]  # of sums, and of the products in the first of them


def sliding_gaussian_on_device(
    images: Any,
    sigma_rows: float,
    sigma_columns: float,
    *,
    truncate: float = 4.0,
    boundary: str = "reflect",
    outside: float = 0.0,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    clipped: Any = None,
    sums: str = "auto",
    tuning: Mapping[str, int] | None = None,
) -> Any:
    """Smooth every image of a stack as `scipy.ndimage.gaussian_filter` does, in constant time a pixel."""
    result_type = np.dtype(dtype or images.dtype)
    if images.dtype.name not in FILTER_TYPES or result_type.name not in FILTER_TYPES:
        raise DataTypeError(f"images ({images.dtype}) and result ({result_type}) must be of {', '.join(FILTER_TYPES)}")
    if images.ndim < 2:
        raise ShapeError(f"images {images.shape} must have at least two axes")
    if out is not None and (out.shape != images.shape or out.dtype != result_type or not out.flags.c_contiguous):
        raise ShapeError(
            f"out must be a dense {result_type} array of shape {images.shape}, not {out.dtype} {out.shape}"
        )
    problem = SlidingPass(images.shape[-2:], math.prod(images.shape[:-2]), boundary)
    types = images.dtype.name, result_type.name
    with on_device_of(images, out):
        how: Any = {"truncate": truncate, "outside": outside, "sums": sums, "tuning": tuning}
        prepare = functools.partial(prepare_sliding, problem, (sigma_rows, sigma_columns), *types, **how)
        run = with_second_try(prepare, what=_WHAT)
        # A part that fails has written nothing yet: it is repeated alone.
        cupy = sys.modules["cupy"]  # whose array this is
        result = with_second_try(cupy.empty, images.shape, result_type, what=_WHAT) if out is None else out
        run(images, result, clipped)
        return result


def prepare_sliding(
    problem: SlidingPass,
    sigmas: tuple[float, float],
    image_type: str,
    result_type: str,
    *,
    truncate: float = 4.0,
    outside: float = 0.0,
    sums: str = "auto",
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any, Any], None]:
    """Choose, compile and make tables for the current device, so that every further call costs two launches.

    What is returned takes images, result, and where clipped pixels are counted or None.
    """
    types = _types_of_sums(image_type, result_type, sums)
    tolerance = EXACT_TOLERANCE if sums == "auto" and _is_exact(result_type) else TOLERANCE
    series = [gaussian_series(float(sigma), float(truncate), tolerance) if sigma else None for sigma in sigmas]
    down, along = series
    if down is None and along is None:
        raise ArgumentError("neither axis is filtered: a sigma must be above 0")
    macros = tuple(sorted((tuning or {}).items()))
    between = "float64" if image_type == "float64" else "float32"
    if down is None or along is None:
        between = result_type if along is None else image_type
    height, width = problem.image_shape
    kept = 8 if image_type == "float64" else 4
    step = max(1, BETWEEN_BYTES // (kept * height * width))

    def bound(
        part: SlidingPass, series: CosineSeries | None, elements: tuple[str, str]
    ) -> tuple[tuple[_Part, ...], Any] | None:
        if series is None:
            return None
        parts = _bound_parts(current_device(), part, series, *elements, types, macros)
        return parts, as_struct(series_argument(series, outside, types[0]))

    stages = []
    for first in range(0, problem.count, step):
        part = problem.with_count(min(step, problem.count - first))
        turned = SlidingPass((width, height), part.count, part.boundary)
        passes = bound(part, down, (image_type, between)), bound(turned, along, (between, result_type))
        stages.append((first, part.count, _TwoPasses((part.count, width, height), between, *passes)))

    def run(images: Any, out: Any, clipped: Any) -> None:
        count = null_pointer() if clipped is None else clipped
        sources, results = (array if array.ndim == 3 else array.reshape(-1, height, width) for array in (images, out))
        for first, number, stage in stages:
            whole = number == problem.count
            here, there = (x if whole else x[first : first + number] for x in (sources, results))
            with_second_try(stage.run, here, there, count, what=_WHAT)

    return run


_Bound = tuple[tuple["_Part", ...], Any]
"""Launches of a pass, and its series as their argument."""


@dataclass(frozen=True)
class _TwoPasses:
    """Down the columns, then along the rows; an axis that is not filtered is transposed and no more."""

    turned_shape: tuple[int, int, int]
    between: str
    down: _Bound | None
    along: _Bound | None

    def run(self, images: Any, results: Any, count: Any) -> None:
        """Start the passes; `count` is where clipped pixels are counted, or the null pointer."""
        if self.down is None:
            middle = images.transpose(0, 2, 1).copy()
        else:
            middle = sys.modules["cupy"].empty(self.turned_shape, self.between)
            images = images if images.flags.c_contiguous else sys.modules["cupy"].ascontiguousarray(images)
            _one_pass(self.down, images, middle, count if self.along is None else null_pointer())
        if self.along is None:
            results[...] = middle.transpose(0, 2, 1)
        else:
            _one_pass(self.along, middle, results, count)


def _one_pass(bound: _Bound, images: Any, results: Any, count: Any) -> None:
    parts, values = bound
    first = 0
    for part in parts:
        arrays = (images[first:], results[first:]) if first else (images, results)
        part.launch(*arrays, count, *part.tables, values)
        first += part.images


@dataclass(frozen=True)
class _Part:
    """One launch, ready for arrays, over so many images; the tables are on the device."""

    images: int
    launch: BoundLaunch
    tables: tuple[Any, Any, Any]


@functools.lru_cache(maxsize=32)
def _bound_parts(
    device: int,
    problem: SlidingPass,
    series: CosineSeries,
    image_type: str,
    result_type: str,
    types: _Types,
    macros: _Macros,
) -> tuple[_Part, ...]:
    """Choose, compile and make the tables once for a problem: that takes longer than a launch."""
    cupy, (sum_type, start_type) = sys.modules["cupy"], types
    rows = segment_rows(problem, series, sum_type=sum_type, device=device_limits(device))
    table = start_table(series, problem.image_shape[0], rows, problem.boundary)
    of_host = packed_table(table, start_type), table.first, table.outside
    tables = constants(cupy, lambda: tuple(map(cupy.asarray, of_host)))
    parts, most = [], problem.max_images(rows)
    for first in range(0, problem.count, most):
        part = problem.with_count(min(most, problem.count - first))
        elements: dict[str, str] = {"image_type": image_type, "result_type": result_type}
        sums: dict[str, str] = {"sum_type": sum_type, "start_type": start_type}
        launch = sliding_launch(part, series, table, rows, **elements, **sums, tuning=dict(macros))
        bound = BoundLaunch.of(launch, launch.extra)
        parts.append(_Part(part.count, bound, (tables[0], tables[1], tables[2])))
    return tuple(parts)


def _is_exact(result_type: str) -> bool:
    """Whether results are integers so large that an error of 1e-6 would change many of them."""
    return result_type in ("uint16", "int16")


def _types_of_sums(image_type: str, result_type: str, sums: str) -> _Types:
    if sums not in ("auto", "double", "float"):
        raise ArgumentError(f"sums must be auto, double or float, not {sums!r}")
    if image_type == "float64" or (sums == "auto" and _is_exact(result_type)):
        return "double", "double"
    if result_type == "float64":
        return "double", "float"
    return ("float" if sums == "auto" else sums), "float"
