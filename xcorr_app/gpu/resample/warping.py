"""Frames seen through matrices or fields, on the device: `warp_frames.cu`, its problem, launch and call."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.resample.problem import COPIED, PIXEL_TYPES, packed_sizes, pixel_bytes, strips, sum_type
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, bound, null_pointer
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of

NODES = 4
"""Coefficients along an axis that a place depends on."""

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
_THREADS_AT_ONCE = 2048


@dataclass(frozen=True)
class WarpProblem:
    """A stack of which each frame is seen through a motion of its own."""

    frame_shape: tuple[int, int]
    count: int = 1
    dtype: str = "uint16"
    """NumPy's name of the type of the results, and but for ``cubic`` of the frames."""
    method: str = "linear"
    """``nearest``, ``linear``, or ``cubic``: then coefficients of the spline stand for the frames."""
    grid_shape: tuple[int, int] | None = None
    """Of the coefficients of fields, at least 4 along each axis; None of matrices."""
    fills_outside: bool = True

    def __post_init__(self) -> None:
        if min(*self.frame_shape, self.count) < 1:
            raise ShapeError(f"frames need a pixel a side, and a stack one frame: {self}")
        if self.dtype not in PIXEL_TYPES or self.method not in _TAPS:
            known = f"{', '.join(PIXEL_TYPES)}; {', '.join(_TAPS)}"
            raise ArgumentError(f"{self.method} of {self.dtype} is not known; choose from {known}")
        if self.grid_shape is not None and min(self.grid_shape) < NODES:
            raise ShapeError(f"fields need {NODES} coefficients along an axis: {self.grid_shape}")

    @property
    def taps(self) -> int:
        """Taps along an axis."""
        return _TAPS[self.method]

    @property
    def source_dtype(self) -> str:
        """NumPy's name of the type of what is read."""
        if self.method != "cubic":
            return self.dtype
        return {"float": "float32", "double": "float64"}[sum_type(self.dtype)]


@dataclass(frozen=True)
class FieldSplines:
    """Displacements as coefficients of splines, with the four weights of each row and column of a frame.

    Arrays of the host or of the device.
    """

    coefficients: Any
    """(T, gy, gx, 2) of float32: rows, columns."""
    starts: tuple[Any, Any]
    """(Y,) and (X,) of int32: first coefficient that a row, and a column, depends on."""
    weights: tuple[Any, Any]
    """(Y, 4) and (X, 4) of float32."""

    def __getitem__(self, frames: slice) -> FieldSplines:
        """Of some of the frames."""
        return FieldSplines(self.coefficients[frames], self.starts, self.weights)


def warp_launch(problem: WarpProblem, device: DeviceLimits | None = None) -> Launch:
    """Choose grid and defines.

    Examples
    --------
    >>> warp_launch(WarpProblem((512, 512), 512)).defines["TAPS"]
    2
    """
    height, width = problem.frame_shape
    at_once = _THREADS_AT_ONCE * (device or DeviceLimits()).multiprocessors
    rows, threads, blocks = strips(problem.count, width, height, at_once)
    size, copies = np.dtype(problem.dtype).itemsize, problem.taps == 1
    defines: dict[str, str | int] = {
        "PIXEL_TYPE": COPIED[size] if copies else PIXEL_TYPES[problem.dtype],
        "SUM_TYPE": ("double" if size == 8 else "float") if copies else sum_type(problem.dtype),
        "TAPS": problem.taps,
        "FIELD": int(problem.grid_shape is not None),
        "THREADS": threads,
    }
    return Launch("resample/warp_frames", defines, problem.count * blocks, threads, extra=(blocks, rows))


def warp_argument(problem: WarpProblem, launch: Launch, outside: bytes = b"") -> npt.NDArray[Any]:
    """Pack the sizes and the bytes of the pixel outside as the kernel takes them: a struct by value."""
    blocks, rows = launch.extra
    grid_rows, grid_columns = problem.grid_shape or (0, 0)
    sizes = {"rows": rows, "blocks": blocks, "grid_rows": grid_rows, "grid_columns": grid_columns}
    return packed_sizes(outside, problem.frame_shape, **sizes, fills_outside=problem.fills_outside)


def warp_on_device(
    source: Any,
    motion: npt.NDArray[np.float64] | FieldSplines,
    dtype: np.dtype[Any],
    method: str = "linear",
    *,
    outside: float | None = None,
    out: Any = None,
) -> Any:
    """See frames (T, Y, X) through matrices (T, 2, 3), from places of the result to places of the frame, or fields.

    `source` are the frames, of type `dtype`, or for ``cubic`` the coefficients of their splines, in float32 or float64
    as `WarpProblem.source_dtype` says. What lies outside is `outside`, or the nearest pixel. Returns frames of `dtype`,
    `out` where that is given.
    """
    cupy = sys.modules["cupy"]  # whose arrays these are
    grid = motion.coefficients.shape[1:3] if isinstance(motion, FieldSplines) else None
    shape = (int(source.shape[1]), int(source.shape[2]))
    problem = WarpProblem(shape, len(source), name_of(dtype), method, grid, outside is not None)
    if name_of(source.dtype) != problem.source_dtype:
        raise ArgumentError(f"{method} of {problem.dtype} reads {problem.source_dtype}, not {source.dtype}")
    filling = pixel_bytes(outside, dtype) if outside is not None else b""
    with on_device_of(source):
        given = source if source.flags.c_contiguous else cupy.ascontiguousarray(source)
        result = cupy.empty(given.shape, dtype) if out is None else out
        launch, argument = _prepared(current_device(), problem, filling)
        nothing = null_pointer()
        arrays = [nothing] * 6
        if isinstance(motion, FieldSplines):
            (rows, columns), (starts_y, starts_x) = motion.weights, motion.starts
            held = (motion.coefficients, rows, starts_y, columns, starts_x)
            arrays[1:] = [cupy.asarray(array, order="C") for array in held]
        else:
            arrays[0] = cupy.asarray(motion, np.float64, order="C")
        launch(given, result, *arrays, last=(argument,))
    return result


@functools.lru_cache(maxsize=64)
def _prepared(device: int, problem: WarpProblem, outside: bytes) -> tuple[BoundLaunch, Any]:
    launch = warp_launch(problem, device_limits(device))
    return bound(launch, ()), as_struct(warp_argument(problem, launch, outside))
