"""Readers of libraries, a few of which stay open: what takes long is to parse a file, not to read a plane of it."""

from __future__ import annotations

import atexit
import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xcorr_app.io.opened import library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

_MAX_OPEN = 8


class Readers:
    """Open readers of one library of the extra ``formats``, used by one thread at a time; it and a file `make` one."""

    def __init__(self, name: str, make: Callable[[Any, BinaryIO], Any]) -> None:
        self._name, self._make = name, make
        self._open: OrderedDict[tuple[Path, tuple[int, ...]], tuple[Any, BinaryIO]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, path: Path, stamp: tuple[int, ...]) -> Iterator[Any]:
        """Reader of a file of this stamp; nobody else uses one of these readers meanwhile."""
        with self._lock:
            key = (path, stamp)
            found = self._open.pop(key, None) or self._opened(path)
            self._open[key] = found
            while len(self._open) > _MAX_OPEN:
                _close(*self._open.popitem(last=False)[1])
            yield found[0]

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            while self._open:
                _close(*self._open.popitem()[1])

    def _opened(self, path: Path) -> tuple[Any, BinaryIO]:
        if not self._open:
            atexit.register(self.close)
        made, file = library(self._name, "formats", path), path.open("rb")
        try:
            return self._make(made, file), file
        except BaseException:
            # Libraries that fail leave their files open.
            file.close()
            raise


def _close(reader: Any, file: BinaryIO) -> None:
    if hasattr(reader, "close"):
        reader.close()
    file.close()
