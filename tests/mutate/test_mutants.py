"""The instrument itself: every fault is one, and the tests nearest to a module are those that speak of it."""

from pathlib import Path

from tests.mutate.mutants import mutants, mutated
from tests.mutate.nearest import nearest

SOURCE = '''
"""Text, left alone."""
from a import b
def f(x: int = 1) -> str:
    """The same."""
    if x < 2 and not x:
        g(x, axis=0)
    assert zip(x, x, strict=True), 1
    return f"{x + 1}"
'''


def test_every_fault_changes_one_thing():
    found = [mutated(SOURCE, number) for number, _ in enumerate(mutants(SOURCE))]
    assert [f"{one.before} -> {one.after}" for one in found] == [
        "1 -> 2",
        "x < 2 and (not x) -> False",
        "x < 2 and (not x) -> x < 2 or not x",
        "x < 2 -> x <= 2",
        "2 -> 3",
        "not x -> x",
        "g(x, axis=0) -> pass",
        "g(x, axis=0) -> g(x)",
        "0 -> 1",
    ]
    assert all(one.source != SOURCE for one in found)


def test_the_nearest_tests_come_first():
    assert nearest(Path("xcorr_app/io/writing/atomic.py"))[0] == Path("tests/io/writing/test_atomic.py")
