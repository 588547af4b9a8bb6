"""Fields fitted to a chunk of frames on a device: what is kept between launches, and their order."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.field.launches import (
    COMPARED,
    SLOPES,
    alike_launch,
    compare_launch,
    filter_launch,
    levels_launch,
    slope_launch,
    step_launch,
    summary_launch,
)
from xcorr_app.gpu.field.problem import FieldAxis, FieldProblem
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.types import name_of

__all__ = [
    "FieldModes",
    "FieldState",
    "SizedReference",
    "halve_frames",
    "smooth_frames",
    "spline_frames",
    "summary_of",
    "take_steps",
]

_SPLINE_RADIUS = 12
"""Pixels after which float32 keeps nothing of the filter of a cubic spline."""


@dataclass(frozen=True, eq=False)
class FieldModes:
    """Modes of several references, arrays of the device: see ``kernels/field/field_step.cu``."""

    shapes: Any
    """(kinds, n, n) of float32, n the numbers of a field."""
    across: Any
    """The same, rows for columns."""
    bends: Any
    """(kinds, n) of float64."""
    of_frame: Any
    """(T,) of int32: which of them each frame takes."""

    def of_more(self, times: float) -> FieldModes:
        """Modes of references that weigh so many times as much."""
        if times == 1:
            return self
        scale = np.float32(times**-0.5)
        return FieldModes(self.shapes * scale, self.across * scale, self.bends / times, self.of_frame)


@dataclass(frozen=True, eq=False)
class SizedReference:
    """What frames of one size are compared with, arrays of the device."""

    axes: tuple[FieldAxis, FieldAxis]
    columns: int
    """Of a tile at most."""
    image: Any
    """(Y, X) of float32, or (T, Y, X): one for each frame."""
    slopes: Any
    """The same with another axis of two: along rows and columns."""
    bending: tuple[Any, Any, Any, Any]
    """Matrices of the rows' second and first differences, then of the columns'."""
    ways_to_bend: int


@dataclass(frozen=True, eq=False)
class FieldState:
    """What is known of the field of every frame, arrays of the device."""

    fields: Any
    """(T, 2, gy, gx) of float64."""
    expected: Any
    """(T,) expected square of the bend."""
    alike: Any
    settled: Any
    """(T,) of int32"""
    sigma: Any
    """(T, 2, gy, gx)"""
    scores: Any

    @classmethod
    def of(cls, fields: Any) -> FieldState:
        """Fields (T, 2, gy, gx) to begin with."""
        cupy = importlib.import_module("cupy")
        count = len(fields)
        numbers, flags = cupy.ones((3, count)), cupy.zeros(count, np.int32)
        return cls(cupy.array(fields, np.float64), numbers[0], numbers[1], flags, cupy.empty(fields.shape), numbers[2])


def take_steps(
    frames: Any, reference: SizedReference, modes: FieldModes, state: FieldState, *, scale: int, most: int, near: float
) -> None:
    """Take up to `most` steps from fields multiplied by `scale` / 2, of frames (T, Y, X) of float32 and one size."""
    cupy = importlib.import_module("cupy")
    problem = _problem(frames, reference)
    down, across = reference.axes
    count, parts, nodes, splines = problem.count, problem.parts, problem.nodes, problem.splines
    own = int(problem.own_references)
    seen, coefficients = cupy.empty(frames.shape, np.float32), cupy.empty((count, *splines, 2), np.float32)
    compared, sums, neighbours = (
        cupy.empty((count, problem.tiles, size), np.float32) for size in (COMPARED, SLOPES, 1)
    )
    offsets, gains = cupy.empty((count, *nodes), np.float32), cupy.empty(count, np.float32)
    pixels = cupy.empty(count)
    tables = [(axis.parts, axis.weights, axis.behind) for axis in reference.axes]
    own_cells = [(axis.parts, axis.cells, axis.behind) for axis in reference.axes]

    def step(begins: int, first: int) -> None:
        start(
            step_launch(problem, near),
            (
                *(sums, neighbours, pixels, down.parts, across.parts, down.to_splines, across.to_splines),
                *(*reference.bending, modes.of_frame, modes.shapes, modes.across, modes.bends),
                *(state.fields, state.expected, state.alike, state.settled, state.sigma, coefficients),
            ),
            (*parts, *nodes, *splines, reference.ways_to_bend, begins, first),
        )

    step(scale, 0)
    for number in range(most):
        start(
            compare_launch(problem),
            (frames, reference.image, coefficients, *tables[0], *tables[1], state.settled, seen, compared),
            (*problem.shape, *parts, *splines, own),
        )
        start(
            levels_launch(problem),
            (compared, down.first_parts, across.first_parts, state.settled, offsets, gains, state.scores, pixels),
            (*parts, *nodes),
        )
        left = (offsets, gains, pixels)
        if number == 0:
            start(
                alike_launch(problem),
                (seen, reference.image, *left, *own_cells[0], *own_cells[1], neighbours),
                (*problem.shape, *parts, *nodes, own),
            )
        start(
            slope_launch(problem),
            (seen, reference.image, reference.slopes, *left, *tables[0], *tables[1], state.settled, sums),
            (*problem.shape, *parts, *nodes, own),
        )
        step(0, int(number == 0))


def summary_of(state: FieldState) -> Any:
    """Of each frame (T, 5): the median standard error, those along rows and columns, and the mean field."""
    cupy = importlib.import_module("cupy")
    count, _, rows, columns = state.fields.shape
    found = cupy.empty((count, 5))
    start(summary_launch(count, rows * columns), (state.fields, state.sigma, found), (rows * columns,))
    return found


def smooth_frames(frames: Any, means: Any, taps: Any, *, half: bool) -> tuple[Any, Any]:
    """Frames (T, Y, X) less their means (T,), under taps of a Gaussian: at full size, and at half or None."""
    return _filtered(frames, taps, means, full=True, half=half, centres=True)


def halve_frames(frames: Any) -> Any:
    """Means of 2 x 2 pixels of frames (T, Y, X) as float32."""
    return _filtered(frames, (1.0,), None, full=False, half=True)[1]


def spline_frames(frames: Any) -> Any:
    """Coefficients of the cubic splines through frames (T, Y, X), mirrored about the pixels of their edges."""
    return _filtered(frames, None, None, full=True, half=False, spline=True)[0]


def _filtered(frames: Any, taps: Any, means: Any, *, full: bool, half: bool, **kind: bool) -> tuple[Any, Any]:
    cupy = importlib.import_module("cupy")
    count, height, width = frames.shape
    given = cupy.ascontiguousarray(frames)
    sizes = [(count, height, width) if full else None, (count, height // 2, width // 2) if half else None]
    found = [None if size is None else cupy.empty(size, np.float32) for size in sizes]
    radius = _SPLINE_RADIUS if taps is None else len(taps) // 2
    launch = filter_launch((height, width), count, name_of(frames.dtype), radius, full=full, half=half, **kind)
    # What a kernel does not touch is given all the same.
    others = (given if means is None else means, given if taps is None or radius == 0 else taps)
    written = (given if each is None else each for each in found)
    start(launch, (given, *others, *written), (height, width, *launch.extra))
    return found[0], found[1]


def _problem(frames: Any, reference: SizedReference) -> FieldProblem:
    axes = reference.axes
    return FieldProblem(
        (int(frames.shape[1]), int(frames.shape[2])),
        len(frames),
        (len(axes[0].parts), len(axes[1].parts)),
        (axes[0].to_splines.shape[1], axes[1].to_splines.shape[1]),
        (axes[0].to_splines.shape[0], axes[1].to_splines.shape[0]),
        reference.columns,
        reference.image.ndim == 3,
    )
