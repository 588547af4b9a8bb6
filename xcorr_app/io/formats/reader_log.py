"""What the library of CZI only logs, taken as an error of the file being read.

It reports much of what is wrong with a file through its logger and goes on. `logged_as_damage` collects
the records of the calling thread, keeps them from being printed and raises them at the end of the block.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xcorr_app.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _ThreadCollector(logging.Filter):
    """Takes records out of the logger while the thread that made them is collecting."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        messages: list[str] | None = getattr(self.local, "messages", None)
        if messages is None:
            return True
        if record.levelno >= logging.WARNING:
            messages.append(record.getMessage())
        return False


# One filter for the process, never removed: taking a filter off while another thread logs could lose a record.
_COLLECTOR = _ThreadCollector()
for _library in ("tifffile", "czifile"):
    logging.getLogger(_library).addFilter(_COLLECTOR)


@contextmanager
def logged_as_damage(path: Path) -> Iterator[None]:
    """Raise `DamagedFileError` at the end of the block if one of them warned of anything within it.

    Applies to the calling thread alone; blocks are not nested.
    """
    messages: list[str] = []
    _COLLECTOR.local.messages = messages
    try:
        yield
    finally:
        del _COLLECTOR.local.messages
    if messages:
        raise DamagedFileError(f"{path}: {messages[0]}" + (f" (and {len(messages) - 1} more)" if messages[1:] else ""))
