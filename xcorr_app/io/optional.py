"""Libraries that only some files need: imported when such a file comes, and named with their `pip` line when absent."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xcorr_app.errors import InputError, install_line

if TYPE_CHECKING:
    from pathlib import Path


def library(name: str, extra: str, path: Path) -> Any:
    """Import a library by name; raises InputError that says how `path` can be read where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{path}: needs the library {name.partition('.')[0]} ({error}); {install_line(extra)}"
        ) from error
