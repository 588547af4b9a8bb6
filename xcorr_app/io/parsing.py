"""The one door for what comes from outside: whatever a parser raises there is an error of the file, which is named."""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from xcorr_app.errors import DamagedFileError, FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
