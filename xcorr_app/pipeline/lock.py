"""One run an output folder: a lock on a file in it, held until the run ends, that says who holds it.

The lock is the system's (``flock``), which frees it when the process ends, however that ends: a file that a killed run
left holds nobody up. On NFS the kernel turns it into a lock of the server, so that it holds between machines, too.
Where a file system knows no locks, nobody can tell, and the run goes on.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from xcorr_app import system
from xcorr_app.errors import OutputError
from xcorr_app.io import make_folder
from xcorr_app.pipeline.state import FOLDER, LOCK
from xcorr_app.system import read_at

_LONGEST = 4096
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


@contextmanager
def lock_folder(out: Path) -> Iterator[None]:
    """Hold an output folder that exists. Raises OutputError where another run holds it; OSError where none can."""
    path = out / FOLDER / LOCK
    make_folder(path.parent)
    descriptor = _opened(path, out)
    try:
        holder = {"host": socket.gethostname(), "process": os.getpid()}
        whole = holder | {"since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(descriptor, 0)
        system.write_from(descriptor, [json.dumps(whole).encode()], 0)
        yield
    finally:
        # Removed while it is held: who opened it meanwhile sees that the name is gone, and makes another.
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
        if not system.MOVES_OPEN_FILES:
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            path.parent.rmdir()


def check_free(out: Path) -> None:
    """Raise OutputError where a run holds the folder; nothing is written."""
    try:
        descriptor = os.open(out / FOLDER / LOCK, system.WRITING | system.NO_LINK)
    except OSError:
        return
    try:
        _take(descriptor, out)
    finally:
        os.close(descriptor)


def _opened(path: Path, out: Path) -> int:
    """The lock file, held by this process, and still under its name."""
    while True:
        descriptor = os.open(path, system.WRITING | os.O_CREAT | system.NO_LINK, 0o666)
        try:
            _take(descriptor, out)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        path.parent.mkdir(exist_ok=True)


def _take(descriptor: int, out: Path) -> None:
    try:
        held = system.lock(descriptor)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return
    if not held:
        raise OutputError(f"{out}: {_who(descriptor)} is at work in it; wait until it ends, or choose another -o")


def _said(descriptor: int) -> dict[str, object]:
    """What the holder wrote; nothing where it has just begun, or another wrote."""
    try:
        said = json.loads(read_at(descriptor, _LONGEST, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _who(descriptor: int) -> str:
    said = _said(descriptor)
    if not said:
        return "another run"
    return f"process {said.get('process')} on {said.get('host')}, since {said.get('since')},"
