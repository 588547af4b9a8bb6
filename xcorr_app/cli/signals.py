"""What ends a run from outside: SIGTERM and SIGHUP as Ctrl-C, one line and the exit code that shells expect."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from xcorr_app.system import ENDING_SIGNALS


class _Ended(KeyboardInterrupt):
    """A signal arrived; all that heeds Ctrl-C heeds it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, _: FrameType | None) -> None:
    raise _Ended(number)


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Let the signals end what runs within as Ctrl-C does; what was told to ignore one, as by nohup, still does."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING_SIGNALS:
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended_by(interrupt: KeyboardInterrupt) -> int:
    """Say what ended the run; returns the exit code, 128 and the number of the signal."""
    number = interrupt.number if isinstance(interrupt, _Ended) else signal.SIGINT
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    # After SIGHUP the terminal may be gone.
    with suppress(OSError):
        print(f"xcorr: {how}; nothing half-written was left", file=sys.stderr, flush=True)
    return 128 + number
