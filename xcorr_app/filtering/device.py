"""Filters of arrays in device memory: a plan a problem, kept; and stacks whose work the memory does not hold at once.

Choosing an engine, taking taps apart and compiling costs milliseconds, a launch microseconds: everything that does not
depend on the pixels is done once for images of one shape and type. Nothing waits for the device, unless clipped pixels
are counted or a transform has to know whether a frame is finite.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.choice import decide_filter
from xcorr_app.filtering.device_runs import Run, made_run
from xcorr_app.filtering.kernel_names import FilterKernel, kernel_name, macros_of
from xcorr_app.filtering.request import checked_request
from xcorr_app.filtering.rounding import ResultType
from xcorr_app.filtering.taps import Filter, Origin
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import in_parts, with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.stencil.exchange import ExchangeOptions

_NO_ROOM = "the result of a filter does not fit"


@dataclass(frozen=True, eq=False)
class DevicePlan:
    """How one filter runs over images of one shape and type on one device.

    Attributes
    ----------
    decision : Decision
        What computes, and why.
    shape : tuple of int
        Of the result.
    target : dtype
        Of the result.
    run : callable
        ``run(images, out, clipped)``.
    """

    decision: Decision
    shape: tuple[int, ...]
    target: np.dtype[Any]
    run: Run


class _Taps(NamedTuple):
    """Taps of an array, as a key of plans."""

    shape: tuple[int, ...]
    dtype: str
    content: bytes


class _How(NamedTuple):
    """Everything that is asked for besides the images, as a key of plans."""

    taps: Filter | _Taps
    mode: Mode
    cval: float
    origin: Origin
    dtype: ResultType
    flip: bool
    kernel: FilterKernel | ExchangeOptions = "auto"


def filter_device_frames(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode,
    *,
    cval: float,
    origin: Origin,
    dtype: ResultType,
    kernel: FilterKernel | ExchangeOptions = "auto",
    flip: bool,
    out: Array | None = None,
    count: bool = True,
) -> tuple[Array, int]:
    """Filter images in device memory, as `xcorr_app.filtering.convolve.filter_frames` does."""
    xp = sys.modules["cupy"]  # whose array this is
    place: Any = origin if isinstance(origin, int) or not np.ndim(origin) else tuple(origin)
    how = _How(_key_of(taps), mode, cval, place, dtype, flip, kernel)
    with on_device_of(images, out):
        plan = device_plan(images, how)
        if out is not None:
            _check_out(out, images, plan)
        if out is not None and out.flags.c_contiguous:
            result = out
        else:
            result = with_second_try(xp.empty, plan.shape, plan.target, what=_NO_ROOM)
        counts = _fill(images, result, how, counts=count and plan.target.kind != "f")
        if out is not None and result is not out:
            out[...] = result
            result = out
        return result, sum(int(number[0]) for number in counts if number is not None)


def device_plan(images: Array, how: _How) -> DevicePlan:
    """Make the plan for images on the current device, or take the one that was made before."""
    return _plan(current_device(), images.shape, images.dtype, how)


@functools.lru_cache(maxsize=256)
def _plan(device: int, shape: tuple[int, ...], image_type: np.dtype[Any], how: _How) -> DevicePlan:
    taps: Any = how.taps
    if isinstance(taps, _Taps):
        taps = np.frombuffer(taps.content, taps.dtype).reshape(taps.shape)
    request = checked_request(
        shape,
        image_type,
        taps,
        how.mode,
        cval=how.cval,
        origin=how.origin,
        dtype=how.dtype,
        flip=how.flip,
    )
    named = kernel_name(how.kernel)
    decision = decide_filter(request, taps, shape, image_type, device_limits(device), named=named)
    run = made_run(decision, request, taps, shape, image_type, macros_of(how.kernel))
    return DevicePlan(decision, request.shape, request.target, run)


def _fill(images: Array, out: Array, how: _How, *, counts: bool) -> list[Array | None]:
    """Filter an image, or a stack in as many parts as the memory asks for; return the parts' counts of clipped pixels.

    Each try counts by itself, so that nothing is left of one that fails.
    """
    if images.ndim == 2:
        what = f"the work on one image of {images.shape} does not fit"
        return [with_second_try(_filtered, images, out, how, counts, what=what)]

    def some(start: int, stop: int) -> list[Array | None]:
        return [_filtered(images[start:stop], out[start:stop], how, counts)]

    def alone(i: int) -> list[Array | None]:
        return _fill(images[i], out[i], how, counts=counts)

    return [number for _, numbers in in_parts(some, len(images), alone=alone) for number in numbers]


def _filtered(images: Array, out: Array, how: _How, counts: bool) -> Array | None:
    clipped = array_namespace(images).zeros(1, np.uint64) if counts else None
    _ran(device_plan(images, how).run, images, out, clipped)
    return clipped


def _ran(run: Run, images: Array, out: Array, clipped: Array | None) -> None:
    run(images, out, clipped)


def _check_out(out: Array, images: Array, plan: DevicePlan) -> None:
    if is_device_array(out) != is_device_array(images):
        raise DataTypeError("out and images must both be in device memory")
    if out.shape != plan.shape or out.dtype != plan.target:
        raise ShapeError(f"out must be {plan.target} of shape {plan.shape}, not {out.dtype} of shape {out.shape}")
    if array_namespace(out).may_share_memory(out, images):
        raise ArgumentError("out must not overlap with the images in memory")


def _key_of(taps: npt.ArrayLike | Filter) -> Filter | _Taps:
    if isinstance(taps, Filter):
        return taps
    if not isinstance(taps, np.ndarray) and is_device_array(taps):
        raise DataTypeError("taps are in device memory: pass taps.get(), they are few")
    values = np.asarray(taps)
    if values.dtype.kind not in "biuf":
        raise DataTypeError(f"taps must be real numbers, not {values.dtype}")
    return _Taps(values.shape, values.dtype.str, values.tobytes())
