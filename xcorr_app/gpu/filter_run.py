"""Filters on the device: a stack and taps in, filtered stack out, through one of the filter kernels."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.compile import Kernel, kernel_function
from xcorr_app.gpu.correlation_plan import device_limits
from xcorr_app.gpu.filter_launch import FILTER_TYPES, FilterProblem, filter_launch, taps_argument
from xcorr_app.gpu.placement import current_device, on_device_of

__all__ = ["filter_on_device"]


def filter_on_device(
    images: Any,
    taps: npt.ArrayLike,
    *,
    boundary: str = "reflect",
    outside: float = 0.0,
    origin: tuple[int, int] = (0, 0),
    dtype: npt.DTypeLike | None = None,
    kernel: str = "auto",
    tuning: Mapping[str, int] | None = None,
    out: Any = None,
) -> Any:
    """Correlate every image of a stack with the same taps (they are not flipped).

    Parameters
    ----------
    images : cupy.ndarray
        (..., height, width) of uint8, uint16, int16, float32 or float64; on the device that does the work.
    taps : array_like
        (rows, columns), each from 1 to 63, in host memory. Other taps of the same shape need no other kernel.
    boundary : str, optional
        One of `xcorr_app.gpu.filter_launch.BOUNDARIES`.
    outside : float, optional
        Value outside the image, for boundary ``constant``.
    origin : tuple of int, optional
        Rows and columns as in `scipy.ndimage.correlate`.
    dtype : data-type, optional
        Of the result: the images' own, where integers are rounded half to even and clipped, or another of their types.
    kernel : str, optional
        ``"auto"`` or one of `xcorr_app.gpu.filter_launch.FILTER_KERNELS`.
    tuning : mapping, optional
        Macro values that replace the table's.
    out : cupy.ndarray, optional
        Dense array to write into.

    Returns
    -------
    cupy.ndarray
        (..., height, width), smaller by the taps' shape less one for boundary ``valid``.

    Raises
    ------
    ShapeError
        Where shapes do not fit.
    DataTypeError
        For types that no kernel reads or writes.
    ArgumentError
        For what `filter_launch` refuses.
    DeviceError
        Where a kernel does not compile.
    """
    cupy = sys.modules["cupy"]  # whose array this is
    taps = np.asarray(taps)
    if images.ndim < 2 or taps.ndim != 2:
        raise ShapeError(f"images {images.shape} and taps {taps.shape} must have at least, and just, two axes")
    result_type = np.dtype(dtype or images.dtype)
    if images.dtype.name not in FILTER_TYPES or result_type.name not in FILTER_TYPES:
        raise DataTypeError(f"images ({images.dtype}) and result ({result_type}) must be of {', '.join(FILTER_TYPES)}")
    stack, image_shape = images.shape[:-2], images.shape[-2:]
    problem = FilterProblem(image_shape, taps.shape, int(np.prod(stack)), boundary, origin)
    shape = (*stack, *problem.result_shape)
    with on_device_of(images, out):
        images = cupy.ascontiguousarray(images).reshape(-1, *image_shape)
        if out is None:
            out = cupy.empty(shape, result_type)
        elif out.shape != shape or out.dtype != result_type or not out.flags.c_contiguous:
            raise ShapeError(f"out must be a dense {result_type} array of shape {shape}, not {out.dtype} {out.shape}")
        values = taps_argument(taps, outside, images.dtype.name)
        results, macros = out.reshape(-1, *problem.result_shape), tuple(sorted((tuning or {}).items()))
        for start in _starts(current_device(), problem, kernel, images.dtype.name, result_type.name, macros):
            arrays = (images[start.image :], results[start.image :]) if start.image else (images, results)
            start.function(start.grid, start.block, (*arrays, values, *start.numbers))
    return out


@dataclass(frozen=True)
class _Start:
    """One launch, ready for arrays: its part of the stack begins at `image`."""

    image: int
    function: Kernel
    grid: tuple[int]
    block: tuple[int]
    numbers: tuple[np.int32, ...]


@functools.lru_cache(maxsize=256)
def _starts(
    device: int,
    problem: FilterProblem,
    kernel: str,
    image_type: str,
    result_type: str,
    macros: tuple[tuple[str, int], ...],
) -> tuple[_Start, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    options: dict[str, Any] = {"image_type": image_type, "result_type": result_type, "tuning": dict(macros)}
    limits = device_limits(device)
    chosen = filter_launch(problem, kernel, **options, device=limits).entry
    starts = []
    for image, part in problem.parts(chosen):
        launch = filter_launch(part, chosen, **options, device=limits)
        numbers = tuple(np.int32(number) for number in launch.extra)
        function = kernel_function(launch.kernel, launch.defines)
        starts.append(_Start(image, function, (launch.blocks,), (launch.threads,), numbers))
    return tuple(starts)
