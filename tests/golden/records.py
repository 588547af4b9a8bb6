"""What every case of the other modules found when it was last written, number by number."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden import arguments, choices, commands, files, folders, library
from tests.golden.leaves import Leaf, differences, leaves

FOLDER = Path(__file__).parent / "kept"
_ROUNDING_DECIDES = {"align-previous", "shifts-turning", "motion-odd", "motion-similarity", "motion-affine"}
"""Cases with a value at a threshold (pixels of an overlap, a tile that shows enough): another processor finds them
otherwise, as `NPY_DISABLE_CPU_FEATURES` with `OPENCV_CPU_DISABLE` shows."""
_OF_THE_MACHINE = frozenset({"decision", "wrong"})


def every_case() -> dict[str, library.Case]:
    """All of them by name."""
    parts = [each.cases() for each in (library, arguments, commands, files, folders, choices)]
    found = {name: case for part in parts for name, case in part.items()}
    assert len(found) == sum(map(len, parts)), "two cases of one name"
    return on_any_processor(found)


def on_any_processor(cases: dict[str, library.Case]) -> dict[str, library.Case]:
    """Those that find the same wherever they run."""
    return {name: case for name, case in cases.items() if name not in _ROUNDING_DECIDES}


def found(case: library.Case) -> dict[str, Leaf]:
    """What a case finds now."""
    value: Any = case()
    return dict(leaves(value, "", _OF_THE_MACHINE))


def kept(name: str) -> dict[str, Leaf]:
    """What it found."""
    return dict(_records(_place(name))[name])


def check(name: str, case: library.Case) -> None:
    """Fail where a field differs: by a fault, or by a change that was meant (`python -m tests.golden NAME`)."""
    if lines := differences(found(case), kept(name)):
        pytest.fail("\n".join([f"{len(lines)} fields differ:", *lines[:30]]))


def write(fields: dict[str, dict[str, Leaf]]) -> None:
    """Keep what cases find; of those that are no more nothing is kept."""
    FOLDER.mkdir(exist_ok=True)
    places = {_place(name): [] for name in every_case()} | {path: [] for path in FOLDER.glob("*.json")}
    for name in every_case():
        places[_place(name)].append(name)
    for path, names in places.items():
        before = _records(path) if path.exists() else {}
        records = {name: fields.get(name) or before[name] for name in sorted(names)}
        if records:
            path.write_text(json.dumps(records, indent=0, ensure_ascii=False) + "\n")
        else:
            path.unlink()


def _place(name: str) -> Path:
    """Cases whose names begin alike are in one file."""
    return FOLDER / f"{name.partition('-')[0]}.json"


@cache
def _records(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))
