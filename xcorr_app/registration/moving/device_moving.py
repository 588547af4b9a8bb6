"""What moves the frames of a stack, and why; in device memory by ``kernels/resample``, or by FFTs of many at a time."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.resample.problem import TranslationProblem, pixel_bytes
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.memory import in_parts
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.moving.interpolation import METHODS, Order, check_order, inside_each, snap_each
from xcorr_app.registration.moving.translation import fourier_moved, working_type

FOURIER_BYTES = 1 << 30
"""Scratch memory of the FFTs: enough frames at a time to fill a device; where it is not free, fewer are taken."""
_NUMBERS_A_PIXEL = 16
"""Working numbers for a pixel that are held at once: mirrored frames, their spectra, and what the FFTs copy."""


def move_on_device(
    frames: Array, shifts: NDArray[np.float64], order: Order, outside: float | None, *, counts: bool
) -> tuple[Array, int]:
    """Move frames as `apply_shifts` does, and count clipped pixels where asked: the host waits for the count alone."""
    height, width = frames.shape[1:]
    with on_device_of(frames):
        limits = device_limits(current_device())
        decision = decide_moving((height, width), len(frames), name_of(frames.dtype), order, limits)
        if decision.engine == "fft":
            return _by_fourier(frames, shifts, outside, counts=counts)
        moved, clipped = translate_on_device(frames, shifts, decision.kernel, outside=outside, counts=counts)
        return moved, 0 if clipped is None else int(clipped.sum())


def _by_fourier(
    frames: Array, shifts: NDArray[np.float64], outside: float | None, *, counts: bool
) -> tuple[Array, int]:
    result = translate_on_device(frames, shifts, "nearest", outside=outside)[0]  # what moves by whole pixels
    snapped = snap_each(shifts)
    others = np.flatnonzero((snapped != np.rint(snapped)).any(axis=1))
    if not others.size:
        return result, 0
    xp, dtype = array_namespace(frames), np.dtype(frames.dtype)
    working = working_type(dtype)
    at_once = max(1, FOURIER_BYTES // (_NUMBERS_A_PIXEL * working.itemsize * math.prod(frames.shape[1:])))

    def job(start: int, stop: int) -> Array | None:
        these, at = shifts[others[start:stop]], xp.asarray(others[start:stop])
        moved, clipped = fourier_moved(frames[at], these, working), None
        if outside is not None:
            filling = xp.asarray(np.frombuffer(pixel_bytes(outside, dtype), dtype).astype(working))
            rows, columns = (xp.asarray(_inside(n, these[:, axis])) for axis, n in enumerate(frames.shape[1:]))
            moved = xp.where(rows[:, :, None] & columns[:, None, :], moved, filling)
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            xp.rint(moved, out=moved)
            clipped = xp.count_nonzero((moved < limits.min) | (moved > limits.max)) if counts else None
            xp.clip(moved, limits.min, limits.max, out=moved)
        result[at] = moved.astype(dtype)
        return clipped

    parts = in_parts(job, len(others), at_once=at_once, what="Frames moved by Fourier interpolation")
    return result, sum(int(clipped) for _, clipped in list(parts) if clipped is not None)


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
