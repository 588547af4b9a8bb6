"""The instrument itself: every fault is one, and the tests nearest to a module are those that speak of it."""

from pathlib import Path

from tests.mutate import child
from tests.mutate.choice import rounds
from tests.mutate.mutants import mutants, mutated
from tests.mutate.nearest import ROOT, nearest

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
    # A default belongs to the whole function, a condition to its own line.
    assert [one.lines for one in found] == [range(4, 10)] + [range(6, 7)] * 5 + [range(7, 8)] * 3


def test_a_fault_leaves_a_module_that_compiles_and_differs_in_one_place():
    module = ROOT / "xcorr_app" / "io" / "finding" / "natural_order.py"
    source = module.read_text()
    for number, _ in enumerate(mutants(source)):
        changed = mutated(source, number).source
        compile(changed, str(module), "exec")
        same = sum(line in source.splitlines() for line in changed.splitlines())
        assert changed != source
        assert same >= len(changed.splitlines()) - 2


def test_every_other_number_is_another():
    source = "x = [0, 0.0, 2.0, True, 1e-300]"
    found = [mutated(source, number) for number, _ in enumerate(mutants(source))]
    assert [one.after for one in found] == ["1", "1.0", "2.2", "False"]


def test_what_binds_less_tightly_is_put_into_brackets():
    assert mutated("x = a & b ^ c", 0).source == "x = (a | b) ^ c"


def test_tests_that_run_the_line_come_first_and_all_others_that_are_near_follow():
    module = Path("xcorr_app/io/x.py")
    near = [Path("tests/io/test_x.py"), Path("tests/cli/test_all.py")]
    traces = {
        "tests/cli/test_all.py::a": (1.0, {str(module): frozenset({7})}),
        "tests/io/test_x.py::a": (2.0, {str(module): frozenset({7, 8})}),
        "tests/io/test_x.py::b": (0.1, {str(module): frozenset({9})}),
        "tests/other/test_far.py::a": (0.1, {"xcorr_app/io/y.py": frozenset({7})}),
    }
    assert rounds(module, range(7, 8), [], near, traces) == [
        ["tests/io/test_x.py::a", "tests/cli/test_all.py::a", "tests/io/test_x.py::b"]
    ]
    assert rounds(module, range(1, 2), [Path("xcorr_app/io/y.py")], near, traces)[0][0] == "tests/other/test_far.py::a"


def test_lines_are_noted_for_each_test_and_a_failing_one_has_none(tmp_path):
    tree = tmp_path / "tree"
    (tree / "xcorr_app").mkdir(parents=True)
    (tree / "xcorr_app" / "__init__.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    (tree / "test_f.py").write_text(
        """
import pytest
from xcorr_app import f

@pytest.fixture(scope="module")
def one():
    return f(1)

def test_a(one):
    assert one == 1

def test_b(one):
    assert one + f(0) == 3

def test_c():
    assert f(0) == 1
"""
    )
    found = child.traced(tree, "test_f.py", 60)
    module = "xcorr_app/__init__.py"
    assert {name: {line for file, line in lines if file == module} for name, (_, lines) in found.items()} == {
        "test_f.py::test_a": {1, 2, 3},
        "test_f.py::test_b": {1, 2, 3, 4},
    }
    names = list(found)
    assert child.first_failure(tree, names, 60) is None
    (tree / "xcorr_app" / "__init__.py").write_text("def f(x):\n    return 1\n")
    assert child.first_failure(tree, names, 60) == ("test_f.py::test_b", "fails")
    (tree / "xcorr_app" / "__init__.py").write_text("def f(x):\n    while True: pass\n")
    assert child.first_failure(tree, names, 3) == ("test_f.py::test_a", "does not end")


def test_the_nearest_tests_come_first():
    assert nearest(Path("xcorr_app/io/writing/atomic.py"))[0] == Path("tests/io/writing/test_atomic.py")
