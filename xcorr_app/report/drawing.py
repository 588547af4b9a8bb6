"""What a run draws of one stack: its section of the page of all, and the page of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from xcorr_app.report.html import StackView, render_report, stack_view
from xcorr_app.report.page_budget import Room
from xcorr_app.report.records import RunReport, StackReport


class Drawn(NamedTuple):
    """What was drawn of a stack."""

    view: StackView
    page: bytes | None
    """Content of the page of its own, where it has one."""

    def without_rows(self) -> Self:
        """What another process need not send back."""
        bare = replace(self.view, stack=replace(self.view.stack, rows=()), flagged=())
        return self._replace(view=bare)

    def with_rows(self, stack: StackReport) -> Self:
        """Put back what `without_rows` left out."""
        rows = tuple(row for row in stack.rows if row.is_flagged)
        return self._replace(view=replace(self.view, stack=replace(stack, pictures=None), flagged=rows))


@dataclass(frozen=True)
class Section:
    """What is to be drawn of a stack.

    Attributes
    ----------
    number : int
        Its place on the page of all, counted from 1.
    stack : StackReport
    room : Room
        On the page of all.
    address : str
        Of the page of its own; empty without one.
    alone : RunReport or None
        What that page shows.
    """

    number: int
    stack: StackReport
    room: Room
    address: str = ""
    alone: RunReport | None = None

    def drawn(self) -> Drawn:
        """Draw it; the same records give the same bytes."""
        view = stack_view(self.number, self.stack, self.room, self.address)
        return Drawn(view, None if self.alone is None else render_report(self.alone).encode())
