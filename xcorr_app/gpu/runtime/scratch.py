"""Memory on the device that one launch leaves to the next: made once where it is small, not before every launch."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

__all__ = ["Scratch"]

_MOST_KEPT = 2 << 20
"""Bytes; work that needs more takes far longer than memory is asked for."""
_MOST_STREAMS = 8
"""Streams that memory is kept for."""


class Scratch:
    """Arrays of one device; launches that may run at the same time, of other streams, have others.

    Parameters
    ----------
    *arrays : tuple of int and str
        Elements and NumPy type of each array, whose values nobody counts on.
    counters : int, optional
        Integers that are zero before a launch, which leaves them zero again.
    """

    def __init__(self, *arrays: tuple[int, str], counters: int = 0) -> None:
        self._cupy = importlib.import_module("cupy")
        self._arrays, self._counters = arrays, counters
        self._keeps = sum(count * np.dtype(kind).itemsize for count, kind in arrays) <= _MOST_KEPT
        self._of_stream: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._of_graphs: list[tuple[Any, ...]] = []

    def __call__(self) -> tuple[Any, ...]:
        """Return the arrays, and the counters last, for launches in the current stream.

        Returns
        -------
        tuple of cupy.ndarray
            The same for every call. A stream of each thread's own has one number for all. What a graph captures is
            for replays in the stream that it was captured in.
        """
        stream = self._cupy.cuda.get_current_stream()
        key = threading.get_ident(), stream.ptr
        kept = self._of_stream.get(key)
        if kept is not None and self._keeps:
            return kept
        capturing = stream.is_capturing()
        if kept is None:
            kept = (*(self._empty() if self._keeps else ()), self._cupy.zeros(self._counters, "int32"))
            if not capturing:  # else the zeros are made in the graph alone
                if len(self._of_stream) >= _MOST_STREAMS:
                    self._of_stream.clear()
                self._of_stream[key] = kept
        arrays = kept if self._keeps else (*self._empty(), *kept)
        if capturing:  # every replay writes them
            self._of_graphs.append(arrays)
        return arrays

    def _empty(self) -> tuple[Any, ...]:
        return tuple(self._cupy.empty(count, kind) for count, kind in self._arrays)
