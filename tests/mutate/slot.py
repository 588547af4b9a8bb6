"""A copy of the project in which one fault after the other is put, by one process of several."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

from tests.mutate import child
from tests.mutate.nearest import ROOT

_FOLDERS = ("xcorr_app", "kernels", "tests", "benchmarks", "sample_data", "docs", "packaging")
_FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "mkdocs.yml", "CITATION.cff")
_SLOWER = 6
_STARTS = 30.0
"""A round of tests may take so many times what it took without the fault, and what it takes to start in seconds."""

NOTICED, SURVIVED, UNJUDGED = "noticed", "survived", "not judged"
_here = SimpleNamespace(tree=None)


@dataclass(frozen=True)
class Fault:
    """A fault to be judged: its module and number, what it does, and the tests to run with their seconds in all."""

    module: str
    number: int
    line: int
    before: str
    after: str
    source: str
    rounds: list[tuple[list[str], float]]


@dataclass(frozen=True)
class Verdict:
    """What became of a fault."""

    file: str
    number: int
    line: int
    before: str
    after: str
    outcome: str
    by: str = ""
    how: str = ""
    tests: int = 0
    seconds: float = 0.0


def settle(folder: Path) -> None:
    """Make this process's copy, with real stacks beside it where the project has them."""
    place = Path(tempfile.mkdtemp(prefix="slot-", dir=folder))
    _here.tree = place / "tree"
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, _here.tree / name, ignore=shutil.ignore_patterns("*.result"))
    for name in _FILES:
        shutil.copy2(ROOT / name, _here.tree)
    if (ROOT.parent / "shared").is_dir():
        (place / "shared").symlink_to(ROOT.parent / "shared")


def trace(file: str, until: float) -> tuple[str, dict[str, tuple[float, dict[str, frozenset[int]]]]]:
    """Tests of a file that pass without a fault."""
    seconds = until - time.time()
    found = child.traced(_here.tree, file, seconds) if seconds > 0 else {}
    return file, {test: (spent, _by_module(lines)) for test, (spent, lines) in found.items()}


def _by_module(lines: Iterable[tuple[str, int]]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for module, line in lines:
        found.setdefault(module, set()).add(line)
    return {module: frozenset(some) for module, some in found.items()}


def judge(fault: Fault, until: float) -> Verdict:
    """Put the fault in, run the tests, and take it out again."""
    begin, place, ran = time.time(), _here.tree / fault.module, 0

    def verdict(outcome: str, by: str = "", how: str = "") -> Verdict:
        known = {name: value for name, value in asdict(fault).items() if name not in ("module", "source", "rounds")}
        return Verdict(fault.module, **known, outcome=outcome, by=by, how=how, tests=ran, seconds=time.time() - begin)

    for tests, cost in fault.rounds:
        rest, ran = list(tests), ran + len(tests)
        while rest:
            limit = min(_STARTS + _SLOWER * cost, until - time.time())
            if limit <= 0:
                return verdict(UNJUDGED)
            failure = _with(fault, place, rest, limit)
            if failure is None:
                break
            if until - time.time() <= 0:
                return verdict(UNJUDGED)
            by, how = failure
            # A test that fails without the fault as well, now and then, notices nothing.
            again = [by] if "::" in by else rest
            if child.first_failure(_here.tree, again, min(limit, max(1.0, until - time.time()))) is None:
                return verdict(NOTICED, by, how)
            rest = [test for test in rest if test not in again]
    return verdict(SURVIVED)


def _with(fault: Fault, place: Path, tests: list[str], limit: float) -> tuple[str, str] | None:
    """The first failure under the fault; the file is then as it was, its time included, so that its code is kept."""
    source, times = place.read_bytes(), place.stat()
    try:
        place.write_text(fault.source)
        return child.first_failure(_here.tree, tests, limit)
    finally:
        place.write_bytes(source)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


def sample(places: list[tuple[Path, int]], count: int, seed: int) -> list[tuple[Path, int]]:
    """Every fault is as likely as any other."""
    return random.Random(seed).sample(places, min(count, len(places)))  # noqa: S311 - nothing is kept secret
