"""Frames moved on the device: stack and shifts in, moved stack out, by one upload and one launch."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from xcorr_app.gpu.resample.problem import TranslationProblem, address_of, alignment_of, pixel_bytes
from xcorr_app.gpu.resample.translation import translation_argument, translation_launch
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, bound, null_pointer
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of

_WHAT = "Moved frames"


def translate_on_device(
    frames: Any,
    shifts: Any,
    method: str = "linear",
    *,
    outside: float | None = None,
    out: Any = None,
    counts: bool = False,
) -> tuple[Any, Any]:
    """Move every frame (T, Y, X) by its shift (T, 2), in host or device memory.

    Returns the moved stack, and the number of clipped pixels of each frame on the device: None where none can be, or
    where they are not counted. What lies outside is `outside`, or the frame's edge.
    """
    height, width = frames.shape[1:]
    fills = outside is not None
    problem = TranslationProblem((height, width), frames.shape[0], name_of(frames.dtype), method, fills, counts)
    filling = pixel_bytes(outside, frames.dtype) if outside is not None else b""
    with on_device_of(frames, out):
        # What fails has written nothing that a second try would not write again.
        return with_second_try(_translated, problem, frames, shifts, filling, out, what=_WHAT)


def _translated(problem: TranslationProblem, frames: Any, shifts: Any, outside: bytes, out: Any) -> tuple[Any, Any]:
    cupy = sys.modules["cupy"]  # whose arrays these are
    source = frames if frames.flags.c_contiguous else cupy.ascontiguousarray(frames)
    result = out if out is not None and out.flags.c_contiguous else cupy.empty(frames.shape, frames.dtype)
    launch, argument = _prepared(current_device(), problem, alignment_of(address_of(result)), outside)
    clipped = cupy.zeros(problem.count, np.uint64) if problem.counts and problem.overshoots else None
    count = null_pointer() if clipped is None else clipped
    launch(source, result, count, cupy.asarray(shifts, np.float64, "C"), last=(argument,))
    if out is None or result is out:
        return result, clipped
    out[...] = result
    return out, clipped


@functools.lru_cache(maxsize=256)
def _prepared(device: int, problem: TranslationProblem, alignment: int, outside: bytes) -> tuple[BoundLaunch, Any]:
    launch = translation_launch(problem, device_limits(device), alignment=alignment)
    return bound(launch, ()), as_struct(translation_argument(problem, launch, outside))
