"""Files of microscopes, arrays and videos, read through libraries of the extra ``formats``: one small module each.

A module of a format has ``images(path)``, names of the images within a file where there are several, and
``scan(path, inner, limits, colour)``, which checks one of them. It is imported when a file with its first bytes comes.
A few readers of libraries stay open: what takes long is to parse a file, not to read a plane of it.
"""

import atexit
import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from xcorr_app.errors import InputError
from xcorr_app.io.names import inner_path
from xcorr_app.io.opened import library, opened, parsing
from xcorr_app.system import read_at

_MAX_OPEN = 8


class Readers:
    """Open readers of one library of the extra ``formats``, used by one thread at a time; it and a file `make` one."""

    def __init__(self, name: str, make: Callable[[Any, BinaryIO], Any]) -> None:
        self._name, self._make = name, make
        self._open: OrderedDict[tuple[Path, tuple[int, ...]], tuple[Any, ExitStack]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, path: Path, stamp: tuple[int, ...]) -> Iterator[Any]:
        """Reader of a file of this stamp; nobody else uses one of these readers meanwhile."""
        with self._lock:
            key = (path, stamp)
            found = self._open.pop(key, None) or self._opened(path)
            self._open[key] = found
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)[1][1].close()
            yield found[0]

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            while self._open:
                self._open.popitem()[1][1].close()

    def _opened(self, path: Path) -> tuple[Any, ExitStack]:
        if not self._open:
            atexit.register(self.close)
        with ExitStack() as stack:
            # Libraries that fail leave their files open.
            file = stack.enter_context(path.open("rb"))
            reader = self._make(library(self._name, "formats", path), file)
            if hasattr(reader, "close"):
                stack.callback(reader.close)
            return reader, stack.pop_all()


HEAD_BYTES = 352
"""First bytes of a file, by which its kind is told."""


class Format(NamedTuple):
    """A kind of file: how it begins, and the module that reads it."""

    name: str
    begins: Callable[[bytes], bool]
    module: str
    holds_several: bool = True

    @property
    def reader(self) -> Any:
        """Imported when it is first needed."""
        return importlib.import_module(f"{__name__}.{self.module}")


_PICTURES = (b"heic", b"heix", b"mif1", b"avif")
"""Single images in the container of MP4."""

FORMATS = (
    Format("ND2 (Nikon)", lambda head: head.startswith(b"\xda\xce\xbe\x0a"), "nd2_file"),
    Format("CZI (Zeiss)", lambda head: head.startswith(b"ZISRAWFILE"), "czi"),
    Format("LIF (Leica)", lambda head: head.startswith(b"p\0\0\0") and head[8:9] == b"*", "lif"),
    Format("MRC", lambda head: head[208:212] == b"MAP ", "mrc", holds_several=False),
    Format("HDF5", lambda head: head.startswith(b"\x89HDF\r\n\x1a\n"), "hdf5"),
    Format("AVI", lambda head: head.startswith(b"RIFF") and head[8:12] == b"AVI ", "video", holds_several=False),
    Format("MP4", lambda head: head[4:8] == b"ftyp" and head[8:12] not in _PICTURES, "video", holds_several=False),
)


def format_of(head: bytes) -> Format | None:
    """The format of a file that begins with `head`; None where it is none of these."""
    return next((kind for kind in FORMATS if kind.begins(head)), None)


def images_of(path: Path) -> list[Path]:
    """Paths of the images within a file, or the path itself where it holds one."""
    with opened(path) as descriptor:
        kind = format_of(read_at(descriptor, HEAD_BYTES, 0))
    if kind is None:
        return [path]
    with parsing(path):
        names = kind.reader.images(path) if kind.holds_several else []
    return [path] if len(names) < 2 else [inner_path(path, name) for name in names]


def number_of(path: Path, inner: str, count: int, what: str) -> int:
    """Read the number of an image within a file, counted from 0; the only one where none is named."""
    if count < 1:
        raise InputError(f"{path}: holds no {what}")
    if not inner and count == 1:
        return 0
    if not (inner.isascii() and inner.isdecimal() and len(inner) < 9 and int(inner) < count):
        raise InputError(f"{path}: holds {count} {what}s; name one as {inner_path(path, '0')} to :/{count - 1}")
    return int(inner)
