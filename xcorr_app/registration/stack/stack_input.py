"""What a caller hands in as a stack, made frames to be measured: any kind of array, any axes, masked or lazy."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, Self

import numpy as np

from xcorr_app.arrays.axes import Axes, named_axes
from xcorr_app.arrays.kinds import as_array, is_lazy, is_stored
from xcorr_app.arrays.lazy import whole_planes
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames


class InputStack:
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


_KEPT = 1 << 30
"""Bytes of blocks that are kept, since a measurement reads frames several times; all of a smaller stack."""


class SlicedFrames:
    """Frames of an array (T, Y, X) that is sliced as they are needed, a block along T at a time.

    Blocks are those of the array's own chunks, so that none is computed for a part of it; what was used last is kept.
    """

    def __init__(self, stack: Any, *, on_host: bool = False) -> None:
        self._stack, self._on_host = stack, on_host
        self.xp: Any = array_namespace(stack._meta) if is_lazy(stack) else np
        self.dtype = np.dtype(np.uint8 if stack.dtype == bool else stack.dtype)
        ArrayFrames(np.broadcast_to(np.empty((), self.dtype), stack.shape))  # whose checks hold here
        self.count, self.shape = int(stack.shape[0]), (int(stack.shape[1]), int(stack.shape[2]))
        self._ends = _block_ends(stack)
        self._blocks: OrderedDict[int, Array] = OrderedDict()
        self._lock, self._locks = threading.Lock(), [threading.Lock() for _ in self._ends]

    def read(self, start: int, stop: int) -> Chunk:
        """Compute or read the blocks that hold the frames, unless they are kept."""
        parts = []
        for number in range(bisect_right(self._ends, start), bisect_right(self._ends, stop - 1) + 1):
            begin = self._ends[number - 1] if number else 0
            parts.append(self._block(number)[max(start - begin, 0) : stop - begin])
        frames = parts[0] if len(parts) == 1 else self.xp.concatenate(parts)
        return Chunk(start, to_host(frames) if self._on_host else frames, {})

    def on_host(self) -> Self:
        """Return the same frames, copied to the host as they are read."""
        return type(self)(self._stack, on_host=True)

    def _block(self, number: int) -> Array:
        # Threads ask for frames of one block at the same time: one of them computes it.
        with self._locks[number]:
            with self._lock:
                if number in self._blocks:
                    self._blocks.move_to_end(number)
                    return self._blocks[number]
            begin = self._ends[number - 1] if number else 0
            block = as_array(self._stack[begin : self._ends[number]], "stack")
            with self._lock:
                self._blocks[number] = block
                while len(self._blocks) > 1 and sum(kept.nbytes for kept in self._blocks.values()) > _KEPT:
                    self._blocks.popitem(last=False)
            return block


def _block_ends(stack: Any) -> list[int]:
    """Number of the frame after each block."""
    if is_lazy(stack):
        return list(accumulate(int(length) for length in stack.chunks[0]))
    chunks = getattr(stack, "shards", None) or getattr(stack, "chunks", None)
    length = int(chunks[0]) if chunks else 1
    return [*range(length, int(stack.shape[0]), length), int(stack.shape[0])]
