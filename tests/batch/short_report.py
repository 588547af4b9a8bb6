"""A page without charts, for runs of which only other results are looked at: charts take most of their time."""

from __future__ import annotations

from contextlib import nullcontext

import pytest


def shorten_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what draws the page, and start no process for it."""
    monkeypatch.setattr("xcorr_app.report.drawer.start_drawer", nullcontext)
    monkeypatch.setattr("xcorr_app.batch.align.run.render_report", lambda report: f"<title>{report.title}</title>\n")
