"""Counts what a process does to the files of a folder; kills it just before the n-th step, or lets that step fail."""

import io
import os
import signal
import sys
import threading
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"}


class Steps:
    """From now on: opening for writing, writes, fsync, rename, removal and new folder below `folder`.

    With `failing`, the number of a system's error, the step raises it, and with `lasting` all later ones; then opening
    for reading and mapping files into memory are steps, too.
    """

    def __init__(self, folder: str, last: int | None, failing: int | None = None, *, lasting: bool = False) -> None:
        self.count, self._folder, self._last, self._failing = 0, os.path.realpath(folder), last, failing
        self._lasting = lasting
        self._lock = threading.Lock()
        self._real_open, self._real_sync, self._real_write = io.open, os.fsync, os.pwritev
        sys.addaudithook(self._seen)
        io.open, os.fsync, os.pwritev = self._open, self._sync, self._write  # type: ignore[assignment]

    def step(self) -> None:
        """SIGKILL, or the error, where this is the last one."""
        with self._lock:
            self.count += 1
            if self._last is None or self.count < self._last or (self.count > self._last and not self._lasting):
                return
            if self._failing is None:
                os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(self._failing, os.strerror(self._failing))

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            changing = self._failing or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            changes = changing and self._is_below(path)
        elif event == "mmap.__new__":
            changes = self._failing
        else:
            changes = event in _CHANGES and self._is_below(arguments[0])
        if changes:
            self.step()

    def _is_below(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and os.path.realpath(path).startswith(self._folder)

    def _sync(self, descriptor: int) -> None:
        self.step()
        self._real_sync(descriptor)

    def _write(self, descriptor: int, parts: Any, offset: int) -> int:
        self.step()
        return self._real_write(descriptor, parts, offset)

    def _open(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode not in {"w", "wb"} or not self._is_below(file):
            return self._real_open(file, mode, *arguments, **options)
        stream = _Watched(io.FileIO(file, "w"))
        stream.steps = self
        return stream if mode == "wb" else io.TextIOWrapper(stream, *arguments[1:], **options)


class _Watched(io.BufferedWriter):
    steps: Steps

    writes = 0

    def write(self, content: Any) -> int:
        self.writes += 1
        if self.writes & (self.writes - 1) == 0:  # first, second, fourth, eighth: the others leave the same behind
            self.steps.step()
        return super().write(content)
