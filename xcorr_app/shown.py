"""What every result shows itself with: a table for notebooks, axes to draw in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_LINES = 24
"""Of a table; of more its first and last ones are shown."""


def axes_of(axes: Any) -> Any:
    """Return what is given to draw in, or the axes of a new figure."""
    if axes is not None:
        return axes
    from matplotlib import pyplot as plt

    return plt.figure().add_subplot()


def html_table(title: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Write a table; of many lines, the first and the last ones."""
    rows = list(zip(*columns.values(), strict=True))
    if len(rows) > _LINES:
        rows = [*rows[: _LINES // 2], ("\u22ee",) * len(columns), *rows[-_LINES // 2 :]]
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"
