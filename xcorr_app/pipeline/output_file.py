"""The output file of a command that writes one: what may be written where."""

from __future__ import annotations

from pathlib import Path

from xcorr_app.errors import OutputError


def check_output_file(out: Path, inputs: tuple[Path, ...], *, overwrite: bool) -> None:
    """Refuse a file that must not be written; nothing is written."""
    try:
        if any(path.exists() and out.exists() and out.samefile(path) for path in inputs):
            raise OutputError(f"{out}: is an input; write the result to another file")
        if out.is_dir():
            raise OutputError(f"{out}: is a folder; -o names a file")
        if out.exists() and not overwrite:
            raise OutputError(f"{out}: exists; use --overwrite to replace it")
        if not out.parent.is_dir():
            raise OutputError(f"{out}: the folder {out.parent} does not exist; make it, or choose another")
    except (OSError, RuntimeError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be used as a file ({error}); choose another with -o") from error
