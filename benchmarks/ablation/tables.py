"""Tables of an ablation's record: a table a group, a line a way, a column a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Group", "groups_of", "tables_of"]

Group = dict[str, dict[str, Mapping[str, Any]]]
"""Timings of a group by way and case, both in the order of the record; cases by what follows the group's name."""

_MAX_COLUMNS, _MANY = 12, 100


def groups_of(record: Mapping[str, Any]) -> dict[str, Group]:
    """Sort a record's timings by group, way and case."""
    of_case = {case["name"]: case["group"] for case in record["cases"]}
    found: dict[str, Group] = {}
    for timing in record["timings"]:
        group = of_case[timing["case"]]
        ways = found.setdefault(group, {})
        ways.setdefault(timing["what"], {})[timing["case"].removeprefix(f"{group}: ")] = timing
    return found


def tables_of(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of all groups: medians in microseconds; of many readings, the best behind a slash; megabytes."""
    readings = {case["name"]: case["readings"] for case in record["cases"]}
    for name, group in groups_of(record).items():
        cases = list(dict.fromkeys(case for timings in group.values() for case in timings))
        for first in range(0, len(cases), _MAX_COLUMNS):
            shown = cases[first : first + _MAX_COLUMNS]
            cells = {way: [_cell(timings.get(case), readings) for case in shown] for way, timings in group.items()}
            widths = [
                max(len(text) for text in (case, *(row[i] for row in cells.values()))) for i, case in enumerate(shown)
            ]
            margin = max(len(text) for text in (name, *cells))
            yield _line(f"{name:<{margin}}", shown, widths)
            yield from (_line(f"{way:<{margin}}", row, widths) for way, row in cells.items())
            yield ""
    wrong = [timing for timing in record["timings"] if timing["failure"].startswith("wrong answer")]
    yield f"{len(record['timings'])} ways, {len(wrong)} with a wrong answer" + "".join(
        f"; {timing['case']}, {timing['what']}: {timing['failure']}" for timing in wrong
    )


def _line(margin: str, cells: list[str], widths: list[int]) -> str:
    return "  ".join((margin, *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))))


def _cell(timing: Mapping[str, Any] | None, readings: Mapping[str, int]) -> str:
    if timing is None or timing["microseconds"] is None or timing["failure"]:
        return "-"
    text = f"{timing['microseconds']:.4g}"
    if readings[timing["case"]] >= _MANY:  # the best of a few says little
        text += f"/{timing['best_microseconds']:.4g}"
    return text + (f" {timing['memory_bytes'] / 1e6:.0f}M" if timing["memory_bytes"] else "")
