"""Processes that draw stacks: Python computes in one thread at a time, and a device waits for the one that feeds it."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from xcorr_app.report.drawing import Drawn, Section

_PIPE = 1 << 20
"""Bytes that a pipe holds: as many as an ordinary user may ask for."""
_LENGTH = 8
_PACKAGES = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from xcorr_app.report.artists import serve; serve()"


class Artists:
    """Draws in other processes, as many as there are threads that ask; as a context, these end with it.

    They need no ``__main__`` that can be imported again, as those of `multiprocessing` do.
    """

    def __init__(self) -> None:
        self._idle: queue.LifoQueue[_Artist] = queue.LifoQueue()
        self._all: list[_Artist] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start the first process: to begin takes as long as to draw a few stacks."""
        with suppress(OSError):  # it is tried again
            self._idle.put(self._started())

    def draw(self, section: Section) -> Drawn:
        """Let a process draw a stack; where there can be none, or it dies, it is drawn here."""
        try:
            artist = self._free()
            drawn = artist.draw(section)
        except Exception:  # noqa: BLE001 - whatever a broken pipe or record raises; a fault of drawing comes again
            return section.drawn()
        self._idle.put(artist)
        return drawn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for artist in self._all:
                artist.end()

    def _free(self) -> _Artist:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._started()

    def _started(self) -> _Artist:
        artist = _Artist()
        with self._lock:
            self._all.append(artist)
        return artist


class _Artist:
    """One process, which one thread at a time asks."""

    def __init__(self) -> None:
        command, pipe = [sys.executable, "-c", _PROGRAM, _PACKAGES], subprocess.PIPE
        # In a session of its own Ctrl-C does not reach it; it ends when nobody can ask it any more.
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True, pipesize=_PIPE
        )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101
        self._to, self._from = self._process.stdin, self._process.stdout

    def draw(self, section: Section) -> Drawn:
        """Raises what becomes of a pipe or a record where the process dies."""
        try:
            _send(section, self._to)
            drawn: Drawn = pickle.loads(_content(self._from))  # noqa: S301 - of a process of this very program
        except BaseException:
            self.end()
            raise
        return drawn.with_rows(section.stack)

    def end(self) -> None:
        """Kill it: it holds nothing that is needed."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            with suppress(OSError):  # what was not sent
                pipe.close()


def serve() -> None:
    """Draw what is asked for until nobody asks."""
    asked = sys.stdin.buffer
    # Whatever else is printed must not come between.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        while True:
            try:
                section: Section = pickle.loads(_content(asked))  # noqa: S301 - of the process that started this one
            except EOFError:
                return
            _send(section.drawn().without_rows(), answers)


def _send(record: Any, to: IO[bytes]) -> None:
    """Write a record in one go: for each call a thread has to wait for others."""
    content = pickle.dumps(record, pickle.HIGHEST_PROTOCOL)
    to.write(len(content).to_bytes(_LENGTH, "little"))
    to.write(content)
    to.flush()


def _content(stream: IO[bytes]) -> bytes:
    """Read what `_send` wrote; raises EOFError where there is no more."""
    length = stream.read(_LENGTH)
    content = stream.read(int.from_bytes(length, "little")) if len(length) == _LENGTH else b""
    if not content:
        raise EOFError
    return content
