"""One run an output folder, whoever it belongs to and however the last one ended."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from tests.batch.movies import align, files, write_movie
from xcorr_app import system
from xcorr_app.errors import OutputError
from xcorr_app.io.writing.atomic import atomic_path
from xcorr_app.pipeline.output import check_free, lock_folder, prepared_output
from xcorr_app.pipeline.state import FOLDER, LOCK

_HOLD = """
import sys
from pathlib import Path
from xcorr_app.pipeline.output import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    command = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.stdin.close()


def no_locks(*_arguments):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_the_second_is_told_who_holds_the_folder_and_since_when(tmp_path, holder):
    said = json.loads((tmp_path / FOLDER / LOCK).read_text())
    words = re.escape(f"process {holder.pid} on {socket.gethostname()}, since {said['since']}, is at work in it")
    for _ in range(2):
        with pytest.raises(OutputError, match=words), lock_folder(tmp_path):
            pass
        with pytest.raises(OutputError, match=words):
            check_free(tmp_path)
    assert json.loads((tmp_path / FOLDER / LOCK).read_text()) == said


def test_a_folder_is_free_again_and_empty_when_its_run_ends(tmp_path, holder):
    holder.communicate()
    check_free(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with lock_folder(tmp_path):
        assert (tmp_path / FOLDER / LOCK).is_file()


def test_what_a_killed_run_holds_is_taken_over(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert str(holder.pid) in (tmp_path / FOLDER / LOCK).read_text()
    check_free(tmp_path)
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / FOLDER / LOCK).read_text())["process"] == os.getpid()


def test_who_opened_a_lock_that_its_holder_then_removed_does_not_hold_the_folder(tmp_path, monkeypatch):
    """Else it holds a file without a name, and a third run another one."""
    if not system.MOVES_OPEN_FILES:
        pytest.skip("no file that is open can be removed")
    real, first = system.lock, []

    def lock(descriptor):
        if not first:
            first.append(descriptor)
            (tmp_path / FOLDER / LOCK).unlink()
        return real(descriptor)

    monkeypatch.setattr(system, "lock", lock)
    with lock_folder(tmp_path), pytest.raises(OutputError, match="at work"):
        check_free(tmp_path)


@pytest.mark.share(3)
@pytest.mark.parametrize("text", ["", "[1]", "{}", "[" * 5000, '{"process": "x"}', "\0\xff"])
def test_a_lock_that_says_nothing_still_holds(tmp_path, holder, text):
    (tmp_path / FOLDER / LOCK).write_text(text)
    with pytest.raises(OutputError, match="is at work in it"):
        check_free(tmp_path)


def test_where_there_are_no_locks_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "lock", no_locks)
    with lock_folder(tmp_path):
        check_free(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_command_ends_with_2_and_touches_nothing(tmp_path):
    stack, out = write_movie(tmp_path / "in" / "m.tif", shape=(12, 12)), tmp_path / "out"
    with prepared_output(out, resume=False, overwrite=False), atomic_path(out / "half.tif") as half:
        half.write_bytes(b"half")
        before = {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}
        for words in ([], ["--resume"], ["--overwrite"]):
            run = align(stack, "-o", out, "--report", "none", *words)
            assert run.code == 2
            assert "is at work in it" in run.stderr
            assert len(run.lines_of_error) == 1
        assert {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]} == before
    assert align(stack, "-o", out, "--report", "none", "--overwrite").code == 0
    assert not [name for name in files(out) if LOCK in name]


def test_a_folder_that_was_filled_after_the_check_is_left(tmp_path):
    (tmp_path / "a").write_text("of a run that has just ended")
    with pytest.raises(OutputError, match="is not empty"), prepared_output(tmp_path, resume=False, overwrite=False):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_overwriting_keeps_the_lock(tmp_path):
    with prepared_output(tmp_path, resume=False, overwrite=True), pytest.raises(OutputError, match="at work"):
        check_free(tmp_path)
