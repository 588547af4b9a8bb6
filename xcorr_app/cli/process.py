"""What a command does as a process: one line where it fails, an end by signals, output that may be lost, memory."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

import click

from xcorr_app.errors import XcorrError
from xcorr_app.system import ENDING_SIGNALS

SOMETHING_FAILED, WRONG_USAGE = 1, 2


@contextmanager
def one_line_failures(code: int, *, debug: bool) -> Iterator[None]:
    """Turn an error of the project's own, or of the system, into a line on standard error and exit with `code`.

    What is wrong before anything runs is wrong usage; the same error later means that something failed. With `debug`
    the exception goes on. So does that of a reader who went away (as in ``| head``), which click ends quietly.
    """
    try:
        yield
    except (XcorrError, OSError) as error:
        if debug or isinstance(error, BrokenPipeError):
            raise
        print(f"xcorr: {one_line(str(error))}", file=sys.stderr)
        click.get_current_context().exit(code)


def one_line(text: str) -> str:
    """Text with line breaks and other control characters shown as escapes, so that a message stays one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _SignalReceived(KeyboardInterrupt):
    """A signal arrived; all that heeds Ctrl-C heeds it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, _: FrameType | None) -> None:
    raise _SignalReceived(number)


@contextmanager
def handling(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Let a function handle signals, of the main thread; yields what handled them before, and does again afterwards."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield before
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def signals_as_interrupts() -> AbstractContextManager[Any]:
    """Let the signals end what runs within as Ctrl-C does; what was told to ignore one, as by nohup, still does."""
    is_main = threading.current_thread() is threading.main_thread()
    return handling([each for each in ENDING_SIGNALS if is_main and signal.getsignal(each) == signal.SIG_DFL], _end)


def ended_by(interrupt: KeyboardInterrupt) -> int:
    """Say what ended the run; returns the exit code, 128 and the number of the signal."""
    number = interrupt.number if isinstance(interrupt, _SignalReceived) else signal.SIGINT
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    # After SIGHUP the terminal may be gone.
    with suppress(OSError):
        print(f"xcorr: {how}; nothing half-written was left", file=sys.stderr, flush=True)
    return 128 + number


LOST = "xcorr.output_lost"
"""Name, in click's context, of whether a part of what a command printed was lost."""


class LastingOutput:
    """A stream whose errors are told once, but for that of a reader who went away, and end nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            self._write_nowhere()  # who reads has seen enough, as `head` has
        except OSError as error:
            print(f"xcorr: standard output cannot be written ({error.strerror}); the run goes on", file=sys.stderr)
            self._write_nowhere()
            context = click.get_current_context(silent=True)
            if context is not None:
                context.meta[LOST] = True
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _write_nowhere(self) -> None:
        """Let what the stream still holds, when the program ends at the latest, and what comes go nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Tell glibc to keep up to 256 MiB of freed blocks instead of giving them back to the system.

    Work arrays of a few megabytes are taken and freed for every frame; faulting their pages in again each time takes a
    tenth of the processor time of aligning frames of 1024 x 1024. All threads share them, since what the thread that
    measures has freed is of use to the one that moves. Does nothing where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        mallopt(_M_TRIM_THRESHOLD, 1 << 28)
        mallopt(_M_ARENA_MAX, 1)
