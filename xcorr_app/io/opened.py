"""The door for what comes from outside: files opened, parsed, and read by libraries, with errors that name the file."""

import errno
import importlib
import os
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from xcorr_app import system
from xcorr_app.errors import DamagedFileError, FileError, InputError, LimitError, install_line

Stamp: TypeAlias = tuple[int, int, int]
_OF_SYSTEM = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT}


@contextmanager
def opened(path: Path, known: Stamp | None = None) -> Iterator[int]:
    """Yield a file descriptor for reading; errors of the operating system name the file.

    Raises DamagedFileError where the file is no more as it was `known`.
    """
    try:
        descriptor = os.open(path, system.READING)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{path}: is a folder, pipe or device, not a file")
            if known is not None and _stamp_of(status) != known:
                raise DamagedFileError(f"{path}: was changed by another program while it was being read")
            yield descriptor
        finally:
            os.close(descriptor)
    except FileError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_whole(path: Path, descriptor: int, part: memoryview, offset: int, what: str) -> None:
    """Fill a buffer from a place in an open file; raises DamagedFileError where `what` is cut short."""
    done = 0
    while done < part.nbytes:
        count = system.read_into(descriptor, [part[done:]], offset + done)
        if count == 0:
            raise DamagedFileError(f"{path}: ends {part.nbytes - done} bytes before the end of a {what}")
        done += count


def text_of(path: Path, most: int) -> str:
    """Read a text in UTF-8, of at most so many bytes."""
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > most:
            raise LimitError(f"{path}: has {size} bytes, more than a table of numbers needs; was another file meant?")
        content = system.read_at(descriptor, size, 0)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path}: is no text in UTF-8 ({error.reason})") from error


def is_of_system(error: InputError) -> bool:
    """Whether the system is at fault, not the file: another try may read it."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _OF_SYSTEM


def stamp(descriptor: int) -> Stamp:
    """Size of an open file, when its bytes were last changed, and when the system last changed anything of it.

    The first two can be set to what they were; the last cannot, and is another one for another file of the same name.
    """
    return _stamp_of(os.fstat(descriptor))


def _stamp_of(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


_DIGITS = 18
_SHOWN = 200
_FILTERS = threading.RLock()


@contextmanager
def parsing(path: Path, what: str = "cannot be parsed") -> Iterator[None]:
    """Turn every exception within the block into `DamagedFileError`, but for those that name the file already."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # a malformed file makes parsers raise anything, MemoryError and RecursionError included
        raise DamagedFileError(f"{path}: {what} ({_described(error)})") from error


@contextmanager
def warnings_as(action: Literal["error", "ignore"], message: str = "") -> Iterator[None]:
    """Let what libraries warn of within the block be errors, or nothing; `message` is a regular expression.

    Filters are those of the whole process, and files are scanned by several threads: these take turns.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings(action, message)
        yield


def bounded_int(text: str) -> int:
    """Read a whole number of at most 18 plain digits; raises ValueError for all else.

    ``int`` alone takes digits of any alphabet, underscores and spaces, and numbers that no message can show.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise ValueError(f"{text[:40]!r} is no whole number of at most {_DIGITS} digits")
    return int(digits)


def positive(value: Any) -> float | None:
    """Read a distance or time; None where it is missing, no number, or none that there can be."""
    try:
        number = float(value or 0)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _described(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def library(name: str, extra: str, path: Path) -> Any:
    """Import a library by name; raises InputError that says how `path` can be read where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{path}: needs the library {name.partition('.')[0]} ({error}); {install_line(extra)}"
        ) from error
