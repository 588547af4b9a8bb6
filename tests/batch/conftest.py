"""Fixtures for runs of the program."""

import pytest

from tests.batch.forking import forking
from tests.batch.movies import write_movies
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


@pytest.fixture
def folder(tmp_path):
    """A folder of two movies."""
    return write_movies(tmp_path / "in", "ab")
