"""Fixtures for runs of the program."""

import json
import subprocess
import sys

import pytest

from tests.batch.short_report import shorten_report
from tests.conftest import ROOT


@pytest.fixture
def short_report(monkeypatch):
    """A page without charts."""
    shorten_report(monkeypatch)


@pytest.fixture
def forker(tmp_path):
    """Runs a command in a child that can be killed: returns the seconds it ran, and its exit code.

    ``forker.steps`` is how many changes the last child made to files below `tmp_path`, unless it was killed.
    """
    command = [sys.executable, "-m", "tests.batch.forker", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def run(arguments, kill_after=None, kill_at=None, *, short_report=False):
            words = [str(argument) for argument in arguments]
            process.stdin.write(json.dumps([words, kill_after, kill_at, short_report]) + "\n")
            process.stdin.flush()
            seconds, code, run.steps = json.loads(process.stdout.readline())
            return seconds, code

        yield run
        process.stdin.close()
