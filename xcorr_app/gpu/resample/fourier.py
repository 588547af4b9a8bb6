"""Frames moved by Fourier interpolation on the device: four launches of the family and four batched FFTs."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, pixel_bytes, sum_type
from xcorr_app.gpu.runtime.arrays import fft_namespace
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, bound, null_pointer
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import name_of

SUMS_A_PIXEL = 8
"""Working numbers for a pixel that are held at once: lines, their spectra, the moved series, and its transform."""

_TILE, _THREADS = 64, 256


@dataclass(frozen=True)
class FourierProblem:
    """A stack whose frames are moved by Fourier interpolation.

    Attributes
    ----------
    frame_shape : tuple of int
        (height, width) of a frame, in pixels.
    count : int
        Number of frames.
    dtype : str
        NumPy's name of the pixels' type.
    fills_outside, counts : bool
        As in `xcorr_app.gpu.resample.problem.TranslationProblem`.
    """

    frame_shape: tuple[int, int]
    count: int
    dtype: str = "uint16"
    fills_outside: bool = True
    counts: bool = False


def fourier_launches(
    problem: FourierProblem, _: DeviceLimits | None = None, tuning: Mapping[str, int] | None = None
) -> tuple[Launch, ...]:
    """Choose grids and defines, in the order of the steps: lines, shift, lines, shift, store."""
    refuse_unknown("fourier", tuning or (), ())
    height, width = problem.frame_shape
    kind = sum_type(problem.dtype)
    types: dict[str, str | int] = {"PIXEL_TYPE": PIXEL_TYPES[problem.dtype], "SUM_TYPE": kind}
    tile_bytes = _TILE * (WARP + 1) * (8 if kind == "double" else 4)

    def launch(kernel: str, blocks: int, shared: int = 0, **defines: int) -> Launch:
        if max(problem.count, _THREADS) * blocks >= 2**31:  # threads of a frame are numbered too
            raise ArgumentError(f"{problem} is more than one launch can have")
        named = {**types, **defines}
        return Launch(f"resample/{kernel}", named, problem.count * blocks, _THREADS, shared, extra=(blocks,))

    def lines(samples: int, count: int, *, moved: int) -> Launch:
        blocks = ceil_div(samples, _TILE) * ceil_div(count, WARP)
        return launch("fourier_lines", blocks, tile_bytes, MOVED=moved)

    def shift(samples: int, count: int) -> Launch:
        return launch("fourier_shift", ceil_div(count * (samples // 2 + 1), _THREADS))

    counts = problem.counts and np.dtype(problem.dtype).kind != "f"
    return (
        lines(height, width, moved=0),
        shift(height, width),
        lines(width, height, moved=1),
        shift(width, height),
        launch("fourier_store", ceil_div(height * ceil_div(width, 2), _THREADS), 32, COUNTS=int(counts)),
    )


def move_by_fourier(
    frames: Any, shifts: npt.NDArray[np.float64], outside: float | None, out: Any, *, copied: Any, counts: bool
) -> Any:
    """Move frames (T, Y, X), dense and finite, by (T, 2) pixels into `out`, dense and of their type.

    Frames that move by whole pixels are copied from `copied`, bit by bit, which need not be finite. Returns the number
    of clipped pixels of each frame on the device, or None where they are not counted.
    """
    cupy = sys.modules["cupy"]  # whose arrays these are
    fft = fft_namespace(frames)
    count, height, width = frames.shape
    problem = FourierProblem((height, width), count, name_of(frames.dtype), outside is not None, counts)
    first, first_shift, second, second_shift, store = _prepared(current_device(), problem)
    real, complex_ = ("float64", "complex128") if sum_type(problem.dtype) == "double" else ("float32", "complex64")
    there = cupy.asarray(shifts, np.float64, "C")
    packed = _frames_argument(problem, first, outside)

    lines = cupy.empty((count, width, height), real)
    first.launch(frames, null_pointer(), lines, there, last=(packed,))
    moved = _moved(cupy, fft, lines, shifts[:, 0], first_shift, complex_)
    lines = cupy.empty((count, height, width), real)
    second.launch(frames, moved, lines, there, last=(_frames_argument(problem, second, outside),))
    del moved
    moved = _moved(cupy, fft, lines, shifts[:, 1], second_shift, complex_)
    clipped = cupy.zeros(count, np.uint64) if counts and frames.dtype.kind != "f" else None
    counter = null_pointer() if clipped is None else clipped
    store.launch(moved, lines, copied, out, counter, there, last=(_frames_argument(problem, store, outside),))
    return clipped


@dataclass(frozen=True)
class _Step:
    launch: BoundLaunch
    blocks: int


@functools.lru_cache(maxsize=64)
def _prepared(_device: int, problem: FourierProblem) -> tuple[_Step, ...]:
    return tuple(_Step(bound(launch, ()), launch.extra[0]) for launch in fourier_launches(problem))


def _moved(cupy: Any, fft: Any, lines: Any, shifts: npt.NDArray[np.float64], step: _Step, kind: str) -> Any:
    """Transform lines (T, count, n), shift each frame's by its pixels, and transform them back."""
    frames, count, n = lines.shape
    spectra = fft.rfft(lines, axis=-1)
    # In float64: at k = n a phase reaches pi * shift, too much for single precision.
    k = cupy.arange(n, dtype=np.float64)
    held = cupy.asarray(np.clip(shifts, -2.0 * n - 16, 2.0 * n + 16))  # beyond, all of the frame lies outside
    phases = cupy.exp(1j * (math.pi / n) * held[:, None] * k).astype(kind)
    turns = cupy.exp(1j * (math.pi / (2 * n)) * k[: n // 2 + 1]).astype(kind)
    packed = np.zeros((), np.dtype([(name, "i4") for name in ("samples", "count", "blocks")]))
    packed["samples"], packed["count"], packed["blocks"] = n, count, step.blocks
    series = cupy.empty((frames, count, n), kind)
    step.launch(spectra, series, phases, turns, last=(as_struct(packed),))
    del spectra
    return fft.ifft(series, axis=-1, norm="forward", overwrite_x=True)


def _frames_argument(problem: FourierProblem, step: _Step, outside: float | None) -> Any:
    """Pack the sizes as the kernels take them: a struct by value."""
    names = ("height", "width", "blocks", "fills_outside")
    packed = np.zeros((), np.dtype([("outside", "u8"), *((name, "i4") for name in names)]))
    if outside is not None:
        packed["outside"] = int.from_bytes(pixel_bytes(outside, np.dtype(problem.dtype)), "little")
    packed["height"], packed["width"] = problem.frame_shape
    packed["blocks"], packed["fills_outside"] = step.blocks, problem.fills_outside
    return as_struct(packed)
