"""Traces of earlier runs, file by file: they hold as long as neither the program nor that file of tests changes."""

from __future__ import annotations

import hashlib
import pickle
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.kernels.build_cache import cache_folder
from tests.mutate.choice import Traces
from tests.mutate.nearest import ROOT


def kept_traces(file: Path) -> Traces | None:
    """What an earlier run saw of the same tests of the same program."""
    place = _place(file)
    return pickle.loads(zlib.decompress(place.read_bytes())) if place.exists() else None  # noqa: S301 - written below


def keep_traces(file: Path, traces: Traces) -> None:
    """Keep them for the next run, as long as what compilers made is kept."""
    _place(file).write_bytes(zlib.compress(pickle.dumps(traces)))


def _place(file: Path) -> Path:
    known = hashlib.sha256(_around() + str(file).encode() + (ROOT / file).read_bytes())
    return cache_folder() / f"traces-{known.hexdigest()}"


@cache
def _around() -> bytes:
    """What all files of tests share: the program, and what helps them."""
    known = hashlib.sha256(sys.version.encode())
    for path in _sources():
        known.update(path.read_bytes())
    return known.digest()


def _sources() -> Iterable[Path]:
    yield from sorted((ROOT / "xcorr_app").rglob("*.py"))
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not path.name.startswith("test_") and "mutate" not in path.parts:
            yield path
