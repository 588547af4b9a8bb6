"""Memory settings of a process that belongs to us; a library call never changes them."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory(limit: int = 1 << 28) -> None:
    """Tell glibc to keep freed blocks of up to `limit` bytes instead of giving them back to the system.

    Work arrays of a few megabytes are taken and freed for every frame; faulting their pages in again each time costs
    more than the arithmetic on them. All threads share them, since what the thread that measures has freed is of use to
    the one that moves. Does nothing where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, min(limit, 1 << 25))
        mallopt(_M_TRIM_THRESHOLD, limit)
        mallopt(_M_ARENA_MAX, 1)
