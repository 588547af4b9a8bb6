"""What compilers made of the kernels, kept across runs and shared by workers: one file an entry, named by its cause.

A name is the hash of all that went into the compiler: sources, headers, defines, options, version. An entry ends in a
digest of its name and content, so that one that was cut, altered or put under another name counts as missing, and it
is renamed into place, so that whoever looks sees all of it or nothing.
"""

import functools
import hashlib
import os
import re
import secrets
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from xcorr_app.gpu.runtime.compile import kernel_root

KEPT_SECONDS = 30 * 86400
KEPT_BYTES = 2 << 30
_DIGEST_BYTES = 32
_INCLUDED = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SHIM = Path(__file__).parent / "shim"


@functools.cache
def cache_folder() -> Path:
    """``XCORR_TEST_CACHE``, else a folder of the user's; where that cannot be made, one of this process alone."""
    given = os.environ.get("XCORR_TEST_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    folder = Path(given or Path(user) / "xcorr-tests").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        if given:
            raise
        return Path(tempfile.mkdtemp(prefix="xcorr-tests-"))
    return folder


def key_of(*causes: str | bytes) -> str:
    """Name of the entry that these causes lead to, in this order."""
    digest = hashlib.sha256()
    for cause in causes:
        content = cause.encode() if isinstance(cause, str) else cause
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def headers_of(source: bytes) -> bytes:
    """Every header that a source may include, directly or not, each with its name."""
    found: dict[str, bytes] = {}
    _collect(source, found)
    return b"".join(f"\0{name}\0".encode() + content for name, content in sorted(found.items()))


def _collect(source: bytes, found: dict[str, bytes]) -> None:
    for name in _INCLUDED.findall(source):
        # Headers of one name in several folders all count: which one is taken depends on the options.
        for path, content in _files_named(name.decode()):
            if path not in found:
                found[path] = content
                _collect(content, found)


@functools.cache
def _files_named(name: str) -> list[tuple[str, bytes]]:
    folders = [SHIM, *sorted(folder for folder in kernel_root().iterdir() if folder.is_dir())]
    paths = [folder / name for folder in folders if (folder / name).is_file()]
    return [(f"{path.parent.name}/{name}", path.read_bytes()) for path in paths]


def forget_files() -> None:
    """Read headers again from now on."""
    _files_named.cache_clear()


def load(folder: Path, key: str) -> bytes | None:
    """Content of an entry, or None where there is none that is whole."""
    path = folder / key
    try:
        content = path.read_bytes()
        if time.time() - path.stat().st_mtime > 3600:
            os.utime(path)  # the time of the last use
    except OSError:
        return None
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return body if digest == _digest(key, body) else None


def save(folder: Path, key: str, content: bytes) -> None:
    """Put an entry in its place, or another one in place of one that is not whole."""
    partial = folder / f".{key}-{secrets.token_hex(6)}"
    try:
        partial.write_bytes(content + _digest(key, content))
        partial.replace(folder / key)
    finally:
        partial.unlink(missing_ok=True)


def prune(folder: Path) -> None:
    """Delete what was not used for a month, and what was used longest ago where there is too much."""
    entries = []
    for path in folder.iterdir():
        with suppress(OSError):  # another run may delete it at the same time
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    total, oldest = 0, time.time() - KEPT_SECONDS
    for used, size, path in sorted(entries, reverse=True):
        total += size
        if used < oldest or total > KEPT_BYTES:
            path.unlink(missing_ok=True)


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()
