"""Standard output on which something fails, a full disk say: the run goes on, and its exit code tells."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from typing import TextIO

_LOST = "xcorr.output_lost"


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
                context.meta[_LOST] = True
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


def output_was_lost(context: click.Context) -> bool:
    """Whether a part of what a command printed was lost."""
    return bool(context.meta.get(_LOST))
