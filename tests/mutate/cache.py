"""Traces of earlier runs, file by file: they hold as long as neither the program nor that file of tests changes."""

from __future__ import annotations

import ast
import hashlib
import pickle
import sys
import zlib
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
    known = hashlib.sha256(_around() + str(file).encode())
    for path in sorted(_with_helpers(ROOT / file)):
        known.update(path.read_bytes())
    return cache_folder() / f"traces-{known.hexdigest()}"


@cache
def _around() -> bytes:
    """What all files of tests share: the program, and the fixtures of every test."""
    known = hashlib.sha256(sys.version.encode())
    for path in [*sorted((ROOT / "xcorr_app").rglob("*.py")), *sorted((ROOT / "tests").rglob("conftest.py"))]:
        known.update(path.read_bytes())
    return known.digest()


def _with_helpers(file: Path) -> set[Path]:
    """A file of tests, and those of `tests` that it imports, and they import."""
    found, left = set(), {file}
    while left:
        path = left.pop()
        found.add(path)
        left |= _imported(path) - found
    return found


@cache
def _imported(file: Path) -> set[Path]:
    places = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tests":
            module = ROOT.joinpath(*node.module.split("."))
            places += [module.with_suffix(".py"), *(module / f"{one.name}.py" for one in node.names)]
    return {path for path in places if path.exists()}
