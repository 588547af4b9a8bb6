"""Why a stack failed, in words for its table and record."""

from __future__ import annotations

from xcorr_app.errors import XcorrError


def reason_of(error: Exception, less_memory: str) -> str:
    """Say why a stack failed.

    Parameters
    ----------
    error : Exception
        What stopped it.
    less_memory : str
        What a user can do where memory ran out.
    """
    if isinstance(error, XcorrError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"needs more memory than there is; {less_memory}"
    return f"the program failed with {type(error).__name__}: {error}; this is a defect, --debug shows where it is"
