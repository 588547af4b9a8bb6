"""How an exception becomes one clear line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from xcorr_app.errors import XcorrError

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
