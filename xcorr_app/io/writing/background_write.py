"""Letting the disk begin with what was written, before it is asked to have it all."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from contextlib import suppress

_WRITE = 2
"""``SYNC_FILE_RANGE_WRITE``: begin, and wait for nothing."""


def begin_write_out(descriptor: int, offset: int, size: int) -> None:
    """Let the disk begin with a range of a file, where the system can (Linux).

    Else it has nothing to do until the file is synced, which then takes as long as all of it takes to be written. It
    says nothing about what is on the disk: that is for ``fsync``, which also tells of errors.
    """
    begin = _sync_file_range()
    if begin is not None:
        begin(descriptor, offset, size, _WRITE)


@functools.cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Function of the C library, which lets other threads go on meanwhile."""
    with suppress(OSError, AttributeError, TypeError):
        found = ctypes.CDLL(None).sync_file_range
        found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        return found
    return None
