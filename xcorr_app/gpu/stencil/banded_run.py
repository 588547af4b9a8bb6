"""Separable taps on tensor cores, on the device: dense float32 in and out, and which images must be done otherwise."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.binder import BoundLaunch, as_number, as_struct
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch
from xcorr_app.gpu.stencil.separable import SeparableProblem

__all__ = ["run_banded"]


def run_banded(
    problem: SeparableProblem,
    key: tuple[bytes, bytes],
    outside: float,
    images: Any,
    out: Any,
    macros: tuple[tuple[str, int], ...] = (),
) -> list[tuple[Any, Any]]:
    """Start the kernel."""
    images, out = images.reshape(-1, *problem.image_shape), out.reshape(-1, *problem.result_shape)
    marks = []
    for part in _starts(current_device(), problem, key[0] == key[1], macros):
        marked, _ = part.scratch()
        part.start(images[part.image :], out[part.image :], marked, _argument(key, outside))
        marks.append((marked, part.marks_of_image))
    return marks


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
