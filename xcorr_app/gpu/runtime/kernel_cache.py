"""Compiled kernels on disk: checked when they are read, put in place in one step, and done without where that fails.

The folder is CuPy's own (``CUPY_CACHE_DIR``, or ``.cupy/kernel_cache`` in the home folder), so that one variable moves
both. A file bears its key's digest as its name and begins with a digest of key and content: a file that is cut short,
overwritten or swapped with another kernel's is not taken for the kernel that is wanted, but recompiled and replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

_DIGEST_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Folder in which CuPy and this project keep compiled kernels."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or os.path.expanduser("~/.cupy/kernel_cache"))  # noqa: PTH111 - never raises


def load_kernel(key: str) -> bytes | None:
    """Return the compiled kernel that was saved under a key."""
    try:
        stored = _path(key).read_bytes()
    except OSError:
        return None
    content = stored[_DIGEST_BYTES:]
    return content if stored[:_DIGEST_BYTES] == _digest(key, content) else None


def save_kernel(key: str, content: bytes) -> None:
    """Save a compiled kernel; many processes may do so at once. A folder that cannot be written is passed by."""
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(_digest(key, content) + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)


def provide_cache_folder() -> None:
    """Give CuPy a temporary folder, for this process alone, where its cache folder cannot be written.

    CuPy raises when it is imported, or at its first kernel, where it cannot save. To be called before CuPy is imported:
    then it reads ``CUPY_CACHE_DIR``, which is set here, and only here.
    """
    with contextlib.suppress(OSError):
        if not _can_be_written(cache_folder()):
            folder = tempfile.mkdtemp(prefix="xcorr-kernels-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            os.environ["CUPY_CACHE_DIR"] = folder


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(4096))  # a full disk still makes empty files
    except OSError:
        return False
    return True


def _path(key: str) -> Path:
    return cache_folder() / f"xcorr-{hashlib.sha256(key.encode()).hexdigest()[:40]}.cubin"


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + content).digest()
