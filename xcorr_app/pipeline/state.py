"""What a run has finished, so that ``--resume`` can go on: one small record a stack, written last.

A record holds a fingerprint of everything that decides the stack's results (parameters, versions, checksums of the
input), the outputs with their checksums, and what a command needs to show the stack again. A stack is finished when its
record matches and its outputs are what they were. Records are input like any other: they may be damaged, or say what is
not so, and none of what they name outside the output folder is ever touched.
"""

import json
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from xcorr_app.errors import InputError, OutputError
from xcorr_app.io import atomic_write_text, make_folder
from xcorr_app.io.checksum import FileChecksum
from xcorr_app.io.names import ZARR
from xcorr_app.io.opened import opened
from xcorr_app.io.outputs import output_files
from xcorr_app.io.writing.atomic import refusals_as, remove_output

FOLDER = ".xcorr"
RECORD = "run.json"
"""What a run says of itself, written last."""
REPORT = "report.html"
"""Page of a run in its output folder, and of a stack in the folder of its own."""
ASKED = "run"
"""Name, in that folder, of what a run was asked to do."""
LOCK = "lock"
"""Name, in that folder, of the file by which a run holds the output folder."""
RESULTS = ("shifts.csv", "motion.csv", "motion.npz", "patches.csv", REPORT)
_OUTPUTS, _CHECKSUM = "outputs", "checksum"
_LONGEST = 1 << 28
"""Bytes of a record that are read."""


RECORD_VERSION = 4
"""Of what records say a run was asked: options of another one had other names."""


class RunRequest(NamedTuple):
    """What a run was asked to do; names are those of its record."""

    program: str
    parameters: dict[str, Any]
    inputs: list[str]
    record_version: int = RECORD_VERSION


class StackInputs(NamedTuple):
    """What a stack was made of, as its record has it."""

    source: str
    """See `SeriesSpec`."""
    inputs: dict[str, str]
    """Checksums of its files, by path."""


