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
import shutil
import signal
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from tests.mutate.mutants import Mutant, mutants, mutated
from tests.mutate.nearest import ROOT, nearest

LAYERS = ("registration", "correlation", "io", "pipeline", "batch", "filtering", "report")
_ASKED = 0.85
_ALWAYS = ("click", "imagecodecs", "numpy", "rich", "scipy.ndimage", "scipy.fft", "scipy.stats", "tifffile")


def main() -> None:
    """Print what became of every fault, then the share."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other faults")
    parser.add_argument("--files", type=int, default=6, help="test files for each, the nearest first")
    parser.add_argument("--seconds", type=float, default=120, help="for the tests of one fault")
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
        survivors = sum(not _noticed(tree, *place, chosen.files, chosen.seconds) for place in places)
    share = 1 - survivors / len(places)
    print(f"{len(places) - survivors} of {len(places)} faults noticed: {share:.0%}")
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
def _sound(tree: Path, path: Path) -> bool:
    """Whether a file's tests pass without a fault; a file that fails anyway notices nothing."""
    return not _fails(tree, path, 300.0)


def _noticed(tree: Path, module: Path, number: int, files: int, seconds: float) -> bool:
    source = (tree / module).read_text()
    mutant: Mutant = mutated(source, number)
    began, by = time.monotonic(), "NOT NOTICED"
    for path in nearest(module, tree)[:files]:
        (tree / module).write_text(mutant.source)
        try:
            failed = _fails(tree, path, began + seconds - time.monotonic())
        finally:
            (tree / module).write_text(source)
        if failed and _sound(tree, path):
            by = str(path)
            break
        if time.monotonic() - began > seconds:
            break
    taken = time.monotonic() - began
    print(f"{module}:{number} line {mutant.line}: {mutant.change}  [{by}, {taken:.0f} s]", flush=True)
    return by != "NOT NOTICED"


def _fails(tree: Path, path: Path, seconds: float) -> bool:
    """Run a file's tests in a child until one fails; tests that do not end in time have noticed nothing."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _run(tree, path)
        finally:
            os._exit(code)
    until = time.monotonic() + max(seconds, 10.0)
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


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
