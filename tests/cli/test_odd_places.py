"""Commands in odd places: names like addresses, pipes that are closed, narrow terminals, workers that do not start."""

import io
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

from tests.batch.movies import align, movie, record, refused, write_movie, xcorr
from tests.conftest import ROOT
from xcorr_app.cli.printing.tables import console_for, print_found
from xcorr_app.io import discover


def test_an_array_of_a_file_named_without_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("movie.h5", "w") as file:
        file["data"], file["other"] = movie(), movie(seed=1)
    assert xcorr("filter", "--device", "cpu", "movie.h5:/data", "-o", "out", "--box", 1).code == 0
    assert list(record(tmp_path / "out")["stacks"]) == ["movie_data"]
    for name in ("none.h5:/data", "none.lif:/2", "none.nd2:/0", "none.czi:/1"):
        refused(xcorr("filter", name, "-o", "no", "--box", 1), f"{name}: does not exist")


def test_shifts_beyond_the_frame_are_refused(tmp_path):
    stack = write_movie(tmp_path / "m.tif")
    (tmp_path / "t.csv").write_text("dy,dx\n0,0\n1,1\n2,2\n3,3\n")
    run = xcorr("apply", "--device", "cpu", tmp_path / "t.csv", stack, "-o", tmp_path / "out", "--scale", "1e300")
    assert run.code == 1
    assert "would move a frame by 4.24e+300 px, and nothing of it would be left" in " ".join(run.stdout.split())
    assert max(map(len, run.stdout.splitlines())) < 250


@pytest.mark.parametrize("command", ["filter", "align"])
def test_a_reader_who_has_seen_enough_ends_nothing(tmp_path, command):
    stack = write_movie(tmp_path / "m.tif")
    words = [command, stack, "-o", tmp_path / "out", "--device", "cpu"]
    words += ["--box", "1"] if command == "filter" else ["--max-shift", "6", "--report", "none"]
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "xcorr_app", *words], cwd=ROOT, stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (0, b"")
    assert record(tmp_path / "out")["failed"] is False


def test_a_narrow_terminal_cuts_no_number(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "20")
    found = Terminal()
    print_found(console_for(found), discover(write_movie(tmp_path / "m.tif")), None)
    assert "Found 1 stack in 1 file, layout stacks." in found.getvalue()
    assert console_for(found).width >= 100


def test_a_small_part_of_large_shifts_is_measured(shared_data, tmp_path):
    run = align(
        shared_data / "pc12" / "pc12-unreg.tif", "-o", tmp_path / "out", "--roi", "10:20,10:20", "--max-shift", 10
    )
    assert run.code == 1
    assert "could not be trusted" in run.stdout


def test_workers_that_end_while_they_start_are_told_in_a_line(tmp_path):
    pytest.importorskip("distributed")
    stack = write_movie(tmp_path / "in" / "m.tif")
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "words = ' '.join(sys.orig_argv)\n"
        "if 'spawn_main' in words and 'resource_tracker' not in words: os._exit(3)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "xcorr_app", "align", stack, "-o", tmp_path / "out", "--cluster", "local:2"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "a worker ended while it started" in done.stderr
    np.testing.assert_array_equal([path.name for path in (tmp_path / "out").glob("*.json")], [])
