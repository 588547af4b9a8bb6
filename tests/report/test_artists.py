"""Stacks drawn by other processes: the same bytes, whoever draws, and whatever becomes of a process."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.builders import pictures, preview, row, run, stack
from xcorr_app.report import artists as artists_module
from xcorr_app.report.artists import Artists
from xcorr_app.report.drawing import Section
from xcorr_app.report.page_budget import room_for


def sections(count=3):
    rows = (*(row(frame) for frame in range(7)), row(7, flags=("edge",)))
    shown = replace(pictures((40, 50), 8, flagged=(7,)), preview=preview())
    stacks = [stack(f"s{number}", rows, pictures=shown) for number in range(count)]
    return [
        Section(number, one, room_for(30), f"{one.name}/report.html", run(one)) for number, one in enumerate(stacks, 1)
    ]


def test_other_processes_draw_the_same():
    asked = sections()
    with Artists() as artists:
        artists.begin()
        with ThreadPoolExecutor(2) as threads:
            drawn = list(threads.map(artists.draw, asked))
    for section, (view, page) in zip(asked, drawn, strict=True):
        here = section.drawn()
        assert page == here.page
        assert view == here.view
        assert view.flagged  # otherwise nothing was put back


def test_without_a_page_of_its_own_there_is_none():
    (section,) = sections(1)
    with Artists() as artists:
        assert artists.draw(replace(section, alone=None)).page is None


def test_where_a_process_dies_it_is_drawn_here():
    (section,) = sections(1)
    with Artists() as artists:
        artists.begin()
        artists._all[0]._process.kill()
        assert artists.draw(section) == section.drawn()
        assert artists.draw(section) == section.drawn()  # by the next one
        assert artists._all[1]._process.poll() is None


@pytest.mark.parametrize("program", ["import sys; sys.exit(1)", "print('no pickle', flush=True)"])
def test_where_a_process_does_not_answer_it_is_drawn_here(monkeypatch, program):
    monkeypatch.setattr(artists_module, "_PROGRAM", program)
    (section,) = sections(1)
    with Artists() as artists:
        assert artists.draw(section) == section.drawn()


def test_where_none_can_be_started_it_is_drawn_here(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    (section,) = sections(1)
    with Artists() as artists:
        artists.begin()
        assert artists.draw(section) == section.drawn()


def test_no_process_is_left():
    with Artists() as artists:
        artists.draw(sections(1)[0])
        (process,) = [artist._process for artist in artists._all]
        assert process.poll() is None
    assert process.poll() is not None


def test_a_process_ends_with_the_one_that_started_it():
    program = (
        "import os, time; from xcorr_app.report.artists import Artists; a = Artists(); a.begin(); "
        "print(a._all[0]._process.pid, flush=True); os._exit(0)"
    )
    found = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_running(int(found.stdout)):
        time.sleep(0.05)
    assert not is_running(int(found.stdout))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
