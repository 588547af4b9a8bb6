"""What moves the frames of a stack, and why; in device memory by ``kernels/resample``, or by FFTs of many at a time."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.resample.fourier import SUMS_A_PIXEL, move_by_fourier
from xcorr_app.gpu.resample.problem import TranslationProblem
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.memory import in_parts
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.moving.interpolation import METHODS, Order, check_order, inside_each, snap_each
from xcorr_app.registration.moving.translation import bridged, nearest_marks, working_type

FOURIER_BYTES = 1 << 30
"""Scratch memory of the FFTs: enough frames at a time to fill a device; where it is not free, fewer are taken."""


def move_on_device(
    frames: Array, shifts: NDArray[np.float64], order: Order, outside: float | None, out: Array, *, counts: bool
) -> tuple[Array, int]:
    """Move frames as `apply_shifts` does, and count clipped pixels where asked: the host waits for the count alone."""
    height, width = frames.shape[1:]
    with on_device_of(frames, out):
        limits = device_limits(current_device())
        decision = decide_moving((height, width), len(frames), name_of(frames.dtype), order, limits)
        if decision.engine == "fft":
            return _by_fourier(frames, shifts, outside, out, counts=counts)
        moved, clipped = translate_on_device(frames, shifts, decision.kernel, outside=outside, out=out, counts=counts)
        return moved, 0 if clipped is None else int(clipped.sum())


def _by_fourier(
    frames: Array, shifts: NDArray[np.float64], outside: float | None, out: Array, *, counts: bool
) -> tuple[Array, int]:
    snapped = snap_each(shifts)
    if (snapped == np.rint(snapped)).all():
        return translate_on_device(frames, shifts, "nearest", outside=outside, out=out)[0], 0
    xp = array_namespace(frames)
    height, width = frames.shape[1:]
    working_bytes = working_type(np.dtype(frames.dtype)).itemsize
    at_once = max(1, FOURIER_BYTES // (SUMS_A_PIXEL * working_bytes * height * width))

    def job(start: int, stop: int) -> tuple[Array, Array | None]:
        return _part_by_fourier(frames[start:stop], shifts[start:stop], outside, counts=counts)

    result, counted = out, []
    parts = in_parts(job, len(frames), at_once=at_once, what="Frames moved by Fourier interpolation")
    for stop, (moved, clipped) in parts:
        start = stop - len(moved)
        if result is None:
            result = moved if len(moved) == len(frames) else xp.empty(frames.shape, frames.dtype)
        if result is not moved:
            result[start:stop] = moved
        counted += [] if clipped is None else [clipped]
    return result, sum(int(clipped.sum()) for clipped in counted)


def _part_by_fourier(
    frames: Array, shifts: NDArray[np.float64], outside: float | None, *, counts: bool
) -> tuple[Array, Array | None]:
    """Some frames moved, and how many pixels of each were clipped."""
    xp = array_namespace(frames)
    given = sound = xp.ascontiguousarray(frames)
    marks = None
    if frames.dtype.kind == "f":
        finite = xp.isfinite(given)
        if not bool(finite.all()):
            sound, marks = bridged(given, finite), nearest_marks(~finite, shifts)
    moved = xp.empty(frames.shape, frames.dtype)
    clipped = move_by_fourier(sound, shifts, outside, moved, copied=given, counts=counts)
    if marks is not None:
        snapped = snap_each(shifts)
        marks &= xp.asarray((snapped != np.rint(snapped)).any(axis=1))[:, None, None]  # the others are copies
        if outside is not None:
            rows, columns = (_inside(n, shifts[:, axis]) for axis, n in enumerate(frames.shape[1:]))
            marks &= xp.asarray(rows)[:, :, None] & xp.asarray(columns)[:, None, :]
        moved[marks] = xp.nan
    return moved, clipped


def _inside(length: int, shifts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which output indices (T, length) come from inside the frame."""
    first, stop = (ends[:, None] for ends in inside_each(length, shifts))
    places = np.arange(length)
    return (places >= first) & (places < stop)


@functools.lru_cache(maxsize=256)
def decide_moving(
    frame_shape: tuple[int, int], count: int, dtype: str, order: Order, limits: DeviceLimits | None
) -> Decision:
    """Decide what moves so many frames of a type (NumPy's name) by an order; `limits` None is the CPU.

    Every order is one definition, and each has one engine on a device and one on the CPU.

    Examples
    --------
    >>> print(decide_moving((512, 512), 512, "uint16", 3, None).described())
    opencv: order 3, cubic, has 4 taps along each axis: OpenCV's separable filter, frames shared among threads
      not modelled  opencv
    """
    check_order(order)
    if order == "fourier":
        return Decision("fft", "", "Fourier interpolation reaches over the whole frame", (Candidate("fft"),))
    method = METHODS[order]
    taps = TranslationProblem(frame_shape, count, dtype, method).taps
    what = f"order {order}, {method}, has {taps} tap{'s' if taps > 1 else ''} along each axis"
    if limits is None:
        engine, how = ("opencv", "OpenCV's separable filter") if taps > 1 else ("numpy", "pixels are copied")
        return Decision(engine, reason=f"{what}: {how}, frames shared among threads", candidates=(Candidate(engine),))
    return Decision("resample", method, f"{what}: all frames in one launch", (Candidate("resample", method),))
