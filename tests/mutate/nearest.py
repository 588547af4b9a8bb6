"""Which test files are likeliest to notice a fault in a module: those that import it and speak of what it defines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = {"gpu", "kernels", "benchmarks", "fuzz", "chaos", "mutate"}
"""Folders of tests that need a device, compile, or take their time."""
_WHOLE = (
    "batch/test_results.py",
    "batch/test_filter_values.py",
    "registration/test_estimate.py",
    "registration/test_references.py",
    "correlation/test_find_shifts.py",
    "report/test_html.py",
)
"""Files whose tests go through a whole layer and those below it: there a module is met that no test names."""


def nearest(module: Path, root: Path = ROOT) -> list[Path]:
    """Test files from the nearest on; the paths are relative to `root`."""
    dotted = ".".join(module.with_suffix("").parts)
    names = {
        node.name
        for node in ast.walk(ast.parse((root / module).read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("__")
    }
    rated = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        inside = path.relative_to(root)
        if inside.parts[1] in _LEFT_OUT or path.stat().st_size == 0:
            continue
        text = path.read_text()
        words = set(re.findall(r"\w+", text))
        score = (
            8 * (dotted in text)
            + 6 * (module.stem in path.stem)
            + min(6, 2 * len(names & words))
            + 2 * (inside.parts[1] == module.parts[1])
            + 2 * ("/".join(inside.parts[1:]) in _WHOLE)
        )
        rated.append((-score, path.stat().st_size, inside))
    return [inside for _, _, inside in sorted(rated)]
