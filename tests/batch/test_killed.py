"""Killed or interrupted before any step, with a disk that is full: resumed to the same bytes."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests import share
from tests.batch.movies import content, rest_beside_what_is_whole, start, write_movie, write_movies
from tests.conftest import ROOT
from xcorr_app.io.writing import atomic

COMMANDS = [["align", "--device", "cpu"], ["filter", "--device", "cpu", "--gaussian", "1"]]


@pytest.mark.share(2)
@pytest.mark.parametrize("words", COMMANDS)
def test_killed_before_any_step_it_resumes_to_the_same_bytes(tmp_path, forker, words):
    folder, out = write_movies(tmp_path / "in", ("m0", "m1"), shape=(12, 12), drift=((0, 0), (1, 0))), tmp_path / "out"
    command = [*words, folder, "-o", out]
    _, code = forker(command, short_report=True)
    assert code == 0
    whole, steps = content(out), forker.steps
    assert steps > 40
    half_written, finished_before = 0, set()
    # A file takes six steps or more, so that each has its turn.
    killed = share.spread(range(1, steps + 1), 5)
    for n in killed:
        shutil.rmtree(out)
        _, code = forker(command, kill_at=n, short_report=True)
        assert code == -signal.SIGKILL
        half_written += bool(rest_beside_what_is_whole(out, whole))
        if n in killed[::2] or n == killed[-1]:
            _, code = forker([*command, "--resume"], short_report=True)
            assert code == 0
            assert content(out) == whole, n
            finished_before.add(len(json.loads((out / "run.json").read_text())["resumed"]))
    assert half_written > len(killed) / 4
    # Both may come to their names between two of the steps that were tried.
    assert {0, 2} <= finished_before


@pytest.mark.share(2)
@pytest.mark.parametrize(("words", "lasting"), [(COMMANDS[0], False), (COMMANDS[0], True), (COMMANDS[1], False)])
def test_whatever_the_system_refuses_nothing_is_lost(tmp_path, forker, words, lasting):
    """Opening, mapping, writing, renaming: what has a final name is whole, and resuming does the rest."""
    folder, out = write_movies(tmp_path / "in", ("m0", "m1"), shape=(12, 12), drift=((0, 0), (1, 0))), tmp_path / "out"
    command = [*words, folder, "-o", out]
    assert forker(command, short_report=True, failing=errno.EIO)[1] == 0
    whole, steps = content(out), forker.steps
    errors = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EDQUOT)
    for n in share.spread(range(1, steps + 1), 5):
        shutil.rmtree(out, ignore_errors=True)
        _, code = forker(command, kill_at=n, short_report=True, failing=errors[n % 5], lasting=lasting)
        assert code in (0, 1, 2), n
        left = content(out) if out.exists() else {}
        assert not [name for name in left if "partial" in name], n
        # Of a run in which a stack failed, these speak of it.
        assert all(left[name] == whole[name] for name in left.keys() - {"run.json", "report.html"}), n
        assert forker([*command, "--resume"], short_report=True)[1] == 0, n
        assert content(out) == whole, n


def finished(process):
    """Exit code."""
    process.communicate(timeout=120)
    return process.returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder with stacks, options of a run that takes some seconds, and what it leaves."""
    folder = tmp_path_factory.mktemp("interrupted")
    drift = ((0, 0), (1, 0), (2, -1)) * 5
    write_movies(folder / "in", ("m0", "m1", "m2", "m3"), shape=(300, 280), drift=drift)
    arguments = (folder / "in", "-o", folder / "out", "--device", "cpu", "--max-shift", "40", "--report", "quick")
    assert finished(start(*arguments)) == 0
    return folder, arguments, content(folder / "out")


SAID = {
    signal.SIGINT: "xcorr: interrupted",
    signal.SIGTERM: "xcorr: ended by SIGTERM",
    signal.SIGHUP: "xcorr: ended by SIGHUP",
}


def interrupted_and_resumed(process, arguments, expected, number):
    """Send the signal now, and check what is left and what becomes of it."""
    process.send_signal(number)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    # Two seconds on a machine that does nothing else.
    assert time.monotonic() - began < 8
    assert process.returncode in (0, 128 + number, -number), errors
    if process.returncode > 0:
        assert re.fullmatch(SAID[number] + r"[^\n]*\n", errors), errors
    out = arguments[2]
    left = content(out) if out.exists() else {}
    assert {name: left[name] for name in left if "partial" not in name} == {
        name: expected[name] for name in left if "partial" not in name
    }
    out.mkdir(exist_ok=True)
    assert finished(start(*arguments, "--resume")) == 0
    assert content(out) == expected


@pytest.fixture(autouse=True)
def signals_end_programs():
    """Tests may themselves run under nohup, or behind a shell that goes on: children would ignore the signals."""
    handlers = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("stacks", "number"), [(1, signal.SIGTERM), (0, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGHUP)]
)
def test_interrupted_once_so_many_stacks_are_finished(whole, stacks, number):
    folder, arguments, expected = whole
    out = folder / "out"
    shutil.rmtree(out)
    process = start(*arguments)
    while process.poll() is None and len(list(out.glob(".xcorr/*.json"))) < stacks:
        time.sleep(0.01)
    if stacks == 0:
        time.sleep(0.5)  # imports
    interrupted_and_resumed(process, arguments, expected, number)


_SLOW_DISK = """
import os, signal, sys, time
real, synced, seconds = os.fsync, [], float(sys.argv.pop(1))
number = int(sys.argv.pop(1))
def sync(descriptor):
    if not synced:
        synced.append(descriptor)
        os.kill(os.getpid(), number)
        time.sleep(seconds)
    real(descriptor)
os.fsync = sync
from xcorr_app.cli import main
main(prog_name="xcorr")
"""


@pytest.mark.share(3)
@pytest.mark.parametrize(("seconds", "number"), [(0.3, signal.SIGINT), (30.0, signal.SIGTERM), (0.3, signal.SIGHUP)])
def test_interrupted_while_a_file_is_brought_to_a_slow_disk(tmp_path, seconds, number):
    """The thread that does it sees the interruption only afterwards, and is not waited for if that takes long."""
    write_movie(tmp_path / "in" / "a.tif")
    write_movie(tmp_path / "in" / "b.tif", seed=1)
    arguments = (tmp_path / "in", "-o", tmp_path / "out", "--device", "cpu", "--report", "none")
    words = [sys.executable, "-c", _SLOW_DISK, str(seconds), str(int(number)), "align", *map(str, arguments)]
    began = time.monotonic()
    # What is imported takes a part of this.
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert time.monotonic() - began < 20
    assert run.returncode == 128 + number, run
    assert re.fullmatch(SAID[number] + r"; nothing half-written was left\n", run.stderr), run
    left = {name for name in content(tmp_path / "out") if "partial" not in name}
    assert finished(start(*arguments, "--resume")) == 0
    after = content(tmp_path / "out")
    assert left <= set(after)
    assert not [name for name in after if "partial" in name]


@pytest.mark.usefixtures("short_report")
def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """What a crash of the machine leaves is not what a killed process leaves: only fsync makes it last."""
    done = []
    real_sync, real_replace = os.fsync, atomic.Path.replace

    def sync(descriptor):
        done.append(os.fstat(descriptor).st_ino)
        real_sync(descriptor)

    def replace(path, target):
        done.append("renamed")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(atomic.Path, "replace", replace)
    with atomic.atomic_path(tmp_path / "final") as partial:
        partial.write_bytes(b"content")
    assert done == [(tmp_path / "final").stat().st_ino, "renamed", tmp_path.stat().st_ino]
