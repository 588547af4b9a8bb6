"""What every case of the other modules found when it was last written, number by number."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden import choices, commands, files, folders, library
from tests.golden.leaves import Leaf, leaves

FOLDER = Path(__file__).parent / "kept"
_OF_THE_MACHINE = frozenset({"decision"})


def every_case() -> dict[str, library.Case]:
    """All of them by name."""
    found = library.cases() | commands.cases() | files.cases()
    return found | folders.cases() | choices.cases()


def found(case: library.Case) -> dict[str, Leaf]:
    """What a case finds now."""
    value: Any = case()
    return dict(leaves(value, "", _OF_THE_MACHINE))


def kept(name: str) -> dict[str, Leaf]:
    """What it found."""
    return dict(_records(_place(name))[name])


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
