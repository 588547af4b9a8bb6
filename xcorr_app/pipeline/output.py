"""The output folder: what may be written where, by one run at a time.

A run holds the lock on a file in it until it ends. The lock is the system's (``flock``), which frees it when the
process ends, however that ends: a file that a killed run left holds nobody up. On NFS the kernel turns it into a lock
of the server, so that it holds between machines, too. Where a file system knows no locks, nobody can tell, and the run
goes on.
"""

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xcorr_app import system
from xcorr_app.errors import OutputError
from xcorr_app.io import Discovery, make_folder, remove_partials
from xcorr_app.io.writing.atomic import refusals_as
from xcorr_app.pipeline.state import ASKED, FOLDER, LOCK, RECORD, REPORT, RunRequest, State, read_record
from xcorr_app.system import read_at

_LONGEST = 4096
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


@contextmanager
def lock_folder(out: Path) -> Iterator[None]:
    """Hold an output folder that exists. Raises OutputError where another run holds it; OSError where none can."""
    path = out / FOLDER / LOCK
    make_folder(path.parent)
    descriptor = _opened(path, out)
    try:
        holder = {"host": socket.gethostname(), "process": os.getpid()}
        whole = holder | {"since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(descriptor, 0)
        system.write_from(descriptor, [json.dumps(whole).encode()], 0)
        yield
    finally:
        # Removed while it is held: who opened it meanwhile sees that the name is gone, and makes another.
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
        if not system.MOVES_OPEN_FILES:
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            path.parent.rmdir()


def check_free(out: Path) -> None:
    """Raise OutputError where a run holds the folder; nothing is written."""
    try:
        descriptor = os.open(out / FOLDER / LOCK, system.WRITING | system.NO_LINK)
    except OSError:
        return
    try:
        _take(descriptor, out)
    finally:
        os.close(descriptor)


def _opened(path: Path, out: Path) -> int:
    """The lock file, held by this process, and still under its name."""
    while True:
        descriptor = os.open(path, system.WRITING | os.O_CREAT | system.NO_LINK, 0o666)
        try:
            _take(descriptor, out)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        path.parent.mkdir(exist_ok=True)


def _take(descriptor: int, out: Path) -> None:
    try:
        held = system.lock(descriptor)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return
    if not held:
        raise OutputError(f"{out}: {_who(descriptor)} is at work in it; wait until it ends, or choose another -o")


def _who(descriptor: int) -> str:
    """What the holder wrote; it may have just begun, or be another program."""
    try:
        holder = json.loads(read_at(descriptor, _LONGEST, 0))
        return f"process {holder['process']} on {holder['host']}, since {holder['since']},"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return "another run"


_OF_NO_RESULT = (LOCK, ASKED)
"""Files that are there before anything is computed."""
_LONGEST_SHOWN = 100
_OF_PATHS = (OSError, RuntimeError)
"""The latter of links in a circle."""


@contextmanager
def prepared_output(out: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold a folder that `check_output` accepted, made ready; with `overwrite`, results of earlier runs go.

    Raises OutputError where another run holds it or has filled it meanwhile; then nothing in it is touched.
    """
    with ExitStack() as held:
        with refusals_as(f"{out}: cannot be written", "choose another folder with -o"):
            out.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_folder(out))
            if not (resume or overwrite or _is_as_if_empty(out)):
                raise _not_empty(out)
            remove_partials(out)
            if overwrite:
                State(out).forget()
                for name in (REPORT, RECORD):
                    (out / name).unlink(missing_ok=True)
        yield


def check_output(
    out: Path, discovery: Discovery, inputs: list[Path], asked: RunRequest, *, resume: bool, overwrite: bool
) -> None:
    """Refuse an output folder that must not be used for what is asked; nothing is written."""
    with refusals_as(f"{out}: cannot be used as a folder", "choose another with -o", _OF_PATHS):
        real = out.resolve()
        if (out.exists() or out.suffix.lower() in (".tif", ".tiff")) and not out.is_dir():
            raise OutputError(f"{out}: is a file; -o names a folder")
        check_free(out)
        filled = out.is_dir() and not _is_as_if_empty(out)
    folders = {path.resolve() for path in inputs if path.is_dir()}
    for series in discovery.series:
        folders |= {path.resolve().parent for path in series.paths if len(series.paths) > 1}
    for folder in folders:
        if real == folder or folder in real.parents:
            raise OutputError(f"{out}: lies in the input folder {folder}; results must go elsewhere: choose another -o")
    named: dict[Path, Path] = {}
    for series in discovery.series:
        parents = {path.parent for path in series.paths}
        named |= {parent: parent.resolve() for parent in parents - named.keys()}
        if (target := (real / series.name).resolve()) in {named[parent] for parent in parents}:
            raise OutputError(f"{target}: holds the input itself; results must go elsewhere: choose another -o")
    for parent in set(named.values()):
        if real in parent.parents and State(real).knows(parent.relative_to(real).parts[0]):
            raise OutputError(
                f"{parent}: holds results of an earlier run, which would be worked on again into the same {out}; "
                "name the input so that it leaves them out, or choose another -o"
            )
    other = None if overwrite or not filled else _other_run(out, asked)
    if other is not None:
        raise OutputError(
            f"{out}: is not empty, it holds {other}; choose another -o, or --overwrite to replace its results"
        )
    if filled and not (resume or overwrite):
        raise _not_empty(out)


def _not_empty(out: Path) -> OutputError:
    return OutputError(f"{out}: is not empty; use --resume to continue that run, or --overwrite to replace its results")


def _is_as_if_empty(out: Path) -> bool:
    """Whether there is nothing but what a run is held by, or what it says of itself that wrote no result."""
    ours = (out / FOLDER, *(out / FOLDER / name for name in _OF_NO_RESULT))
    return all(path in ours for path in out.rglob("*")) or _is_record_of_failure(out)


def _is_record_of_failure(out: Path) -> bool:
    """Whether a folder holds nothing but what a run says of itself that wrote no result: it may be used as if empty."""
    try:
        record = read_record(out / RECORD)
        ours = str(record["program"]).startswith("xcorr ") and record["failed"] is True
        stacks = [bool(stack.get("failure")) for stack in record["stacks"].values()]
        ours_too = {out / FOLDER / name for name in _OF_NO_RESULT}
        names = {path.name for path in out.iterdir() if not (path.is_dir() and set(path.iterdir()) <= ours_too)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return ours and all(stacks) and names <= {RECORD, REPORT}


def _other_run(out: Path, asked: RunRequest) -> str | None:
    """In what the run that filled a folder differs from what is asked; None where it is the same, or nobody knows.

    Where it is computed may be another place; inputs may be more.
    """
    before = State(out).asked()
    if before is None:
        return None
    if before.program != asked.program:
        return f"results of `{before.program}`"
    if before.record_version != asked.record_version:
        return "results of another version of xcorr, whose options had other names"
    given = asked.parameters
    for name in sorted((given.keys() & before.parameters.keys()) - {"device"}):
        if given[name] != before.parameters[name]:
            return f"a run with {name.replace('_', '-')} {_shown(before.parameters[name])}, not {_shown(given[name])}"
    left_out = [path for path in before.inputs if os.path.realpath(path) not in asked.inputs]
    return f"a run over {left_out[0]}, which is left out now" if left_out else None


def _shown(value: Any) -> str:
    return "unset" if value is None else json.dumps(value)[:_LONGEST_SHOWN]


def check_output_file(out: Path, inputs: tuple[Path, ...], *, overwrite: bool) -> None:
    """Refuse a file that must not be written; nothing is written."""
    with refusals_as(f"{out}: cannot be used as a file", "choose another with -o", _OF_PATHS):
        if any(path.exists() and out.exists() and out.samefile(path) for path in inputs):
            raise OutputError(f"{out}: is an input; write the result to another file")
        if out.is_dir():
            raise OutputError(f"{out}: is a folder; -o names a file")
        if out.exists() and not overwrite:
            raise OutputError(f"{out}: exists; use --overwrite to replace it")
        if not out.parent.is_dir():
            raise OutputError(f"{out}: the folder {out.parent} does not exist; make it, or choose another")
