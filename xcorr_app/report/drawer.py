"""Sections of the report drawn by processes of their own, while stacks are computed.

A process is started at once, so that what draws is imported by the time the first stack is there. It takes records and
gives back what the page shows of them; where one is lost, its sections are drawn here.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from xcorr_app.report.html import StackView
    from xcorr_app.report.records import StackReport

_SERVE = "from xcorr_app.report.drawer import serve; serve()"


class Drawer:
    """Draws sections by a number of processes."""

    def __init__(self, processes: int) -> None:
        self._jobs: queue.Queue[tuple[int, StackReport] | None] = queue.Queue()
        self._views: dict[int, StackView] = {}
        self._processes = [_start() for _ in range(processes)]
        self._threads = [
            threading.Thread(target=self._work, args=(process,), name="xcorr-draw", daemon=True)
            for process in self._processes
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, number: int, stack: StackReport) -> None:
        """Let a process draw the section of a stack; `number` is its place among the stacks, from 0."""
        self._jobs.put((number, stack))

    def views(self) -> dict[int, StackView]:
        """What was drawn, by number; ends the processes. What is missing is to be drawn here."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        return self._views

    def close(self) -> None:
        """End the processes, whatever they do."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - for the type checker
        while (job := self._jobs.get()) is not None:
            try:
                pickle.dump(job, process.stdin)
                process.stdin.flush()
                self._views[job[0]] = pickle.load(process.stdout)  # noqa: S301 - our own process
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                return


def start_drawer() -> Drawer:
    """A drawer with a process for every two processors, eight at most."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Drawer(max(1, min(8, processors // 2)))


def serve() -> None:
    """Draw what comes through standard input until it ends."""
    from xcorr_app.report import views  # noqa: F401 - imported while nobody waits
    from xcorr_app.report.html import stack_view

    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            number, stack = pickle.load(source)  # noqa: S301 - our own process
        except EOFError:
            return
        pickle.dump(stack_view(number + 1, stack), sink)
        sink.flush()


def _start() -> subprocess.Popen[bytes]:
    """A process that serves, whatever the current folder is; an interruption of the terminal is not meant for it."""
    folder = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )
