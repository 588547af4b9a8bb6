"""What a caller hands in as a stack, made frames to be measured: any kind of array, any axes, masked or lazy."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from xcorr_app.arrays.axes import Axes, named_axes
from xcorr_app.arrays.kinds import as_array, is_lazy, is_stored
from xcorr_app.arrays.lazy import whole_planes
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.stack.sliced_frames import SlicedFrames


class Given:
    """A stack as handed in.

    Parameters
    ----------
    stack : array_like
        Any kind that :mod:`xcorr_app.arrays.kinds` takes, dask, zarr and h5py arrays (computed or read as needed), or
        a masked array.
    axes : str, optional
        A letter for each axis, of T, Z, C, Y, X; without it, an xarray's dimensions tell, else there are (T, Y, X).
    channel : int
        The one that is measured.
    """

    def __init__(self, stack: Any, axes: str | None = None, channel: int = 0) -> None:
        stack, axes = named_axes(stack, axes)
        if axes is None and channel != 0:
            raise ArgumentError(f"channel {channel}: give axes, such as 'TCYX', to say which are the channels")
        self.mask: Array | None = None
        """True where pixels count, (T, Y, X), of a masked array."""
        if isinstance(stack, np.ma.MaskedArray):
            missing = np.ma.getmaskarray(stack)
            stack = stack.data
            if missing.any():
                self.mask = ~missing if axes is None else _measured(~missing, axes, channel) == 1
        sliced = is_lazy(stack) or (is_stored(stack) and axes is None)
        if not sliced:
            stack = as_array(stack, "stack")
        if axes is not None:
            stack = _measured(stack, axes, channel)
        if is_lazy(stack) and stack.ndim == 3:
            stack = whole_planes(stack)
        self._held: Array | None = None if sliced else stack
        self.frames: Frames = SlicedFrames(stack) if sliced else ArrayFrames(stack)
        self.xp: Any = self.frames.xp if isinstance(self.frames, SlicedFrames) else array_namespace(stack)

    def on_its_device(self) -> AbstractContextManager[Any]:
        """Return a context in which the device that holds the stack is the current one."""
        return on_device_of(self._held)


def _measured(stack: Any, axes: str, channel: int) -> Any:
    return Axes(axes, tuple(stack.shape)).measured(stack, channel)


def given_reference(reference: Any) -> str | int | Array:
    """A name, a number, or an image of any kind of array."""
    return reference if isinstance(reference, (str, int, np.integer)) else as_array(reference, "reference")
