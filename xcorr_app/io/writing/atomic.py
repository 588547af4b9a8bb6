"""Files that appear whole or not at all: temporary name, fsync, rename, fsync of the folder."""

import os
import secrets
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from xcorr_app import system
from xcorr_app.errors import FileError, OutputError
from xcorr_app.io.source import Meter, timed

_SYNCED_TOGETHER = 8
_MARK = ".xcorr-partial-"


@contextmanager
def atomic_path(final: Path | str, meter: Meter | None = None) -> Iterator[Path]:
    """Yield a temporary path beside `final`; a clean exit moves it there, an error removes it.

    The move is atomic (POSIX ``rename``), so whoever looks at `final` sees the old file or the whole new one,
    whenever the process is killed. The temporary file is there, empty; the caller fills it and closes it before the
    block ends. It is locked until then, which tells it from what a killed process left: see `remove_abandoned`.
    Raises OutputError when the operating system refuses to write (folder missing, disk full, read-only, ...).
    """
    final = Path(final)
    partial = final.with_name(_prefix(final) + secrets.token_hex(6))
    descriptor, is_moved = None, False
    with _refusals_of(final):
        try:
            descriptor = os.open(partial, system.WRITING | os.O_CREAT | os.O_EXCL, 0o666)
            # Some network file systems know no locks: what is left there stays.
            with suppress(OSError):
                system.lock(descriptor)
            yield partial
            with timed(meter, "sync"):
                system.sync(descriptor)
                if not system.MOVES_OPEN_FILES:
                    os.close(descriptor)
                    descriptor = None
                partial.replace(final)
                is_moved = True
                system.sync(final.parent)
        finally:
            if descriptor is not None:
                os.close(descriptor)
            if not is_moved:
                # A failure to tidy up must not hide the first error.
                with suppress(OSError):
                    partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(final: Path | str, meter: Meter | None = None) -> Iterator[Path]:
    """Yield a temporary folder beside `final`; a clean exit moves it there, an error removes it.

    What bore the name before is moved away and removed once the new folder has it: between the two moves, a reader
    finds nothing. OutputError is as in `atomic_path`.
    """
    final = Path(final)
    partial = final.with_name(_prefix(final) + secrets.token_hex(6))
    old = final.with_name(_prefix(final) + secrets.token_hex(6))
    with _refusals_of(final):
        try:
            partial.mkdir()
            yield partial
            with timed(meter, "sync"):
                found = [(Path(root), names) for root, _, names in os.walk(partial)]
                # Together they wait for the disk once: it takes what it is asked for meanwhile in one go.
                with ThreadPoolExecutor(_SYNCED_TOGETHER, thread_name_prefix="xcorr-sync") as pool:
                    list(pool.map(system.sync, [root / name for root, names in found for name in names]))
                    list(pool.map(system.sync, [root for root, _ in found]))
                with suppress(FileNotFoundError):
                    final.rename(old)
                partial.rename(final)
                system.sync(final.parent)
        finally:
            for left in (partial, old):
                remove_output(left, ignore_errors=True)


@contextmanager
def refusals_as(what: str, advice: str, kinds: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    """Say in words that the operating system refuses something, by exceptions of these kinds, and what to do."""
    try:
        yield
    except FileError:
        raise
    except kinds as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{what} ({reason}); {advice}") from error


def _refusals_of(final: Path) -> AbstractContextManager[None]:
    return refusals_as(f"{final}: cannot be written", "check that the folder exists, is writable and has space left")


def remove_output(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a file, or a folder with all that is in it; nothing happens where there is neither."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        if not ignore_errors:
            raise


def atomic_write_bytes(final: Path | str, content: bytes) -> None:
    """Write `content` to `final` as `atomic_path` does."""
    with atomic_path(final) as partial:
        partial.write_bytes(content)


def atomic_write_text(final: Path | str, text: str) -> None:
    """Write `text` as UTF-8, line ends untouched, to `final` through `atomic_path`."""
    atomic_write_bytes(final, text.encode())


def make_folder(folder: Path | str) -> None:
    """Make a folder in one that exists; nothing happens if it is there. A link in its place is refused."""
    with refusals_as(f"{folder}: cannot be made", "choose another folder for the results"):
        if Path(folder).is_symlink():
            raise OutputError(f"{folder}: is a link, and results would be written where it leads; remove it")
        Path(folder).mkdir(exist_ok=True)


def remove_partials(folder: Path | str) -> list[Path]:
    """Remove temporary files that a killed run left in `folder` and below; returns what was removed.

    Files of a process that still writes are kept: they are locked. Where a file system knows no locks nobody can tell,
    and whoever calls this holds the folder by other means. Symbolic links are not followed. A file that cannot be
    removed raises `OutputError`.
    """
    removed = []
    for root, folders, names in os.walk(folder):
        left = [name for name in (*names, *folders) if name.startswith(".") and _MARK in name]
        folders[:] = [name for name in folders if name not in left]
        for name in left:
            path = Path(root, name)
            with refusals_as(f"{path}: left by a killed run, cannot be removed", "remove it by hand"):
                if path.is_dir() or not _is_locked(path, unknown=False):
                    remove_output(path)
                    removed.append(path)
    return sorted(removed)


def _is_locked(path: Path, *, unknown: bool) -> bool:
    """Whether a process holds a file; `unknown` where that cannot be told."""
    try:
        descriptor = os.open(path, system.WRITING | system.READING | system.NO_LINK)
        try:
            return not system.lock(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return unknown


def remove_abandoned(final: Path | str) -> None:
    """Remove temporary files of `final` whose writer is gone; those of a process that still writes are kept.

    The system frees the lock of a process that ends, however it ends, on whatever machine of a shared folder. A file
    that cannot be removed is left: it is in nobody's way.
    """
    final = Path(final)
    with suppress(OSError):
        for path in list(final.parent.iterdir()):
            if path.name.startswith(_prefix(final)) and not _is_locked(path, unknown=True):
                path.unlink(missing_ok=True)


def _prefix(final: Path) -> str:
    """What the names of a file's temporary files begin with.

    Long names are cut so that mark and random part still fit into 255 bytes. Of other alphabets, and of bytes that
    are no text, nothing is kept: a name that was cut within a character might not be allowed.
    """
    label = final.name.encode("ascii", errors="ignore")[:120].decode("ascii")
    return f".{label}{_MARK}"
