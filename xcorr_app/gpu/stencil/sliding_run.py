"""Long Gaussians on the device: stack in, filtered stack out, at a cost that is the same for all lengths."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.binder import BoundLaunch, null_pointer
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

__all__ = ["BETWEEN_BYTES", "sliding_gaussian_on_device"]

BETWEEN_BYTES = 2**30
"""Memory for what the first pass leaves to the second, in bytes; a larger stack is worked on in parts."""

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
    tolerance = EXACT_TOLERANCE if _is_exact(images, dtype, sums) else TOLERANCE
    sigmas = sigma_rows, sigma_columns
    series = [gaussian_series(float(sigma), float(truncate), tolerance) if sigma else None for sigma in sigmas]
    return _filtered(images, (series[0], series[1]), boundary, outside, dtype, out, clipped, sums, tuning)


def _filtered(
    images: Any,
    series: tuple[CosineSeries | None, CosineSeries | None],
    boundary: str,
    outside: float,
    dtype: npt.DTypeLike | None,
    out: Any,
    clipped: Any,
    sums: str,
    tuning: Mapping[str, int] | None,
) -> Any:
    result_type = np.dtype(dtype or images.dtype)
    if images.dtype.name not in FILTER_TYPES or result_type.name not in FILTER_TYPES:
        raise DataTypeError(f"images ({images.dtype}) and result ({result_type}) must be of {', '.join(FILTER_TYPES)}")
    if images.ndim < 2:
        raise ShapeError(f"images {images.shape} must have at least two axes")
    if series == (None, None):
        raise ArgumentError("neither axis is filtered: a sigma must be above 0")
    if out is not None and (out.shape != images.shape or out.dtype != result_type or not out.flags.c_contiguous):
        raise ShapeError(
            f"out must be a dense {result_type} array of shape {images.shape}, not {out.dtype} {out.shape}"
        )
    image_shape = images.shape[-2:]
    problem = SlidingPass(image_shape, int(np.prod(images.shape[:-2])), boundary)
    macros = tuple(sorted((tuning or {}).items()))
    cupy = sys.modules["cupy"]  # whose array this is
    with on_device_of(images, out):
        chosen = _types_of_sums(images, result_type, sums)

        # A part that fails has written nothing yet: it is repeated alone.
        what = "A long filter's result and what lies between its axes"
        result = with_second_try(cupy.empty, images.shape, result_type, what=what) if out is None else out
        sources, results = images.reshape(-1, *image_shape), result.reshape(-1, *image_shape)
        between = np.dtype(np.float64 if images.dtype.name == "float64" else np.float32)
        step = max(1, BETWEEN_BYTES // (between.itemsize * image_shape[0] * image_shape[1]))
        for first in range(0, problem.count, step):
            part = problem.with_count(min(step, problem.count - first))
            here, there = sources[first : first + part.count], results[first : first + part.count]
            with_second_try(
                _two_passes, cupy, here, there, part, series, between, outside, clipped, chosen, macros, what=what
            )
        return result


def _two_passes(
    cupy: Any,
    images: Any,
    results: Any,
    part: SlidingPass,
    series: tuple[CosineSeries | None, CosineSeries | None],
    between: np.dtype[Any],
    outside: float,
    clipped: Any,
    types: _Types,
    macros: _Macros,
) -> None:
    """Down the columns, then along the rows; an axis that is not filtered is transposed and no more."""
    height, width = part.image_shape
    turned = SlidingPass((width, height), part.count, part.boundary)
    down, along = series
    if down is not None and along is not None:
        middle = cupy.empty((part.count, width, height), between)
        _one_pass(cupy.ascontiguousarray(images), middle, part, down, outside, None, types, macros)
        _one_pass(middle, results, turned, along, outside, clipped, types, macros)
    elif down is not None:
        middle = cupy.empty((part.count, width, height), results.dtype)
        _one_pass(cupy.ascontiguousarray(images), middle, part, down, outside, clipped, types, macros)
        results[...] = middle.transpose(0, 2, 1)
    elif along is not None:
        middle = images.transpose(0, 2, 1).copy()
        _one_pass(middle, results, turned, along, outside, clipped, types, macros)


def _one_pass(
    images: Any,
    results: Any,
    problem: SlidingPass,
    series: CosineSeries,
    outside: float,
    clipped: Any,
    types: _Types,
    macros: _Macros,
) -> None:
    count = null_pointer() if clipped is None else clipped
    values = series_argument(series, outside, types[0])
    elements = images.dtype.name, results.dtype.name
    first = 0
    for part in _bound_parts(current_device(), problem, series, *elements, types, macros):
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
    tables = tuple(map(cupy.asarray, (packed_table(table, start_type), table.first, table.outside)))
    parts, most = [], problem.most_images(rows)
    for first in range(0, problem.count, most):
        part = problem.with_count(min(most, problem.count - first))
        elements: dict[str, str] = {"image_type": image_type, "result_type": result_type}
        sums: dict[str, str] = {"sum_type": sum_type, "start_type": start_type}
        launch = sliding_launch(part, series, table, rows, **elements, **sums, tuning=dict(macros))
        bound = BoundLaunch.of(launch, launch.extra)
        parts.append(_Part(part.count, bound, (tables[0], tables[1], tables[2])))
    return tuple(parts)


def _is_exact(images: Any, dtype: npt.DTypeLike | None, sums: str) -> bool:
    """Whether results are integers so large that an error of 1e-6 would change many of them."""
    return sums == "auto" and np.dtype(dtype or images.dtype).name in ("uint16", "int16")


def _types_of_sums(images: Any, result_type: np.dtype[Any], sums: str) -> _Types:
    if sums not in ("auto", "double", "float"):
        raise ArgumentError(f"sums must be auto, double or float, not {sums!r}")
    if images.dtype == np.float64 or _is_exact(images, result_type, sums):
        return "double", "double"
    if result_type == np.float64:
        return "double", "float"
    return ("float" if sums == "auto" else sums), "float"
