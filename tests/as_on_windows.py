"""A plug-in, ``pytest -p tests.as_on_windows``: what Windows lacks is taken away before the program is loaded.

No ``pread``, ``fcntl`` or SIGHUP; a file that is open is neither renamed, replaced nor removed; folders are not opened,
and only files that may be written are synced. `msvcrt` locks one byte, which other descriptors then find held.
"""

import contextlib
import errno
import fcntl
import os
import signal
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

ABSENT = (
    *("pread", "preadv", "pwrite", "pwritev", "posix_fadvise", "sched_getaffinity", "mkfifo"),
    *("O_NONBLOCK", "O_NOFOLLOW"),
)
_flock, _open, _fsync, _how = fcntl.flock, os.open, os.fsync, fcntl.fcntl
_EXCLUSIVE, _GET, _KIND = fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.F_GETFL, os.O_ACCMODE


def _locking(descriptor: int, _mode: int, _size: int) -> None:
    try:
        _flock(descriptor, _EXCLUSIVE)
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "Permission denied") from error


def _is_open(path: object) -> bool:
    """Whether this process has a file open, other than as a folder."""
    with contextlib.suppress(OSError, TypeError, ValueError):
        wanted = Path(os.fsdecode(path)).stat()  # type: ignore[arg-type]
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(entry.stat(), wanted) and not entry.is_dir():
                    return True
    return False


def _refusing(call):
    """A call on paths that refuses those that are open."""

    def refused(*paths, **options):
        for path in paths[:2]:
            if _is_open(path):
                raise PermissionError(errno.EACCES, "The process cannot access the file", os.fspath(path))
        return call(*paths, **options)

    return refused


def _open_files(path, flags, mode=0o777, *, dir_fd=None):
    caller = str(sys._getframe(1).f_globals["__name__"])
    if caller.startswith("xcorr") and Path(os.fsdecode(path)).is_dir():
        raise PermissionError(errno.EACCES, "Permission denied", path)
    return _open(path, flags, mode, dir_fd=dir_fd)


def _sync(descriptor):
    if isinstance(descriptor, int) and _how(descriptor, _GET) & _KIND == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    return _fsync(descriptor)


def take_away() -> None:
    """Take away what Windows lacks."""
    assert "xcorr_app" not in sys.modules
    for name in ABSENT:
        delattr(os, name)
    del signal.SIGHUP
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, _refusing(getattr(os, name)))
    os.open, os.fsync = _open_files, _sync
    sys.modules |= {"fcntl": None, "resource": None}  # type: ignore[dict-item]
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=_locking, LK_NBLCK=2)  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test that itself asks for what is not there."""
    try:
        return (yield)
    except (AttributeError, ModuleNotFoundError) as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        if any("xcorr_app" in Path(file).parts for file in files):
            raise
        pytest.skip(str(error))


take_away()
