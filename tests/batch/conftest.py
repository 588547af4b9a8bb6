"""Fixtures for runs of the program."""

import pytest

from tests.batch.forking import forking
from tests.batch.short_report import shorten_report


@pytest.fixture
def short_report(monkeypatch):
    """A page without charts."""
    shorten_report(monkeypatch)


@pytest.fixture
def forker(tmp_path):
    """Runs a command in a child that can be killed; see `forking`."""
    with forking(tmp_path) as run:
        yield run
