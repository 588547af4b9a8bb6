"""``python -m tests.mutate``: random single faults put into a copy of the program, and the share that tests notice.

Each fault is put in alone, and the test files nearest to it run in a child of a process that has the libraries
imported. A fault that they do not notice is printed: either a test is missing, or the fault changes nothing. Exit code
1 where fewer than 85 % are noticed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutate.mutants import Mutant, mutants, mutated
from tests.mutate.nearest import ROOT, nearest

LAYERS = ("registration", "correlation", "io", "pipeline", "batch", "filtering", "report")
_ASKED = 0.85
_NOTICED, _SURVIVED, _UNKNOWN = "noticed", "NOT NOTICED", "tests out of time"
_ALWAYS = ("click", "imagecodecs", "numpy", "rich", "scipy.ndimage", "scipy.fft", "scipy.stats", "tifffile")


def main() -> None:
    """Print what became of every fault, then the share."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other faults")
    parser.add_argument("--files", type=int, default=4, help="test files for each, the nearest first")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one test file")
    parser.add_argument("--only", help="a fault that was printed, as FILE:NUMBER")
    chosen = parser.parse_args()
    for name in _ALWAYS:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="xcorr-mutate-") as folder:
        tree = Path(folder)
        for name in ("xcorr_app", "kernels", "tests", "benchmarks", "sample_data", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile"):
            shutil.copy(ROOT / name, tree)
        places = _places(tree, chosen.count, chosen.seed) if chosen.only is None else [_place(chosen.only)]
        outcomes = Counter(_outcome(tree, *place, chosen.files, chosen.seconds) for place in places)
    share = outcomes[_NOTICED] / len(places)
    print(", ".join(f"{outcome} {number}" for outcome, number in outcomes.items()), f"of {len(places)}: {share:.0%}")
    sys.exit(share < _ASKED)


def _places(tree: Path, count: int, seed: int) -> list[tuple[Path, int]]:
    """Files, each with the number of one of its faults; every fault is as likely as any other."""
    everywhere = [
        (path.relative_to(tree), number)
        for layer in LAYERS
        for path in sorted((tree / "xcorr_app" / layer).rglob("*.py"))
        for number, _ in enumerate(mutants(path.read_text()))
    ]
    return random.Random(seed).sample(everywhere, count)  # noqa: S311 - nothing is kept secret


def _place(text: str) -> tuple[Path, int]:
    path, _, number = text.rpartition(":")
    return Path(path), int(number)


@cache
def _sound(tree: Path, path: Path, seconds: int) -> bool:
    """Whether a file's tests pass without a fault; a file that fails anyway notices nothing."""
    return _passes(tree, path, seconds) is True


def _outcome(tree: Path, module: Path, number: int, files: int, seconds: int) -> str:
    """Put one fault in, run the nearest tests, and take it out again."""
    source = (tree / module).read_text()
    mutant: Mutant = mutated(source, number)
    outcome, by = _SURVIVED, ""
    for path in nearest(module, tree)[:files]:
        (tree / module).write_text(mutant.source)
        try:
            passed = _passes(tree, path, seconds)
        finally:
            (tree / module).write_text(source)
        if passed is None:
            outcome = _UNKNOWN
        elif not passed and _sound(tree, path, seconds):
            outcome, by = _NOTICED, f" by {path}"
            break
    print(f"{outcome}{by}: {module}:{number} line {mutant.line}: {mutant.change}", flush=True)
    return outcome


def _passes(tree: Path, path: Path, seconds: int) -> bool | None:
    """Run a file's tests in a child until one fails; None where they do not end in time."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            code = _run(tree, path)
        finally:
            os._exit(code)
    until = time.monotonic() + 8 * seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code == -signal.SIGXCPU else code == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run(tree: Path, path: Path) -> int:
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(tree)
    sys.path[:] = [str(tree), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "xcorr_app")]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(path)])
    return int(code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


if __name__ == "__main__":
    main()
