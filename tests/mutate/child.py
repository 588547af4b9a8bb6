"""Tests in a child of a process that has the libraries imported: they begin at once, and end when they must."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutate.traced import Traced

_MEMORY = 12 << 30
"""Bytes that a process may ask for: a fault that takes all memory ends itself alone."""
_DAMAGED = "100"
"""Damaged files of each kind, fewer than in ``make test``."""


class Chosen:
    """A plug-in of pytest that runs certain tests alone, and says which one is running and whether it failed."""

    def __init__(self, tests: frozenset[str], told: Path) -> None:
        self._tests, self._told = tests, told

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others."""
        items[:] = [item for item in items if item.nodeid in self._tests]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test runs, should it never end."""
        self._told.write_text(nodeid)


def traced(tree: Path, file: str, seconds: float) -> dict[str, tuple[float, set[tuple[str, int]]]]:
    """Seconds and lines of every test of a file that passes; those that were done, where the time is out."""
    found = tree.parent / "traced"
    found.unlink(missing_ok=True)

    def work() -> int:
        plugin = Traced(tree, found)
        _pytest(tree, [file], plugin)
        plugin.keep()
        return 0

    _in_child(tree, work, seconds)
    return pickle.loads(found.read_bytes()) if found.exists() else {}  # noqa: S301 - written above


def first_failure(tree: Path, tests: list[str], seconds: float) -> tuple[str, str] | None:
    """Which test did not pass, and how it ended: "fails", "does not end" or "ends the process"; None where all pass."""
    told = tree.parent / "running"
    told.write_text("collection")
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))

    def work() -> int:
        code = _pytest(tree, ["-x", *files], Chosen(frozenset(tests), told))
        return int(code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))

    code = _in_child(tree, work, seconds)
    if code == 0:
        return None
    return told.read_text(), "does not end" if code is None else "fails" if code == 1 else "ends the process"


class _End:
    """A plug-in of pytest that knows how the tests ended, whatever is said of garbage afterwards."""

    code = int(pytest.ExitCode.INTERNAL_ERROR)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Note it."""
        self.code = int(exitstatus)


def _pytest(tree: Path, words: list[str], plugin: object) -> int:
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={tree.parent}/tests"]
    end = _End()
    with suppress(Exception):  # pytest collects garbage last, and raises what its destructors warn of
        pytest.main([*options, *words], plugins=[plugin, end])
    return end.code


def _in_child(tree: Path, work: Callable[[], int], seconds: float) -> int | None:
    """The child's exit code; None where it did not end in time."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _settle(tree)
            code = work()
        finally:
            os._exit(code)
    until, code = time.monotonic() + seconds, None
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.02)
    _end_group(child)
    if code is None:
        os.waitpid(child, 0)
    for name in ("tests", "temporary"):
        shutil.rmtree(tree.parent / name, ignore_errors=True)
    return code


def _end_group(child: int) -> None:
    """End what the child started as well."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _settle(tree: Path) -> None:
    """Leave the parent's modules, output, folder and garbage behind."""
    gc.freeze()  # the parent's unclosed sessions and files would warn here, where warnings are errors
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.chdir(tree)
    temporary = tree.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = None
    here = str(Path(__file__).resolve().parents[2])
    sys.path[:] = [str(tree), *(entry for entry in sys.path if entry not in ("", here))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("benchmarks", "tests", "xcorr_app")]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    os.environ |= {
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(temporary),
        "XCORR_FUZZ": _DAMAGED,
        "XCORR_TEST_SHARE": "all",
    }
