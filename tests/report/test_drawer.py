"""Sections of the report drawn by processes of their own are those that are drawn here."""

import os
import signal
import time

import pytest

from tests.report import builders
from xcorr_app.report.drawer import Drawer
from xcorr_app.report.html import render_report


def make_run():
    flagged = tuple(builders.row(frame, flags=("edge",) if frame == 2 else ()) for frame in range(5))
    drawn = builders.stack("a", rows=flagged, pictures=builders.pictures(flagged=(2,)))
    return builders.run(drawn, builders.failed(), builders.stack("c"), builders.stack("d", is_quick=True))


@pytest.fixture
def drawer():
    with Drawer(2) as drawer:
        yield drawer


def test_the_page_is_the_same(drawer):
    run = make_run()
    for number, stack in enumerate(run.stacks):
        drawer.submit(number, stack)
    views = drawer.views()
    assert set(views) == set(range(len(run.stacks)))
    assert render_report(run, views) == render_report(run)


def test_a_process_that_dies_leaves_its_sections_to_be_drawn_here(drawer):
    run = make_run()
    for process in drawer._processes:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    for number, stack in enumerate(run.stacks):
        drawer.submit(number, stack)
    views = drawer.views()
    assert views == {}
    assert render_report(run, views) == render_report(run)


def test_it_ends_at_once_whatever_is_left_to_do():
    began = time.monotonic()
    with Drawer(1) as drawer:
        for number in range(50):
            drawer.submit(number, make_run().stacks[0])
    assert time.monotonic() - began < 5
    assert all(process.poll() is not None for process in drawer._processes)
