"""BLAS adds in one order while something is measured: in one thread, however many it has here or in another process.

Frames are measured by threads of our own; those of BLAS and OpenCV below each of them would also wait for one another.
OpenCV's, which wait in a loop, take three to seven times as long as one alone to add up the rows of a small image.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cv2

_LOCK = threading.Lock()
_users = 0
_before: list[tuple[Callable[[int], object], int]] = []
"""What sets the threads of libraries that had more when the first of the users came, and how many: the last one gives
them back."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS, LAPACK and OpenCV work in the thread that calls them; also a decorator. It is the whole process's."""
    global _users
    with _LOCK:
        _users += 1
        libraries = _libraries(frozenset({"numpy", "scipy.linalg"} & sys.modules.keys()))
        for set_threads, count in (
            *((library.set_num_threads, library.num_threads or 1) for library in libraries),
            (cv2.setNumThreads, cv2.getNumThreads()),
        ):
            if count > 1:
                _before.append((set_threads, count))
                set_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            while _before and not _users:
                set_threads, count = _before.pop()
                set_threads(count)


@functools.cache
def _libraries(of: frozenset[str]) -> list[Any]:
    """What modules have loaded; SciPy has a BLAS of its own, and comes where it is needed."""
    if not of:
        return []
    from threadpoolctl import ThreadpoolController

    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
