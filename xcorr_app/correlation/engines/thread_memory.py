"""Memory that transforms write into, kept from call to call: pages of new memory cost as much time as a transform."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

_SHAPES = 3
"""Pairs of shape and type whose arrays a thread keeps: of the measurement, of its check in float64, and one more."""

_Key = tuple[tuple[int, ...], str]
_OF_THREAD = threading.local()


def thread_memory(count: int, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> list[NDArray[np.floating]]:
    """Arrays of this thread, the same in every call for this shape; they hold what was last written into them."""
    kept: dict[_Key, list[NDArray[np.floating]]] = _OF_THREAD.__dict__.setdefault("arrays", {})
    key = shape, dtype.name
    if key not in kept and len(kept) >= _SHAPES:
        del kept[next(iter(kept))]
    arrays = kept.setdefault(key, [])
    arrays.extend(np.empty(shape, dtype) for _ in range(count - len(arrays)))
    return arrays[:count]
