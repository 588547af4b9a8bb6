"""What every writer of planes asks of them, how planes are compressed, and how a file ends: completed, or not there."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import imagecodecs
import numpy as np

from xcorr_app.errors import DataTypeError, OutputError, ShapeError
from xcorr_app.io.source import Meter, StackMetadata

COMPRESSIONS = ("zlib", "zstd", "lzw")
_LEVELS: dict[str, dict[str, int]] = {"zlib": {"level": 6}, "zstd": {"level": 5}, "lzw": {}}


def compressed(plane: np.ndarray, name: str, stored: np.dtype) -> bytes:
    """Bytes of a plane of which a type is stored; integers as differences along the rows (the horizontal predictor)."""
    encode: Callable[..., Any] = getattr(imagecodecs, f"{name}_encode")
    values = imagecodecs.delta_encode(plane, axis=-1) if plane.dtype.kind in "iu" else plane
    return bytes(encode(np.ascontiguousarray(values, stored).tobytes(), **_LEVELS[name]))


_THREADS = 4
BYTES_WAITING = 1 << 26
"""So many may wait to be written before `write` does, unless more are asked for."""


class PlaneWriter(ABC):
    """A writer of planes one after the other, by several threads.

    Parameters
    ----------
    path, metadata
        Where, and what.
    later
        Called with the writer when the block ends, in place of `complete`.
    meter
        Told of the seconds spent.
    """

    def __init__(
        self, path: Path, metadata: StackMetadata, later: Callable[[Any], None] | None, meter: Meter | None
    ) -> None:
        self.path, self.metadata = path, metadata
        self._later, self._meter = later, meter
        self._gathered: list[np.ndarray] = []
        self._under_way: deque[tuple[int, Future[Any]]] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._written = 0
        self._stack = ExitStack()

    def complete(self) -> None:
        """Write what is left, check it, bring it to the disk and give it its name."""
        with self._stack:
            if self._written != self.metadata.planes:
                raise OutputError(f"{self.path}: {self._written} of {self.metadata.planes} planes were written")
            self._finish()

    def _submit(self, size: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Let a thread do something with so many bytes."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="xcorr-write")
        self._under_way.append((size, self._threads.submit(work, *arguments)))

    def _wait(self, limit: int) -> None:
        """Wait until no more than `limit` bytes are under way."""
        while self._under_way and sum(size for size, _ in self._under_way) > limit:
            self._take(self._under_way.popleft()[1].result())

    def _take(self, result: Any) -> None:  # noqa: B027 - nothing where planes are written by threads
        """What a thread has returned, in the order of the planes."""

    def _stop_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._under_way.clear()
        self._gathered.clear()

    @abstractmethod
    def _finish(self) -> None:
        """Write what is left and read back what all of it says of itself."""

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._stack.__exit__(RuntimeError, RuntimeError("abandoned"), None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stack.__exit__(kind, error, trace)
        elif self._later is None or self._written != self.metadata.planes:
            self.complete()
        else:
            self._later(self)

    def _check(self, plane: np.ndarray) -> None:
        """Raise ShapeError, DataTypeError or OutputError where a plane cannot follow those written."""
        if plane.shape != self.metadata.shape[-2:]:
            raise ShapeError(f"{self.path}: planes are {self.metadata.shape[-2:]}, got {plane.shape}")
        if plane.dtype.newbyteorder("=") != self.metadata.dtype:
            raise DataTypeError(f"{self.path}: planes are {self.metadata.dtype}, got {plane.dtype}")
        if self._written == self.metadata.planes:
            raise OutputError(f"{self.path}: all {self.metadata.planes} planes are written already")
