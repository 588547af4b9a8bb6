"""The instrument itself: every fault is one, and the tests nearest to a module are those that speak of it."""

import ast
from pathlib import Path

from tests.mutate.mutants import mutants, mutated
from tests.mutate.nearest import ROOT, nearest

SOURCE = '''
"""Text, left alone."""
from a import b
def f(x: int = 1) -> str:
    """The same."""
    if x < 2 and not x:
        g(x, axis=0)
    return f"{x + 1}"
'''


def test_every_fault_changes_one_thing():
    found = [mutated(SOURCE, number).change for number, _ in enumerate(mutants(SOURCE))]
    assert found == [
        "1 -> 2",
        "if x < 2 and (not x): g(x, axis=0) -> if False: g(x, axis=0)",
        "x < 2 and (not x) -> x < 2 or not x",
        "x < 2 -> x <= 2",
        "2 -> 3",
        "not x -> x",
        "g(x, axis=0) -> pass",
        "g(x, axis=0) -> g(x)",
        "0 -> 1",
    ]


def test_a_fault_leaves_a_module_that_compiles_and_differs():
    module = ROOT / "xcorr_app" / "io" / "atomic.py"
    source = module.read_text()
    plain = ast.unparse(ast.parse(source))
    for number, _ in enumerate(mutants(source)):
        changed = mutated(source, number).source
        compile(changed, str(module), "exec")
        assert changed != plain


def test_the_nearest_tests_come_first():
    assert nearest(Path("xcorr_app/io/atomic.py"))[0] == Path("tests/io/test_atomic.py")
