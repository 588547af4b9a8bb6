"""Fixtures for runs of the program."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.fixture
def short_report(monkeypatch):
    """A page without charts, for runs of which only other results are looked at: charts take most of their time."""
    monkeypatch.setattr("xcorr_app.batch.align.run.render_report", lambda report: f"<title>{report.title}</title>\n")


@pytest.fixture
def forker():
    """Runs a command in a child that can be killed: returns the seconds it ran, and its exit code."""
    command = [sys.executable, "-m", "tests.batch.forker"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def run(arguments, kill_after=None):
            process.stdin.write(json.dumps([[str(argument) for argument in arguments], kill_after]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()
