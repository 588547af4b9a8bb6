"""Rows of the board: what fails of what is asked, what is worse or better than in another file, and a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from rich.table import Table

Row = dict[str, Any]

MISSED = "missed"
"""Frames that are wrong without a flag: none are, on any row."""
SHARES = {"within_1": (0.68, 0.05), "within_2": (0.95, 0.03)}
"""What is asked of shares of errors, and how far they may be off."""
TIMES = 1.2
_FLOORS = {
    "rms": 5e-4, "median": 5e-4, "applied": 5e-4, "gross": 1, "needless": 1, MISSED: 1, "passes": 0.5, "cpu": 0.02,
}  # fmt: skip
"""Figures that are compared, and by how much they must differ at least."""


def failures(row: Row) -> list[str]:
    """Return what a row fails: what was asked of it, frames missed, shares of errors, in words."""
    asked = {MISSED: 0, **row["asked"]}
    words = [f"raised {text}" for text in row["raised"]]
    words += [
        f"{name} {_number(row[name]):.3g} > {most:.3g}" for name, most in asked.items() if _number(row[name]) > most
    ]
    for name, (share, by) in SHARES.items():
        if row["calibrated"] and row[name] is not None and abs(row[name] - share) > by:
            words.append(f"{name} {100 * row[name]:.0f} %")
    return words


def changes(row: Row, before: Row) -> tuple[list[str], list[str]]:
    """Return which figures of a row are 1.2 times worse, and better, than before."""

    def moved(now: float, then: float, floor: float) -> int:
        if now > TIMES * then and now - then >= floor:
            return 1
        return -1 if then > TIMES * now and then - now >= floor else 0

    worse, better = list[str](), list[str]()
    for name, floor in _FLOORS.items():
        now, then = _number(row[name]), _number(before[name])
        if way := moved(now, then, floor) if now != then else 0:
            (worse if way > 0 else better).append(f"{name} {then:.3g} -> {now:.3g}")
    for name, (share, by) in SHARES.items():
        if row[name] is not None and before[name] is not None:
            way = moved(abs(row[name] - share), abs(before[name] - share), by)
            if way:
                (worse if way > 0 else better).append(f"{name} {100 * before[name]:.0f} -> {100 * row[name]:.0f} %")
    return worse, better


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def compared(rows: list[Row], others: list[Row]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the rows that both have and that changed: what is worse, and better."""
    before = {(row["case"], row["way"]): row for row in others}
    for row in rows:
        key = (row["case"], row["way"])
        if key in before:
            worse, better = changes(row, before[key])
            if worse or better:
                yield " ".join(key), worse, better


_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "rms": ("rms", "{:.4f}".format),
    "over_bound": ("/ bound", "{:.2f}".format),
    "median": ("median", "{:.4f}".format),
    "largest": ("max", "{:.3f}".format),
    "gross": ("gross", str),
    "applied": ("applied", "{:.4f}".format),
    "sigma": ("sigma", "{:.4f}".format),
    "within_1": ("1 s", "{:.0%}".format),
    "within_2": ("2 s", "{:.0%}".format),
    "frames": ("frames", str),
    "flagged": ("flagged", str),
    "right": ("right", str),
    "needless": ("needless", str),
    MISSED: ("missed", str),
    "passes": ("passes", "{:.1f}".format),
    "cpu": ("CPU s", "{:.2f}".format),
    "over_base": ("/ base", "{:.1f}".format),
}


def table(rows: list[Row]) -> Table:
    """Lay all rows out."""
    out = Table(title="errors in pixels; CPU seconds a series (of four pairs: fine)")
    out.add_column("case", no_wrap=True)
    for title, _ in _COLUMNS.values():
        out.add_column(title, justify="right", no_wrap=True)
    out.add_column("fails")
    for row in rows:
        cells = ["-" if row[name] is None else write(row[name]) for name, (_, write) in _COLUMNS.items()]
        out.add_row(f"{row['case']}, {row['way']}", *cells, "; ".join(row["fails"]))
    return out
