"""Fixtures for runs of the program."""

import pytest


@pytest.fixture
def short_report(monkeypatch):
    """A page without charts, for runs of which only other results are looked at: charts take most of their time."""
    monkeypatch.setattr("xcorr_app.batch.run.render_report", lambda report: f"<title>{report.title}</title>\n")
