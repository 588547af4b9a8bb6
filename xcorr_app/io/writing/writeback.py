"""Lets the system begin to bring what was written to the disk, so that little is left for the sync at the end."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

_WRITE = 2
"""``SYNC_FILE_RANGE_WRITE``: begin with what nobody writes yet, and wait for nothing."""


def begin_writeback(descriptor: int, offset: int, size: int) -> None:
    """Begin to bring bytes of a file to the disk, where the system can; what goes wrong, `os.fsync` tells."""
    begin = _sync_file_range()
    if begin is not None:
        begin(descriptor, offset, size, _WRITE)


@functools.cache
def _sync_file_range() -> Any:
    """Linux's function, which Python's library lacks; None elsewhere."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint
    return function
