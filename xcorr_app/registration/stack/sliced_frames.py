"""Frames of arrays that are computed or read by slices: dask, zarr, h5py."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate
from typing import Any, Self

import numpy as np

from xcorr_app.arrays.kinds import as_array, is_lazy
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk

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
