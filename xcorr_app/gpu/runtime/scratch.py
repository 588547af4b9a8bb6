"""Memory on the device that one launch leaves to the next: made once where it is small, not before every launch."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

_MAX_KEPT = 2 << 20
"""Bytes; work that needs more takes far longer than memory is asked for."""
_MAX_STREAMS = 8
"""Streams that memory is kept for."""


class Scratch:
    """Arrays of one device; launches that may run at the same time, of other streams, have others.

    Each of `arrays` is a number of elements and a NumPy type, whose values nobody counts on; `counters` are integers
    that are zero before a launch, which leaves them zero again.
    """

    def __init__(self, *arrays: tuple[int, str], counters: int = 0) -> None:
        self._cupy = importlib.import_module("cupy")
        self._arrays, self._counters = arrays, counters
        self._keeps = sum(count * np.dtype(kind).itemsize for count, kind in arrays) <= _MAX_KEPT
        self._of_stream: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._of_captures: dict[tuple[int, int], tuple[Any, ...]] = {}

    def __call__(self) -> tuple[Any, ...]:
        """Return the arrays, and the counters last, for launches in the current stream.

        The same for every call. A stream of each thread's own has one number for all. What a graph captures is for
        replays in the stream that it was captured in, so that all graphs of a stream, which run one after the other,
        may share one set: it lives as long as this object, since nothing tells when the last of them is gone.
        """
        stream = self._cupy.cuda.get_current_stream()
        key = threading.get_ident(), stream.ptr
        kept = self._of_stream.get(key)
        if kept is not None and self._keeps:
            return kept
        if stream.is_capturing():
            return self._captured(key)
        if kept is None:
            kept = (*(self._empty() if self._keeps else ()), self._cupy.zeros(self._counters, "int32"))
            if len(self._of_stream) >= _MAX_STREAMS:
                self._of_stream.clear()
            self._of_stream[key] = kept
        return kept if self._keeps else (*self._empty(), *kept)

    def _captured(self, key: tuple[int, int]) -> tuple[Any, ...]:
        """Return the set of the graphs of a stream: one is made, and every graph sets the counters to zero itself."""
        known = self._of_captures.get(key)
        if known is None:
            return self._of_captures.setdefault(key, (*self._empty(), self._cupy.zeros(self._counters, "int32")))
        known[-1].fill(0)  # whichever graph is replayed first
        return known

    def _empty(self) -> tuple[Any, ...]:
        return tuple(self._cupy.empty(count, kind) for count, kind in self._arrays)
