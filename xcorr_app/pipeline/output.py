"""The output folder: what may be written where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from xcorr_app.errors import OutputError
from xcorr_app.io import Discovery, remove_partials
from xcorr_app.io.finding.inputs import real_folders
from xcorr_app.pipeline.lock import check_free, lock_folder
from xcorr_app.pipeline.state import FOLDER, LOCK, REPORT, State

RECORD = "run.json"


@contextmanager
def prepared_output(out: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold a folder that `check_output` accepted, made ready; with `overwrite`, results of earlier runs go.

    Raises OutputError where another run holds it or has filled it meanwhile; then nothing in it is touched.
    """
    with ExitStack() as held:
        try:
            out.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_folder(out))
            if not (resume or overwrite or _is_as_if_empty(out)):
                raise _not_empty(out)
            remove_partials(out)
            if overwrite:
                State(out).forget()
                for name in (REPORT, RECORD):
                    (out / name).unlink(missing_ok=True)
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{out}: cannot be written ({error.strerror}); choose another folder with -o") from error
        yield


def check_output(
    out: Path, discovery: Discovery, inputs: list[Path], program: str, *, resume: bool, overwrite: bool
) -> None:
    """Refuse an output folder that must not be used by a command; nothing is written."""
    try:
        real = out.resolve()
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: is a file; -o names a folder")
        check_free(out)
        filled = out.is_dir() and not _is_as_if_empty(out)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be used as a folder ({error}); choose another with -o") from error
    folders = {path.resolve() for path in inputs if path.is_dir()}
    for series in discovery.series:
        folders |= real_folders(series.paths) if len(series.paths) > 1 else set()
    for folder in folders:
        if real == folder or folder in real.parents:
            raise OutputError(f"{out}: lies in the input folder {folder}; results must go elsewhere: choose another -o")
    named: dict[Path, Path] = {}
    for series in discovery.series:
        parents = {path.parent for path in series.paths}
        named |= {parent: parent.resolve() for parent in parents - named.keys()}
        target = real / series.name
        target = target.resolve() if target.is_symlink() else target
        if target in {named[parent] for parent in parents}:
            raise OutputError(f"{target}: holds the input itself; results must go elsewhere: choose another -o")
    for parent in set(named.values()):
        if real in parent.parents and State(real).knows(parent.relative_to(real).parts[0]):
            raise OutputError(
                f"{parent}: holds results of an earlier run, which would be worked on again into the same {out}; "
                "name the input so that it leaves them out, or choose another -o"
            )
    if filled and not (resume or overwrite):
        raise _not_empty(out)
    if resume:
        _check_program(out, program)


def _not_empty(out: Path) -> OutputError:
    return OutputError(f"{out}: is not empty; use --resume to continue that run, or --overwrite to replace its results")


def _is_as_if_empty(out: Path) -> bool:
    """Whether there is nothing but what a run is held by, or what it says of itself that wrote no result."""
    ours = (out / FOLDER, out / FOLDER / LOCK)
    return all(path in ours for path in out.rglob("*")) or _is_record_of_failure(out)


def _is_record_of_failure(out: Path) -> bool:
    """Whether a folder holds nothing but what a run says of itself that wrote no result: it may be used as if empty."""
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
        ours = str(record["program"]).startswith("xcorr ") and record["failed"] is True
        stacks = [bool(stack.get("failure")) for stack in record["stacks"].values()]
        lock = out / FOLDER / LOCK
        names = {path.name for path in out.iterdir() if not (path.is_dir() and set(path.iterdir()) <= {lock})}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return ours and all(stacks) and names <= {RECORD, REPORT}


def _check_program(out: Path, program: str) -> None:
    """Refuse to go on in a folder that another command filled: the two would mix."""
    found = State(out).programs()
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        # Written last: a run that was killed has left records of stacks alone.
        found.add(str(json.loads((out / RECORD).read_text())["program"]))
    for before in sorted(found - {program, ""}):
        raise OutputError(f"{out}: holds results of `{before}`, which --resume cannot go on with; choose another -o")
