"""What differs between operating systems; the rest of the program asks here alone.

Windows has no ``pread``, no ``flock`` and no SIGHUP, it neither renames nor removes files that are open, and syncs no
folders. Beside each thing stands what does the same there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

Buffer = bytes | bytearray | memoryview

MOVES_OPEN_FILES = fcntl is not None
"""Whether files that are open can be renamed, removed and replaced."""
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`: a link is not followed."""
READING: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""For `os.open`: bytes as they are. Opening a pipe that nobody writes to would wait for ever."""
WRITING: int = os.O_RDWR | getattr(os, "O_BINARY", 0)
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))
"""Signals that end a run as Ctrl-C does."""
_LOCKED = 1 << 30
"""Place of the byte that is locked where locks are of bytes, which nobody then reads: beyond all that is written."""
_in_turn = threading.Lock()
"""Held where a file has one position, which threads share."""


def worker_count() -> int:
    """Number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read up to `size` bytes from a place in a file; threads may share the descriptor."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    with _in_turn:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)


def read_into(descriptor: int, buffers: Sequence[Any], offset: int) -> int:
    """Fill buffers, one after the other, from a place in a file; returns how many bytes there were."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, buffers, offset)
    done = 0
    for buffer in buffers:
        place = memoryview(buffer).cast("B")
        block = read_at(descriptor, len(place), offset + done)
        place[: len(block)] = block
        done += len(block)
        if len(block) < len(place):
            break
    return done


def write_from(descriptor: int, buffers: Sequence[Buffer], offset: int) -> int:
    """Write buffers, one after the other, to a place in a file; returns how many bytes were written."""
    if hasattr(os, "pwritev"):
        return os.pwritev(descriptor, buffers, offset)
    with _in_turn:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, b"".join(buffers))


def lock(descriptor: int) -> bool:
    """Hold a file until it is closed, by whatever the process ends; False where another process holds it.

    Raises OSError where the file system knows no locks.
    """
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    import msvcrt

    system: Any = msvcrt
    os.lseek(descriptor, _LOCKED, os.SEEK_SET)
    try:
        system.locking(descriptor, system.LK_NBLCK, 1)
    except PermissionError:
        return False
    return True


def sync(place: Path | int) -> None:
    """Have the disk take a file or a folder, or what a descriptor is of."""
    if isinstance(place, int):
        os.fsync(place)
        return
    is_folder = place.is_dir()
    if is_folder and not MOVES_OPEN_FILES:
        return
    descriptor = os.open(place, READING if is_folder else WRITING)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def memory_limit() -> int | None:
    """Bytes of addresses that this process may still take; None where there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return max(0, limit - pages * resource.getpagesize())
