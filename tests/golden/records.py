"""What every case of `library`, `commands` and `files` found when it was last written, number by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden import commands, files, library
from tests.golden.leaves import Leaf, leaves

FOLDER = Path(__file__).parent / "kept"
_OF_THE_MACHINE = frozenset({"decision"})


def every_case() -> dict[str, library.Case]:
    """All of them by name."""
    return library.cases() | commands.cases() | files.cases()


def found(case: library.Case) -> dict[str, Leaf]:
    """What a case finds now."""
    value: Any = case()
    return dict(leaves(value, "", _OF_THE_MACHINE))


def kept(name: str) -> dict[str, Leaf]:
    """What it found."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text()))


def write(name: str, fields: dict[str, Leaf]) -> None:
    """Keep what it finds."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(fields, indent=0, ensure_ascii=False) + "\n")
