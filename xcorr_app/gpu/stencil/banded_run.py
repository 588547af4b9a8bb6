"""Separable taps on tensor cores, on the device: dense float32 in and out, and which images must be done otherwise."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_number, as_struct
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch, fits_banded, is_faster_banded
from xcorr_app.gpu.stencil.separable import SeparableProblem

__all__ = ["run_banded", "takes_banded"]

_MEASURED = 90
"""Compute capability of the device whose times `is_faster_banded` goes by."""


def takes_banded(
    kernel: str, problem: SeparableProblem, key: tuple[bytes, bytes], image_type: str, result_type: str
) -> bool:
    """Whether `run_banded` does a problem on the current device.

    Parameters
    ----------
    kernel : str
        The name of the one that is asked for, or ``"auto"``: the faster one on devices of compute capability 9.0, of
        which one was measured; `separable` on all others.
    problem : SeparableProblem
        Sizes and boundary.
    key : (bytes, bytes)
        Column and row of taps, float64; of the first term, if there are several.
    image_type, result_type : str
        NumPy names of the types.

    Returns
    -------
    bool
        False for all that `separable` does.

    Raises
    ------
    ArgumentError
        For an unknown kernel, and where ``"banded"`` is asked for and cannot do it.
    """
    if kernel not in ("auto", "separable", "banded"):
        raise ArgumentError(f"unknown kernel {kernel!r}: choose from auto, separable, banded")
    is_auto = kernel == "auto"
    if kernel == "separable" or (is_auto and not is_faster_banded(problem, same_taps=key[0] == key[1])):
        return False
    if is_auto and _capability(current_device()) != _MEASURED:
        return False
    can = _fits(problem, key, image_type, result_type) and device_limits(current_device()).has_tensor_cores
    if kernel == "banded" and not can:
        raise ArgumentError(
            "kernel 'banded' takes one term of 2 to 65 taps an axis, float32 to float32, "
            "from compute capability 8.0 on: use 'auto'"
        )
    return can


def run_banded(
    problem: SeparableProblem,
    key: tuple[bytes, bytes],
    outside: float,
    images: Any,
    out: Any,
    macros: tuple[tuple[str, int], ...] = (),
) -> list[tuple[Any, Any]]:
    """Start the kernel.

    Parameters
    ----------
    problem : SeparableProblem
        That `takes_banded` accepts.
    key : (bytes, bytes)
        Column and row of taps, float64.
    outside : float
        Value outside the image, for boundary ``constant``.
    images, out : cupy.ndarray
        Dense; their last axes are rows and columns.
    macros : tuple of (str, int), optional
        Macro values that replace the table's, in order.

    Returns
    -------
    list of (cupy.ndarray, kernel argument)
        Of every part of the stack, int32, and how many of these each of its images has: not all are zero where a value
        that is not finite was met, so that results are wrong.
    """
    images, out = images.reshape(-1, *problem.image_shape), out.reshape(-1, *problem.result_shape)
    marks = []
    for part in _starts(current_device(), problem, key[0] == key[1], macros):
        marked, _ = part.scratch()
        part.start(images[part.image :], out[part.image :], marked, _argument(key, outside))
        marks.append((marked, part.marks_of_image))
    return marks


@functools.cache
def _capability(device: int) -> int:
    return int(importlib.import_module("cupy").cuda.Device(device).compute_capability)


@functools.lru_cache(maxsize=256)
def _fits(problem: SeparableProblem, key: tuple[bytes, bytes], image_type: str, result_type: str) -> bool:
    column, row = (np.frombuffer(taps) for taps in key)
    return fits_banded(problem, column, row, image_type, result_type)


@dataclass(frozen=True)
class _PartStart:
    """One launch, ready for arrays: its part of the stack begins at `image`."""

    image: int
    start: BoundLaunch
    scratch: Scratch
    marks_of_image: Any


@functools.lru_cache(maxsize=256)
def _starts(
    device: int, problem: SeparableProblem, same_taps: bool, macros: tuple[tuple[str, int], ...]
) -> tuple[_PartStart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    starts = []
    for image, part in problem.parts():
        launch = banded_launch(part, same_taps=same_taps, device=device_limits(device), tuning=dict(macros))
        marks_of_image = as_number(np.int32(launch.blocks // part.count))
        scratch = Scratch((launch.blocks, "int32"))  # a graph that holds the launches writes it again
        starts.append(_PartStart(image, BoundLaunch.of(launch, launch.extra), scratch, marks_of_image))
    return tuple(starts)


@functools.lru_cache(maxsize=256)
def _argument(key: tuple[bytes, bytes], outside: float) -> Any:
    """Pack taps once as a kernel argument."""
    column, row = (np.frombuffer(taps) for taps in key)
    return as_struct(banded_argument(column, row, outside))
