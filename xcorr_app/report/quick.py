"""The shifts of a stack as one small drawing made of text, for a report that must cost nothing to speak of."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcorr_app.report.summary import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xcorr_app.report.records import FrameRow, StackReport

_WIDTH, _HEIGHT, _MARGIN = 640, 220, 34
_MOST_POINTS = 2000


@dataclass(frozen=True)
class QuickChart:
    """A drawing as the page takes it."""

    title: str
    source: str | None
    alt: str
    caption: str


def quick_chart(stack: StackReport) -> QuickChart:
    """Shift of each frame, rows and columns, as an SVG of two lines."""
    step = -(-len(stack.rows) // _MOST_POINTS)
    rows = [row for row in stack.rows[::step] if math.isfinite(row.dy) and math.isfinite(row.dx)]
    title = "Shift of each frame"
    if not rows:
        return QuickChart(title, None, "", "No frame has a measured shift.")
    values = [value for row in rows for value in (row.dy, row.dx)]
    low, high = math.floor(min(values)), math.ceil(max(values))
    high = max(high, low + 1)
    last = max(rows[-1].frame, 1)
    lines = [
        f'<polyline fill="none" stroke="{colour}" points="{_points(rows, axis, last, low, high)}"/>'
        for axis, colour in ((0, "#0072b2"), (1, "#d55e00"))
    ]
    right, bottom = _WIDTH - _MARGIN, _HEIGHT - _MARGIN
    labels = [
        (4, _MARGIN + 4, f"{high} px"),
        (4, bottom, f"{low} px"),
        (_MARGIN, _HEIGHT - 10, "frame 0"),
        (right - 20, _HEIGHT - 10, str(last)),
    ]
    texts = [f'<text x="{x}" y="{y}">{text}</text>' for x, y, text in labels]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/><path d="M{_MARGIN} {_MARGIN}V{bottom}'
        f'H{right}" fill="none" stroke="#999"/>{"".join(lines)}{"".join(texts)}</svg>'
    )
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
    caption = "Blue: rows, orange: columns."
    return QuickChart(title, address, f"Shift in rows and columns of {count(len(stack.rows), 'frame')}.", caption)


def _points(rows: Sequence[FrameRow], axis: int, last: int, low: int, high: int) -> str:
    across, down = (_WIDTH - 2 * _MARGIN) / last, (_HEIGHT - 2 * _MARGIN) / (high - low)
    return " ".join(
        f"{_MARGIN + row.frame * across:.1f},{_HEIGHT - _MARGIN - ((row.dy, row.dx)[axis] - low) * down:.1f}"
        for row in rows
    )
