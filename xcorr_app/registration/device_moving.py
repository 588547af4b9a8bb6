"""A stack in device memory moved: by the kernels of ``kernels/resample``, or by FFTs of many frames at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import in_parts
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.fourier import BYTES_A_PIXEL, fourier_moved
from xcorr_app.registration.interpolation import Order, inside_each, snap_each
from xcorr_app.registration.moving_choice import decide_moving
from xcorr_app.registration.translation import working_type

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["FOURIER_BYTES", "move_on_device"]

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
    # Frames that move by whole pixels are copied, bit by bit; of the others every pixel is written once more.
    result, _ = translate_on_device(frames, shifts, "nearest", outside=outside, out=out)
    snapped = snap_each(shifts)
    moved = np.flatnonzero((snapped != np.rint(snapped)).any(axis=1))
    if moved.size:
        xp = array_namespace(frames)
        height, width = frames.shape[1:]
        kind = working_type(np.dtype(frames.dtype))
        at_once = max(1, FOURIER_BYTES // (BYTES_A_PIXEL * kind.itemsize * height * width))

        def job(start: int, stop: int) -> Any:
            which = moved[start:stop]
            whole = which[-1] - which[0] == len(which) - 1
            chosen: Any = slice(int(which[0]), int(which[-1]) + 1) if whole else xp.asarray(which)
            values = fourier_moved(frames[chosen], shifts[which], kind, fills_outside=outside is not None)
            return _put(result, chosen, values, shifts[which], outside, xp, counts=counts)

        parts = in_parts(job, len(moved), at_once=at_once, what="Frames moved by Fourier interpolation")
        clipped = sum(count for _, count in parts)
        return result, int(clipped)
    return result, 0


def _put(
    result: Array,
    chosen: Any,
    values: Array,
    shifts: NDArray[np.float64],
    outside: float | None,
    xp: ModuleType,
    *,
    counts: bool,
) -> Any:
    """Store values as pixels; those outside are not touched where they are filled. Returns how many were clipped."""
    area: Any = None
    if outside is not None:
        rows, columns = (_inside(n, shifts[:, axis], xp) for axis, n in enumerate(values.shape[1:]))
        area = rows[:, :, None] & columns[:, None, :]
    clipped: Any = 0
    if result.dtype.kind != "f":
        limits = np.iinfo(result.dtype)
        values = xp.rint(values)
        if counts:
            beyond = (values < limits.min) | (values > limits.max)
            clipped = xp.count_nonzero(beyond if area is None else beyond & area)
        values = xp.clip(values, limits.min, limits.max)
    stored = values.astype(result.dtype)
    result[chosen] = stored if area is None else xp.where(area, stored, result.dtype.type(outside))
    return clipped


def _inside(length: int, shifts: NDArray[np.float64], xp: ModuleType) -> Array:
    """Which output indices (T, length) come from inside the frame."""
    first, stop = (xp.asarray(ends)[:, None] for ends in inside_each(length, shifts))
    places = xp.arange(length)
    return (places >= first) & (places < stop)
