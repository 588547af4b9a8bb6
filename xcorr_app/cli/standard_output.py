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
    """A stream whose errors, but for that of a reader who went away, are told once and end nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        print(f"xcorr: standard output cannot be written ({error.strerror}); the run goes on", file=sys.stderr)
        # What the stream still holds goes nowhere, when the program ends at the latest.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[_LOST] = True


def output_was_lost(context: click.Context) -> bool:
    """Whether a part of what a command printed was lost."""
    return bool(context.meta.get(_LOST))
