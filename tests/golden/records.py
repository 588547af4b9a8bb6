"""What the cases of the other modules found when it was last written: shifts, errors, flags, files."""

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden import commands, folders, measurements

FILE = Path(__file__).parent / "kept.json"
DIGITS = 6

PIXELS, DEGREES, SCORE, SIGMA = 2e-4, 2e-4, 1e-4, 0.01
"""By how much a shift, an angle and a score may differ, and by what part of itself a standard error: processors of all
kinds differ by a quarter of that."""
_ABSOLUTE = {"shifts": PIXELS, "angle": DEGREES, "score": SCORE, "correlation": SCORE, "mean": 0.05}
_RELATIVE = {"sigma": SIGMA}


def every_case() -> dict[str, Callable[[], Any]]:
    """All of them by name."""
    return measurements.cases() | commands.cases() | folders.cases()


def found(case: Callable[[], Any]) -> Any:
    """What a case finds now, as JSON holds it."""
    return json.loads(json.dumps(_plain(case())))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else str(value)
    return value


@cache
def kept() -> dict[str, Any]:
    """What they found."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {}


def write(records: dict[str, Any]) -> None:
    """Keep what cases find, one a line; of those that are no more nothing is kept."""
    lines = (f"{json.dumps(name)}: {json.dumps((kept() | records)[name])}" for name in sorted(every_case()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(one: Any, other: Any, name: str = "") -> Iterator[str]:
    """One line for every value that a user would see to differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{name}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, parts in enumerate(zip(one, other, strict=True)):
            yield from differences(*parts, f"{name}[{number}]")
    elif not _same(one, other, name.rpartition(".")[2].partition("[")[0]):
        yield f"{name}: {one!r}, not {other!r}"


def _same(one: Any, other: Any, field: str) -> bool:
    if not (isinstance(one, float) and isinstance(other, float | int)):
        return bool(one == other)
    return abs(one - other) <= _ABSOLUTE.get(field, 10**-DIGITS) + _RELATIVE.get(field, 0.0) * abs(other)
