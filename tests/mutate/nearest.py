"""Which test files are likeliest to notice a fault in a module: those that import it and speak of what it defines."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = {"gpu", "benchmarks", "chaos", "mutate", "napari"}
"""Folders of tests that need a device, take their time, or are of something else."""
_COMPILING = ("_on_host.py", "_compiles_everywhere.py", "_on_device.py", "test_array_operations.py")
_OF_TEXT = {"test_house.py", "test_docs.py", "test_packaging.py"}
"""Files of tests that read the program as text: they would notice how a fault is written, not what it does."""
_WHOLE = (
    "batch/test_results.py",
    "batch/test_filter_values.py",
    "filtering/test_refusals.py",
    "registration/test_arguments.py",
    "registration/test_estimate.py",
    "registration/reference/test_references.py",
    "correlation/test_find_shifts.py",
    "report/test_html.py",
)
"""Files whose tests go through a whole layer and those below it: there a module is met that no test names."""


def files_of_tests(root: Path = ROOT) -> list[Path]:
    """Files whose tests may notice a fault; the paths are relative to `root`."""
    paths = [path.relative_to(root) for path in sorted((root / "tests").rglob("test_*.py"))]
    return [
        path
        for path in paths
        if path.parts[1] not in _LEFT_OUT and path.name not in _OF_TEXT and not path.name.endswith(_COMPILING)
    ]


@cache
def _tests(root: Path) -> list[tuple[Path, str, frozenset[str]]]:
    """Every file of tests, its text, and the words in it."""
    texts = ((path, (root / path).read_text()) for path in files_of_tests(root))
    return [(path, text, frozenset(re.findall(r"\w+", text))) for path, text in texts]


def nearest(module: Path, root: Path = ROOT) -> list[Path]:
    """Test files from the nearest on; the paths are relative to `root`."""
    dotted = ".".join(module.with_suffix("").parts)
    names = {
        node.name
        for node in ast.walk(ast.parse((root / module).read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("__")
    }
    rated = []
    for inside, text, words in _tests(root):
        score = (
            8 * (dotted in text)
            + 6 * (module.stem in inside.stem)
            + min(6, 2 * len(names & words))
            + 2 * sum(a == b for a, b in zip(inside.parts[1:-1], module.parts[1:-1], strict=False))
            + 2 * ("/".join(inside.parts[1:]) in _WHOLE)
        )
        rated.append((-score, len(text), inside))
    return [inside for _, _, inside in sorted(rated)]