class State:
    """Records of finished stacks in a hidden folder of the output folder."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._folder = out / FOLDER

    def forget(self) -> None:
        """Remove all records, and the results that they speak of."""
        for path in self._folder.glob("*.json"):
            record = read_record(path)
            if not _is_whole(record):
                continue
            outputs = [output for output in _outputs(record, self._out) if _is_result(output, self._out, path.stem)]
            for output in outputs:
                output.unlink(missing_ok=True)
            for folder in sorted({parent for each in outputs for parent in each.parents}, reverse=True):
                if self._out in folder.parents:
                    with suppress(OSError):  # what somebody else put there stays
                        folder.rmdir()
        with suppress(OSError):
            for path in [] if self._folder.is_symlink() else list(self._folder.iterdir()):
                if path.name == LOCK:
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def begin(self, asked: RunRequest) -> None:
        """Record what a run is asked to do, before it has done anything."""
        make_folder(self._folder)
        if read_record(self._folder / ASKED) != asked._asdict():
            atomic_write_text(self._folder / ASKED, json.dumps(asked._asdict()))

    def asked(self) -> RunRequest | None:
        """What the run was asked that filled the folder; None where nothing says so."""
        for path in (self._folder / ASKED, self._out / RECORD):
            known = read_record(path)
            program, parameters, inputs, version = (known.get(name) for name in RunRequest._fields)
            if isinstance(program, str) and isinstance(parameters, dict) and isinstance(inputs, list):
                return RunRequest(program, parameters, [path for path in inputs if isinstance(path, str)], version or 1)
        return None

    def inputs(self) -> dict[str, StackInputs]:
        """What every stack was made of, by its name: of a run that has ended and of one that has not."""
        whole = read_record(self._out / RECORD).get("stacks")
        stacks = dict(whole) if isinstance(whole, dict) else {}
        stacks |= {path.stem: read_record(path) for path in self._folder.glob("*.json")}
        found = {}
        for name, stack in stacks.items():
            source, inputs = (stack.get("source"), stack.get("inputs")) if isinstance(stack, dict) else (None, None)
            if isinstance(source, str) and isinstance(inputs, dict):
                found[name] = StackInputs(source, {path: str(checksum) for path, checksum in inputs.items()})
        return found

    def knows(self, name: str) -> bool:
        """Whether a stack of that name was finished here."""
        return self.attachment(name, ".json").is_file()

    def discard(self, name: str, outputs: list[Path]) -> None:
        """Remove a stack's record, then its outputs, so that nothing of an earlier run passes for this one's."""
        for path in filter(os.path.lexists, (self.attachment(name, ".json"), *outputs)):
            with refusals_as(f"{path}: cannot be replaced", "remove it by hand"):
                is_folder = path.is_dir() and not path.is_symlink() and path.suffix != ZARR
                if is_folder and path.parent != self._folder:
                    raise OutputError(f"{path}: is a folder, where a file is to be written; remove it by hand")
                remove_output(path)

    def save(
        self,
        name: str,
        fingerprint: str,
        outputs: list[Path],
        facts: dict[str, Any],
        kept: dict[str, Any],
        known: Mapping[Path, str] | None = None,
    ) -> None:
        """Record that a stack is finished; its outputs are in place by now, and `kept` is stored beside the facts.

        Checksums of outputs that are `known` already are not taken again.
        """
        known = known or {}
        outputs = [file for path in outputs for file in output_files(path)]
        make_folder(self._folder)
        record = {
            "fingerprint": fingerprint,
            _OUTPUTS: {
                str(path.relative_to(self._out)): known.get(path) or FileChecksum(path).hexdigest() for path in outputs
            },
            "facts": facts,
            **kept,
        }
        # Without indentation, which Python's encoder in C does not know.
        text = json.dumps(record)
        atomic_write_text(self.attachment(name, ".json"), f'{text[:-1]}, "{_CHECKSUM}": "{_of_text(text)}"}}')

    def record_of(self, name: str) -> dict[str, Any] | None:
        """Return the record that a worker has just written; None where it cannot be seen from here."""
        return read_record(self.attachment(name, ".json")) or None

    def load(self, name: str, fingerprint: str) -> dict[str, Any] | None:
        """Return a stack's record if it is finished with this fingerprint and its outputs are what they were.

        An unusable record only means that the stack is recomputed.
        """
        record = read_record(self.attachment(name, ".json"))
        if record.get("fingerprint") != fingerprint or not isinstance(record.get("facts"), dict):
            return None
        if not _is_whole(record):
            return None
        outputs = _outputs(record, self._out)
        if not outputs or len(outputs) != len(record[_OUTPUTS]):
            return None
        try:
            found = [FileChecksum(path).hexdigest() for path in outputs]
        except InputError:
            return None
        return record if found == list(record[_OUTPUTS].values()) else None

    def attachment(self, name: str, suffix: str) -> Path:
        """File of a stack: its record, ``.json``, or beside that what is no plain value."""
        return self._folder / f"{name}{suffix}"


def asked_of(program: str, parameters: dict[str, Any], inputs: Sequence[Path]) -> RunRequest:
    """What a run is asked, as a record of it reads."""
    plain: dict[str, Any] = json.loads(json.dumps(parameters))
    return RunRequest(program, plain, [os.path.realpath(path) for path in inputs])


def read_record(path: Path) -> dict[str, Any]:
    """What a record says; nothing where it cannot be read, or is no file."""
    try:
        with opened(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
            record = json.loads(file.read(_LONGEST))
    except (InputError, ValueError, RecursionError, MemoryError):
        return {}
    return record if isinstance(record, dict) else {}


def _outputs(record: dict[str, Any], out: Path) -> list[Path]:
    """Files within the output folder that a record names."""
    names, real = record.get(_OUTPUTS), out.resolve()
    if not isinstance(names, dict):
        return []
    found = []
    for name in names:
        path = out / name
        try:
            folder = path.parent.resolve()
            is_folder = stat.S_ISDIR(path.lstat().st_mode)
        except FileNotFoundError:
            is_folder = False
        except (OSError, RuntimeError, ValueError):
            continue
        if (folder == real or real in folder.parents) and not is_folder:
            found.append(path)
    return found


def _is_whole(record: dict[str, Any]) -> bool:
    """Whether a record is what was written."""
    rest = {name: value for name, value in record.items() if name != _CHECKSUM}
    return bool(record.get(_CHECKSUM) == _of_text(json.dumps(rest)))


def _is_result(output: Path, out: Path, name: str) -> bool:
    """Whether a file of an output folder is called as results of a stack are."""
    folder, whole = out / name, (f"{name}_aligned.", f"{name}_filtered.", f"{name}_unmixed.", "field", *RESULTS)
    return folder in output.parents and output.relative_to(folder).parts[0].startswith(whole)


def _of_text(text: str) -> str:
    """Checksum of a record as it reads: a tuple has become a list, a number that is a key text."""
    return xxhash.xxh3_128_hexdigest(json.dumps(json.loads(text), sort_keys=True).encode())
