"""A page without charts, for runs of which only other results are looked at: charts take most of their time."""

import pytest


def shorten_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what draws a stack, and the page."""
    monkeypatch.setattr("xcorr_app.batch.align.run.render_section", lambda stack, *_, **__: stack.name)
    monkeypatch.setattr(
        "xcorr_app.batch.align.run.render_report", lambda report, *_: f"<title>{report.title}</title>\n"
    )
