"""Which tests are run for a fault, and in which order: first those that run its lines, in the nearest files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

_OF_A_FILE = 10.0
_IN_ALL = 60.0
"""Seconds that tests took without a fault: as many are chosen of a file, and in all."""
_FEWEST = 4
"""Tests of a file that are chosen however long they take."""
_ROUNDS = (3, 6, 12, 10**6)
"""Files of the first round and of those that follow: the nearest notice most, and need not wait for the others."""
_WITHOUT_LINES = 3
"""Nearest files whose tests run although they run none of the lines: what other processes do is not traced."""

Traces = Mapping[str, tuple[float, Mapping[str, frozenset[int]]]]
"""Seconds and lines of every module, by the identity of the test."""


def rounds(
    module: Path, lines: range, importers: Sequence[Path], nearest: Sequence[Path], traces: Traces
) -> list[list[str]]:
    """Tests in the order in which they are run; every round is a process of its own."""
    name, users = str(module), {str(path) for path in importers}
    reach = {test for test, (_, ran) in traces.items() if any(line in lines for line in ran.get(name, ()))}
    if not reach:  # constants alone
        reach = {test for test, (_, ran) in traces.items() if users & ran.keys()}
    order = [str(path) for path in nearest]
    rank = {path: position for position, path in enumerate(order)}
    files = {
        path: list(tests)
        for path, tests in groupby(sorted(reach, key=lambda test: (rank.get(_file(test), len(rank)), test)), key=_file)
    }
    chosen, left = [], _IN_ALL
    for tests in files.values():
        some = _cheapest(tests, traces, min(_OF_A_FILE, left))
        left -= sum(traces[test][0] for test in some)
        chosen.append(some)
    others = [[test for test in traces if _file(test) == path] for path in order[:_WITHOUT_LINES]]
    chosen += [_cheapest([test for test in tests if test not in reach], traces, _OF_A_FILE) for tests in others]
    chosen = [tests for tests in chosen if tests]
    found, begin = [], 0
    for size in _ROUNDS:
        if some := [test for tests in chosen[begin : begin + size] for test in tests]:
            found.append(some)
        begin += size
    return found


def _file(test: str) -> str:
    return test.split("::")[0]


def _cheapest(tests: Sequence[str], traces: Traces, seconds: float) -> list[str]:
    """As many as fit into the time, at least a few."""
    some: list[str] = []
    for test in sorted(tests, key=lambda test: (traces[test][0], test)):
        if len(some) >= _FEWEST and traces[test][0] > seconds:
            break
        seconds -= traces[test][0]
        some.append(test)
    return some
