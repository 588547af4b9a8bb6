"""Running projections on the device: a chunk of frames added to the sums of every pixel, in one launch."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, address_of, alignment_of, largest_piece
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, bound, null_pointer
from xcorr_app.gpu.runtime.launch import Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of

__all__ = ["TUNABLES", "ProjectionProblem", "add_to_sums", "projection_argument", "projection_launch"]

TUNABLES = frozenset(("COLUMNS", "THREADS"))
"""Macros that a caller may set."""


@dataclass(frozen=True)
class ProjectionProblem:
    """A chunk of frames that is added to sums.

    Attributes
    ----------
    frame_shape : tuple of int
        (height, width) of a frame, in pixels.
    count : int
        Number of frames.
    dtype : str
        NumPy's name of the pixels' type.
    has_areas : bool
        Whether of each frame only an area counts.
    """

    frame_shape: tuple[int, int]
    count: int
    dtype: str = "uint16"
    has_areas: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in PIXEL_TYPES:
            raise DataTypeError(f"frames of {self.dtype} cannot be summed up: use one of {', '.join(PIXEL_TYPES)}")
        if self.frame_shape[0] * self.frame_shape[1] > 2**31 - 2**16:
            raise ArgumentError(f"a frame of {self.frame_shape} has more pixels than one launch can number")


def projection_launch(
    problem: ProjectionProblem,
    device: DeviceLimits | None = None,
    *,
    alignment: int = 16,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines; `alignment` is that of the frames' address in bytes.

    A thread has four pixels where enough threads are left to fill the device, and fewer in small frames.
    """
    device, tuning = device or DeviceLimits(), tuning or {}
    refuse_unknown("project", tuning, TUNABLES)
    pixels, size = problem.frame_shape[0] * problem.frame_shape[1], np.dtype(problem.dtype).itemsize
    wanted = 4 if pixels >= 4 * 256 * device.multiprocessors else 2
    columns = tuning.get("COLUMNS", min(wanted, largest_piece(16, pixels * size, alignment) // size))
    if columns < 1 or pixels % columns:
        raise ArgumentError(f"COLUMNS={columns} does not divide the {pixels} pixels of a frame")
    threads = tuning.get("THREADS", 128)
    defines: dict[str, str | int] = {
        "PIXEL_TYPE": PIXEL_TYPES[problem.dtype],
        "COLUMNS": columns,
        "AREAS": int(problem.has_areas),
        "THREADS": threads,
    }
    return Launch("resample/project", defines, ceil_div(pixels, columns * threads), threads)


def projection_argument(problem: ProjectionProblem) -> npt.NDArray[Any]:
    """Pack the sizes as the kernel takes them: a struct by value."""
    packed = np.zeros((), np.dtype([(name, "i4") for name in ("frames", "height", "width")]))
    packed["frames"] = problem.count
    packed["height"], packed["width"] = problem.frame_shape
    return packed


def add_to_sums(frames: Any, sums: Any, squares: Any, numbers: Any, areas: npt.ArrayLike | None = None) -> None:
    """Add a chunk of frames (T, Y, X) to what is known of every pixel, all of it on the device.

    `sums` and `squares` (float64) and `numbers` (int32), each (Y, X) and dense, are updated in place: sums of the
    finite values and of their squares, and how many there were. `areas` (T, 4), in host memory, are the first and
    one-past-last row, and column, that count in each frame; by default all of it does. The host does not wait.
    """
    if frames.ndim != 3 or 0 in frames.shape:
        raise ShapeError(f"frames of shape {frames.shape} cannot be summed up: expected (T, Y, X)")
    height, width = frames.shape[1:]
    for array, dtype in ((sums, "float64"), (squares, "float64"), (numbers, "int32")):
        if array.shape != (height, width) or name_of(array.dtype) != dtype or not array.flags.c_contiguous:
            raise ShapeError(
                f"sums of {dtype} must be dense and of shape {(height, width)}: {array.dtype} {array.shape}"
            )
    cupy = sys.modules["cupy"]  # whose arrays these are
    problem = ProjectionProblem((height, width), frames.shape[0], name_of(frames.dtype), areas is not None)
    with on_device_of(frames, sums):
        source = frames if frames.flags.c_contiguous else cupy.ascontiguousarray(frames)
        launch, argument = _prepared(current_device(), problem, alignment_of(address_of(source)))
        parts = null_pointer()
        if areas is not None:
            chosen = np.ascontiguousarray(areas, np.int32)
            if chosen.shape != (problem.count, 4):
                raise ShapeError(f"areas have shape {chosen.shape}: expected {(problem.count, 4)}")
            parts = cupy.asarray(chosen)
        launch(source, sums, squares, numbers, parts, last=(argument,))


@functools.lru_cache(maxsize=64)
def _prepared(device: int, problem: ProjectionProblem, alignment: int) -> tuple[BoundLaunch, Any]:
    launch = projection_launch(problem, device_limits(device), alignment=alignment)
    return bound(launch, ()), as_struct(projection_argument(problem))
