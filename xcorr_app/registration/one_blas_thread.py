"""BLAS adds in one order while something is measured: in one thread, however many it has here or in another process.

Frames are measured by threads of our own; those of a BLAS below each of them would also wait for one another.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_users = 0
_before: list[tuple[Any, int]] = []
"""Libraries that had more threads when the first of the users came, and how many: the last one gives them back."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK work in the thread that calls them; also a decorator. The number is the whole process's."""
    global _users
    with _LOCK:
        _users += 1
        for library in _libraries(tuple(name for name in ("numpy", "scipy.linalg") if name in sys.modules)):
            if (library.num_threads or 1) > 1:
                _before.append((library, library.num_threads))
                library.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            while _before and not _users:
                library, count = _before.pop()
                library.set_num_threads(count)


@functools.cache
def _libraries(of: tuple[str, ...]) -> list[Any]:
    """What modules have loaded; SciPy has a BLAS of its own, and comes where it is needed."""
    if not of:
        return []
    from threadpoolctl import ThreadpoolController

    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
