"""What workers have computed of a stack, kept in the output folder until it is finished: ``--resume`` goes on from it.

Files are input like any other: they may be damaged, or say what is not so. One that is not whole is none, and of
pickles those are taken that hold nothing but arrays and the classes that results are made of.
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

from xcorr_app.io.writing.atomic import remove_output

_KEY, _PART = "key", ".part"
_CLOCKS_DIFFER = 60.0
"""Seconds by which the clock of a shared disk may be behind."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="xcorr-keep")
_CLASSES = {
    "batch.align.moving": {"_Block"},
    "batch.align.pixel_sums": {"PixelSums"},
    "batch.align.projections": {"Gathered"},
    "registration.assessment_sums": {"AssessmentSums", "Shared", "Side"},
    "registration.measuring.chunk_result": {"ChunkResult", "Looked"},
    "registration.light.light_field": {"Light"},
    "registration.masked.estimate": {"_Columns"},
    "registration.measuring.match": {"Match"},
    "registration.measuring.measured": {"Measured"},
    "registration.patches.fitted_fields": {"FittedFields"},
    "registration.motion.whole_frames": {"Found"},
    "registration.measuring.placement": {"Placement"},
    "registration.stack.preparation": {"Prepared"},
    "registration.measuring.reweighted_fit": {"Fit"},
    "registration.parts.seen_tiles": {"Seen"},
    "registration.parts.tiles": {"Look"},
    "registration.parts.turned_frames": {"Turned"},
    "registration.standard_error.peak_shapes": {"PeakShapes"},
}
"""What results are made of."""
_CORES = ("numpy.core", "numpy._core")
_PLAIN = {
    "builtins": {"slice", "set", "frozenset", "range", "complex"},
    "numpy": {"dtype", "ndarray"},
    **{f"{core}.multiarray": {"_reconstruct", "scalar"} for core in _CORES},
    **{f"{core}.numeric": {"_frombuffer"} for core in _CORES},
    **{f"xcorr_app.{module}": names for module, names in _CLASSES.items()},
}
"""All that a file may name."""


def begin(root: Path, key: str, *, resume: bool) -> None:
    """Make a folder of this `key` in the one of a stack; what another run left there stays if it is of the same.

    The key is that of all that decides the results, or of the run where that is not known. Raises OSError.
    """
    folder = folder_of(root, key)
    with suppress(OSError):
        if resume and (folder / _KEY).read_text() == key:
            return
    remove(root)
    folder.mkdir(parents=True)
    (folder / _KEY).write_text(key)


def folder_of(root: Path, key: str) -> Path:
    """Where all of one key is kept: who still writes for another run does so elsewhere."""
    return root / key[:16]


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
    folder, key
        See `begin`.
    number
        Of the pass.
    device
        What computes them, in words.
    resume
        Whether what an earlier run computed is taken.
    """

    def __init__(self, folder: Path, key: str, number: int, device: str, *, resume: bool) -> None:
        self._folder, self._key, self._number = folder, key, f"{number:03}"
        self._device, self._resume = device, resume

    def known(self, of: Sequence[Any], first: int, last: int) -> dict[int, bytes]:
        """Results of blocks from a first one up to a last one; `of` says what pass it is, and how it is divided."""
        found: dict[int, bytes] = {}
        for path in sorted(self._folder.glob(f"{self._number}-*{_PART}")) if self._resume else []:
            # Whatever is wrong with a file, it is as if it were not there.
            with suppress(Exception):
                begin, count = map(int, path.stem.split("-")[1:])
                if begin < last and first < begin + count:
                    results = enumerate(self._results(path, of, begin, count), begin)
                    found |= {block: result for block, result in results if first <= block < last}
        return found

    def _results(self, path: Path, of: Sequence[Any], first: int, count: int) -> list[bytes]:
        head, _, content = path.read_bytes().partition(b"\n")
        said = json.loads(head)
        if said["key"] != self._key:
            path.unlink()
            return []
        whole = said["checksum"] == xxhash.xxh3_128_hexdigest(content) and sum(said["sizes"]) == len(content)
        if not whole or (said["of"], said["first"], len(said["sizes"])) != (self._of(of), first, count):
            return []
        stream = io.BytesIO(content)
        results = [stream.read(size) for size in said["sizes"]]
        for result in results:
            plain(result)
        return results

    def keep(self, of: Sequence[Any], first: int, results: Sequence[bytes], begun: float) -> Future[None]:
        """Keep the results of blocks from a first one on, `begun` at a time, once their planes are on the disk.

        A thread does so, meanwhile; nothing happens where that cannot be written.
        """
        return _THREAD.submit(self._keep, of, first, results, begun)

    def give_up(self) -> None:
        """Let no later run go on from here: a frame could not be read, and may be readable then."""
        with suppress(OSError):
            (self._folder / _KEY).unlink(missing_ok=True)

    def _of(self, of: Sequence[Any]) -> list[Any]:
        return [self._device, *of]

    def _keep(self, of: Sequence[Any], first: int, results: Sequence[bytes], begun: float) -> None:
        content = b"".join(results)
        said = {"key": self._key, "of": self._of(of), "first": first, "sizes": [len(result) for result in results]}
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
            # A temporary file may vanish meanwhile, or get its name.
            with suppress(FileNotFoundError):
                if path.stat().st_mtime >= since:
                    descriptor = os.open(path, os.O_RDONLY)
                    try:
                        os.fsync(descriptor)
                    finally:
                        os.close(descriptor)


def plain(result: bytes) -> Any:
    """What a pickle holds, if that is arrays and results only; else raises some exception."""
    return _Plain(io.BytesIO(result)).load()


class _Plain(pickle.Unpickler):
    """Calls nothing but what makes these."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for, if it is one of these: none has a dot, by which others could be reached."""
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no result")
