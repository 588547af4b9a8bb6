"""Separable taps on tensor cores, on the device: dense float32 in and out, and which images must be done otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.binder import BoundLaunch, as_number, as_struct
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch
from xcorr_app.gpu.stencil.separable import SeparableProblem, Vector

__all__ = ["prepare_banded"]


def prepare_banded(
    problem: SeparableProblem, column: Vector, row: Vector, outside: float, macros: tuple[tuple[str, int], ...]
) -> Callable[[Any, Any], list[tuple[Any, Any]]]:
    """Return what starts the kernel on dense images and results, and returns the marks of each part's images."""
    parts = _starts(current_device(), problem, np.array_equal(column, row), macros)
    argument = as_struct(banded_argument(column, row, outside))

    def run(images: Any, out: Any) -> list[tuple[Any, Any]]:
        if len(parts) > 1:
            images, out = images.reshape(-1, *problem.image_shape), out.reshape(-1, *problem.result_shape)
        marks = []
        for part in parts:
            arrays = (images[part.image :], out[part.image :]) if part.image else (images, out)
            marked, _ = part.scratch()
            part.start(*arrays, marked, argument)
            marks.append((marked, part.marks_of_image))
        return marks

    return run


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
