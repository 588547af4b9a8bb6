"""The report: one HTML file that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

import functools
import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xcorr_app.report.quality import Figure, figures
from xcorr_app.report.records import FLAG_MEANINGS, FrameRow, RunReport, StackReport
from xcorr_app.report.summary import StackSummary, count, grouped, summarise, verdict
from xcorr_app.report.views import (
    Chart,
    Movie,
    Pair,
    Thumbnail,
    agreement,
    charts,
    picture_pairs,
    preview,
    quick_charts,
    thumbnails,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

FLAGGED_ROWS = 50  # flagged frames listed in the page; all of them are in shifts.csv
TABLE_ROWS = 2000  # frames of a stack that are listed at all
PAGE_ROWS = 100  # of which so many are folded together
OPEN_ROWS = 24  # a table of so many is not folded
THUMBNAILS = 24
_CONTROLS = (*range(0x09), *range(0x0B, 0x0D), *range(0x0E, 0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_UNSEEN = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS)}
"""Controls, marks of writing direction, spaces without width."""
PICTURE_SIDES = ((50, 512), (200, 256))  # of so many stacks, pictures of at most so many pixels along a side
SMALLEST_SIDE = 128  # of more, and no movies: a page must stay one that a browser opens
_making = threading.Lock()


@dataclass(frozen=True)
class StackView:
    """One stack's section of the page, ready to be filled into the template."""

    anchor: str
    stack: StackReport
    summary: StackSummary
    charts: tuple[Chart, ...]
    pairs: tuple[Pair, ...]
    thumbnails: tuple[Thumbnail, ...]
    flagged: tuple[FrameRow, ...]
    figures: tuple[Figure, ...] = ()
    movie: Movie | None = None
    agreement: Chart | None = None

    @property
    def listed(self) -> tuple[FrameRow, ...]:
        """The flagged frames that the page lists."""
        return self.flagged[:FLAGGED_ROWS]

    @property
    def pages(self) -> tuple[tuple[FrameRow, ...], ...]:
        """All frames that the page lists, some at a time."""
        rows = self.stack.rows[:TABLE_ROWS]
        return tuple(rows[start : start + PAGE_ROWS] for start in range(0, len(rows), PAGE_ROWS))

    @property
    def is_short(self) -> bool:
        """Whether all frames can be listed unfolded."""
        return len(self.stack.rows) <= OPEN_ROWS

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """The flags that occur in this stack, explained."""
        words = {flag: None for row in self.flagged for flag in row.flags}
        return tuple((word, FLAG_MEANINGS.get(word, "")) for word in words)


def render_report(run: RunReport, drawn: Mapping[int, StackView] | None = None) -> str:
    r"""Write the page as text; the same records give the same text.

    `drawn` are sections that `stack_view` made before, by place; the others are made here.

    Everything from outside, such as file names, is escaped. Bytes of a file name that are not valid text
    appear as escapes such as ``\udc80``, so that the text can always be written as UTF-8; so do characters that are not
    seen and change how others are, such as U+202E, which turns a name around.
    """
    known, side = drawn or {}, picture_side(len(run.stacks))
    views = [known.get(index) or stack_view(index + 1, stack, side) for index, stack in enumerate(run.stacks)]
    level, sentence = verdict([view.summary for view in views])
    text = load_template().render(run=run, views=views, level=level, verdict=sentence)
    return text.translate(_UNSEEN).encode("utf-8", "backslashreplace").decode("utf-8")


def picture_side(stacks: int) -> int:
    """How many pixels pictures have at most along a side in a page of so many stacks."""
    return next((side for number, side in PICTURE_SIDES if stacks <= number), SMALLEST_SIDE)


def stack_view(index: int, stack: StackReport, side: int = PICTURE_SIDES[0][1]) -> StackView:
    """Draw the section of a stack, the `index`-th of the page, counted from 1.

    The view holds what was drawn and not the pictures that it was drawn from: those of all stacks together may be many.
    """
    if stack.is_quick or not (stack.rows or stack.pictures):
        return StackView(
            anchor=f"stack-{index}",
            stack=stack,
            summary=summarise(stack),
            charts=quick_charts(stack) if stack.rows else (),
            pairs=(),
            thumbnails=(),
            flagged=tuple(row for row in stack.rows if row.flags),
        )
    flagged = tuple(row for row in stack.rows if row.flags)
    pictures = None if stack.pictures is None else stack.pictures.shrunk(side)
    stack = replace(stack, pictures=None)
    return StackView(
        anchor=f"stack-{index}",
        stack=stack,
        summary=summarise(stack),
        charts=charts(stack) if stack.rows else (),
        pairs=picture_pairs(stack, pictures) if pictures is not None else (),
        thumbnails=thumbnails(flagged, pictures, THUMBNAILS) if pictures is not None else (),
        flagged=flagged,
        figures=figures(stack),
        movie=preview(stack, pictures) if pictures is not None and side > SMALLEST_SIDE else None,
        agreement=agreement(stack) if stack.rows else None,
    )


def load_template() -> jinja2.Template:
    """The page to be filled in; made once, if need be by another thread while stacks are computed."""
    with _making:
        return _template()


@functools.cache
def _template() -> jinja2.Template:
    return _environment().get_template("report.html.j2")


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("xcorr_app.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["decimals"] = _decimals
    environment.filters["scientific"] = _scientific
    environment.filters["count"] = count
    environment.filters["grouped"] = grouped
    return environment


def _decimals(value: float | None, places: int) -> str:
    """Write a number with so many decimals, or a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{places}f}".replace("-", "−")


def _scientific(value: float | None) -> str:
    """Write a small number to two digits, or a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.2g}".replace("-", "−")
