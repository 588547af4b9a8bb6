"""What workers have computed of a stack, kept in the output folder until it is finished: ``--resume`` goes on from it.

Files are input like any other: they may be damaged, or say what is not so. One that is not whole is none, and of
pickles those are taken that hold nothing but arrays and the plain classes of results.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import xxhash

from xcorr_app.io.atomic import remove_output

_KEY, _PART = "key", ".part"
_CLOCKS_DIFFER = 60.0
"""Seconds by which the clock of a shared disk may be behind."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="xcorr-keep")
_CLASSES = ("xcorr_app.batch.align.", "xcorr_app.correlation.", "xcorr_app.registration.")
_OF_ARRAYS = {"_reconstruct", "_frombuffer", "scalar", "ndarray", "dtype"}
_BUILT_IN = {"slice", "set", "frozenset", "range", "complex"}


def begin(folder: Path, key: str | None, *, resume: bool) -> None:
    """Make the folder; what another run left stays to go on from if it is of the same `key`.

    That is of everything that decides the results; None where it is not known. Raises OSError.
    """
    with suppress(OSError):
        if resume and key is not None and (folder / _KEY).read_text() == key:
            return
    remove(folder)
    folder.mkdir(parents=True)
    if key is not None:
        (folder / _KEY).write_text(key)


def remove(folder: Path) -> None:
    """Remove the folder, though somebody may still write there: a part that nobody waits for any more, or a thread."""
    gone = folder.with_name(f"{folder.name}-{secrets.token_hex(6)}")
    with suppress(OSError):
        folder.rename(gone)
        remove_output(gone, ignore_errors=True)


class KeptParts:
    """Results of blocks in one pass over a stack.

    Parameters
    ----------
    folder
        See `begin`.
    number
        Of the pass.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, f"{number:03}"

    def known(self, of: Sequence[Any]) -> dict[int, bytes]:
        """Results by block; `of` says what pass it is, and how it is divided."""
        found: dict[int, bytes] = {}
        for path in sorted(self._folder.glob(f"{self._number}-*{_PART}")):
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, pickle.UnpicklingError, EOFError):
                head, _, content = path.read_bytes().partition(b"\n")
                said = json.loads(head)
                if said["of"] != list(of) or said["checksum"] != xxhash.xxh3_128_hexdigest(content):
                    continue
                begin = 0
                for block, size in enumerate(said["sizes"], said["first"]):
                    result = content[begin : begin + size]
                    _Plain(io.BytesIO(result)).load()
                    found[block] = result
                    begin += size
        return found

    def keep(self, of: Sequence[Any], first: int, results: Sequence[bytes], begun: float) -> Future[None]:
        """Keep the results of blocks from a first one on, `begun` at a time, once their planes are on the disk.

        A thread does so, meanwhile; nothing happens where that cannot be written.
        """
        return _THREAD.submit(self._keep, of, first, results, begun)

    def _keep(self, of: Sequence[Any], first: int, results: Sequence[bytes], begun: float) -> None:
        content = b"".join(results)
        said = {"of": list(of), "first": first, "sizes": [len(result) for result in results]}
        head = json.dumps(said | {"checksum": xxhash.xxh3_128_hexdigest(content)})
        path = self._folder / f"{self._number}-{first:06}-{len(results)}{_PART}"
        mine = path.with_name(f"{secrets.token_hex(6)}{_PART}")
        with suppress(OSError):
            _bring_to_the_disk(self._folder, begun - _CLOCKS_DIFFER)
            try:
                mine.write_bytes(head.encode() + b"\n" + content)
                mine.replace(path)
            finally:
                mine.unlink(missing_ok=True)


def _bring_to_the_disk(folder: Path, since: float) -> None:
    """Files and folders below that were changed since a time: what is said to be done must have been."""
    for root, _, names in os.walk(folder):
        planes = [path for path in map(Path(root).joinpath, names) if path.suffix != _PART]
        for path in (*planes, Path(root)):
            if path.stat().st_mtime >= since:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


class _Plain(pickle.Unpickler):
    """Takes arrays, and classes of results; calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of a name, if it is one of these."""
        if module.split(".")[0] == "numpy" and name in _OF_ARRAYS:
            return super().find_class(module, name)
        if module == "builtins" and name in _BUILT_IN:
            return super().find_class(module, name)
        if module.startswith(_CLASSES):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no result")
