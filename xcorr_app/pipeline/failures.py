"""What stops a stack, in words for its table and record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xcorr_app.errors import LimitError, XcorrError


def reason_of(error: Exception, less_memory: str) -> str:
    """Say why a stack failed; `less_memory` is what a user can do where memory ran out."""
    if isinstance(error, XcorrError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"needs more memory than there is; {less_memory}"
    return f"the program failed with {type(error).__name__}: {error}; this is a defect, --debug shows where it is"


@contextmanager
def memory_as_limit(message: str) -> Iterator[None]:
    """Turn memory that runs out on the host into a `LimitError` with this message."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, XcorrError):
            raise
        raise LimitError(message) from None
