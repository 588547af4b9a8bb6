"""Ctrl-C: the end within two seconds, exit code 130, nothing under a final name that is not whole, and ``--resume``."""

import os
import re
import shutil
import signal
import time

import pytest

from tests.batch.movies import invoke, start, write_movie
from tests.batch.test_killed import content
from xcorr_app.cli import main


def finished(process):
    """Exit code."""
    process.communicate(timeout=120)
    return process.returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder with stacks, options of a run that takes some seconds, and what it leaves."""
    folder = tmp_path_factory.mktemp("interrupted")
    for number in range(4):
        write_movie(
            folder / "in" / f"m{number}.tif", seed=number, shape=(300, 280), drift=((0, 0), (1, 0), (2, -1)) * 8
        )
    arguments = (folder / "in", "-o", folder / "out", "--device", "cpu", "--max-shift", "40", "--report", "quick")
    for more in ((), ("--overwrite",)):  # the second run shows how long it takes
        began = time.monotonic()
        assert finished(start(*arguments, *more)) == 0
    return folder, arguments, content(folder / "out"), time.monotonic() - began


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_interrupted_at_any_moment(whole, share):
    folder, arguments, expected, seconds = whole
    out = folder / "out"
    shutil.rmtree(out)
    process = start(*arguments)
    time.sleep(seconds * share)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    # Two seconds on a machine that does nothing else.
    assert time.monotonic() - began < 8
    if process.returncode == 0:
        pytest.skip("it had finished")
    assert process.returncode in (130, -signal.SIGINT), errors
    if process.returncode == 130:
        assert re.fullmatch(r"xcorr: interrupted[^\n]*\n", errors), errors
    left = content(out) if out.exists() else {}
    assert {name: left[name] for name in left if "partial" not in name} == {
        name: expected[name] for name in left if "partial" not in name
    }
    out.mkdir(exist_ok=True)
    assert finished(start(*arguments, "--resume")) == 0
    assert content(out) == expected


def test_interrupted_while_a_file_is_brought_to_the_disk(tmp_path, monkeypatch):
    """The thread that does it sees the interruption only afterwards."""
    write_movie(tmp_path / "in" / "a.tif")
    write_movie(tmp_path / "in" / "b.tif", seed=1)
    options = ("--device", "cpu", "--report", "none")
    arguments = ("align", tmp_path / "in", "-o", tmp_path / "out", *options)
    real, synced = os.fsync, []

    def interrupt(descriptor):
        if not synced:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.3)
        synced.append(descriptor)
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        run = invoke(main, "xcorr", *arguments)
    assert run.code == 130
    left = content(tmp_path / "out")
    assert not [name for name in left if "partial" in name]
    assert invoke(main, "xcorr", *arguments, "--resume").code == 0
    after = content(tmp_path / "out")
    assert {name: after[name] for name in left} == left
