"""A plug-in of pytest that notes which lines of the program each test runs, how long, and whether it passes."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Lines = set[tuple[str, int]]
_MONITORING: Any = getattr(sys, "monitoring", None)
"""Of Python 3.12 and later: a line costs once a test, not each time that it runs."""
_BETWEEN = 15
"""Seconds after which what is known is written again."""


class Traced:
    """What tests ran: `tests` maps the identity of each that passed to its seconds and its lines; `file` keeps it.

    A line is a module's path below the root and its number; the first line of a function stands for a call of it. What
    runs in other processes is not seen.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self.tests: dict[str, tuple[float, Lines]] = {}
        self._file, self._kept = file, time.monotonic()
        self._prefix = f"{root}/"
        self._program = f"{root}/xcorr_app/"
        self._now: Lines = set()
        self._passed = False
        self._names: dict[str, str] = {}
        self._fixtures: dict[Any, Lines] = {}
        if _MONITORING is None:
            threading.settrace(self._called)
            sys.settrace(self._called)
        else:
            _MONITORING.use_tool_id(_MONITORING.COVERAGE_ID, "mutate")
            _MONITORING.register_callback(_MONITORING.COVERAGE_ID, _MONITORING.events.PY_START, self._started)
            _MONITORING.register_callback(_MONITORING.COVERAGE_ID, _MONITORING.events.LINE, self._reached)
            _MONITORING.set_events(_MONITORING.COVERAGE_ID, _MONITORING.events.PY_START)

    def _started(self, code: CodeType, _offset: int) -> Any:
        name = self._name(code)
        if name:
            self._now.add((name, code.co_firstlineno))
            _MONITORING.set_local_events(_MONITORING.COVERAGE_ID, code, _MONITORING.events.LINE)
        return _MONITORING.DISABLE  # until the next test

    def _reached(self, code: CodeType, line: int) -> Any:
        self._now.add((self._name(code), line))
        return _MONITORING.DISABLE

    def _name(self, code: CodeType) -> str:
        file = code.co_filename  # two files may hold equal code
        name = self._names.get(file)
        if name is None:
            name = self._names[file] = file.removeprefix(self._prefix) if file.startswith(self._program) else ""
        return name

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        name = self._name(frame.f_code)
        if not name:
            return None
        self._now.add((name, frame.f_code.co_firstlineno))

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "line":
                self._now.add((name, frame.f_lineno))
            return line

        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Lines of a fixture belong to every test that uses it, not to the first alone."""
        before, self._now = self._now, set()
        self._anew()
        try:
            return (yield)
        finally:
            self._fixtures.setdefault(fixturedef.func, set()).update(self._now)
            self._now |= before
            self._anew()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note one test."""
        self._now, self._passed = set(), False
        begin = time.perf_counter()
        self._anew()
        try:
            return (yield)
        finally:
            if self._passed:
                lines = self._now
                for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
                    lines = lines.union(*(self._fixtures.get(one.func, set()) for one in definitions))
                self.tests[item.nodeid] = time.perf_counter() - begin, lines
                if time.monotonic() - self._kept > _BETWEEN:
                    self.keep()

    def _anew(self) -> None:
        """See every line once more."""
        if _MONITORING is None:
            sys.settrace(self._called)
        else:
            _MONITORING.restart_events()

    def keep(self) -> None:
        """Write what is known, lest all is lost where the file's tests do not end in time."""
        if _MONITORING is None:
            sys.settrace(None)
        partial = self._file.with_suffix(".part")
        partial.write_bytes(pickle.dumps(self.tests))
        partial.rename(self._file)
        self._kept = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that is skipped, or fails where nothing is wrong, notices nothing."""
        if report.when == "call":
            self._passed = report.passed
        elif report.failed:
            self._passed = False
