"""What a run has finished, so that ``--resume`` can go on: one small record a stack, written last.

A record holds a fingerprint of everything that decides the stack's results (parameters, versions, checksums of the
input), the outputs with their sizes, and what a command needs to show the stack again. A stack is finished when its
record matches.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from xcorr_app.errors import OutputError
from xcorr_app.io import Checksums, atomic_write_text, make_folder

FOLDER = ".xcorr"


class State:
    """Records of finished stacks in a hidden folder of the output folder."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._folder = out / FOLDER

    def forget(self) -> None:
        """Remove all records, and the results that they speak of."""
        for record in self._folder.glob("*.json"):
            try:
                outputs = json.loads(record.read_text())["outputs"]
            except (OSError, ValueError, KeyError):
                continue
            for path in outputs:
                (self._out / path).unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def knows(self, name: str) -> bool:
        """Whether a stack of that name was finished here."""
        return self._record(name).is_file()

    def discard(self, name: str, outputs: list[Path]) -> None:
        """Remove a stack's record, then its outputs, so that nothing of an earlier run passes for this one's."""
        for path in (self._record(name), *outputs):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise OutputError(f"{path}: cannot be replaced ({error.strerror}); remove it by hand") from error

    def save(
        self, name: str, fingerprint: str, outputs: list[Path], facts: dict[str, Any], kept: dict[str, Any]
    ) -> None:
        """Record that a stack is finished; its outputs are in place by now, and `kept` is stored beside the facts."""
        make_folder(self._folder)
        record = {
            "fingerprint": fingerprint,
            "outputs": {str(path.relative_to(self._out)): path.stat().st_size for path in outputs},
            "facts": facts,
            **kept,
        }
        atomic_write_text(self._record(name), json.dumps(record, indent=1))

    def record_of(self, name: str) -> dict[str, Any] | None:
        """Return the record that a worker has just written; None where it cannot be seen from here."""
        try:
            record: dict[str, Any] = json.loads(self._record(name).read_text())
        except (OSError, ValueError):
            return None
        return record

    def load(self, name: str, fingerprint: str) -> dict[str, Any] | None:
        """Return a stack's record if it is finished with this fingerprint and its outputs are still there."""
        try:
            record: dict[str, Any] = json.loads(self._record(name).read_text())
            if record["fingerprint"] != fingerprint or not isinstance(record["facts"], dict):
                return None
            for path, size in record["outputs"].items():
                if (self._out / path).stat().st_size != size:
                    return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # An unusable record only means that the stack is recomputed.
            return None
        return record

    def _record(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def attachment(self, name: str, suffix: str) -> Path:
        """File beside a stack's record for what is no plain value; its folder is made."""
        make_folder(self._folder)
        return self._folder / f"{name}{suffix}"


def checksums(paths: tuple[Path, ...]) -> dict[str, str]:
    """XXH3-128 of every file, by path as given; a file that cannot be read has the reason instead."""
    return Checksums(paths).finished()


def fingerprint(parameters: dict[str, Any], inputs: dict[str, str], versions: dict[str, str]) -> str:
    """One checksum of everything that decides the results of a stack."""
    whole = json.dumps([parameters, inputs, versions], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()
