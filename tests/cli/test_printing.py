"""What commands print, odd places and odd data."""

import contextlib
import io
import itertools
import os
import pty
import shlex
import subprocess
import sys

import h5py
import numpy as np
import pytest

from tests.batch.movies import align, movie, record, refused, start, write_movie, write_movies, xcorr
from tests.conftest import ROOT
from tests.io.samples import write_plain
from xcorr_app.cli.printing import progress, tables
from xcorr_app.cli.printing.tables import console_for, print_found
from xcorr_app.io import discover


def test_quiet_normal_verbose(tmp_path, stack):
    quiet = align(stack, "-o", tmp_path / "q", "-q")
    normal = align(stack, "-o", tmp_path / "n").stdout
    verbose = align(stack, "-o", tmp_path / "v", "-v").stdout
    assert (quiet.code, quiet.stdout, quiet.stderr) == (0, "", "")
    assert f"Report: {tmp_path / 'n' / 'report.html'}" in normal
    assert "Found 1 stack in 1 file, layout stacks." in normal
    assert len(normal.splitlines()) < len(verbose.splitlines())
    rows = [
        line.split()
        for line in verbose.splitlines()
        if line.split()[:1] in (["0"], ["1"], ["2"], ["3"]) and line.split()[1:2] != ["of"]
    ]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    assert float(rows[3][1]) == pytest.approx(3, abs=0.02)


@pytest.mark.parametrize("command", [("align", "--device", "cpu"), ("filter", "--box", "3", "--device", "cpu")])
def test_of_many_stacks_the_table_has_those_that_are_not_good(tmp_path, command, monkeypatch):
    monkeypatch.setattr(tables, "_MAX_ROWS", 4)
    folder = write_movies(tmp_path / "in", "abcdefg")
    (folder / "d.tif").write_bytes((folder / "d.tif").read_bytes()[:3000])
    said = xcorr(*command, folder, "-o", tmp_path / "out").stdout
    rows = [line.split() for line in said.splitlines() if line[:2] in ("a ", "d ", "d.")]
    assert "6 of 7 stacks are good; the others:" in said
    assert [(row[0], row[-1]) for row in rows] == [("d.tif", "failed")]
    if command[0] == "align":  # the window of the default, said once
        assert said.count("were searched") == 1
        assert "a, b, c and 3 others: Shifts up to" in said


@pytest.mark.parametrize("command", [("align",), ("filter", "--box", "3"), ("unmix", "--stain", "he"), ("apply",)])
def test_quiet_names_what_failed_and_nothing_else(tmp_path, stack, command):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.tif").write_bytes(stack.read_bytes())
    (folder / "broken.tif").write_bytes(stack.read_bytes()[:-3000])
    name, *options = command
    if name == "apply":
        (tmp_path / "shifts.csv").write_text("dy,dx\n0,0\n1,1\n2,2\n3,3\n")
        options = [tmp_path / "shifts.csv"]
    run = xcorr(name, *options, folder, "-o", tmp_path / "out", "-q", *(["--layout", "stacks"]))
    assert run.code == 1
    assert run.stdout == ""
    assert [line for line in run.lines_of_error if "broken" in line]
    assert all(line.startswith("xcorr: ") for line in run.lines_of_error)
    assert len(run.lines_of_error) == (2 if name == "unmix" else 1)  # one channel has no stains


def test_terminal_shows_a_bar_and_leaves_the_table(tmp_path, stack):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xcorr_app", "align", "--device", "cpu", str(stack), "-o", str(tmp_path / "out")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 65536):
                shown += block
        except OSError:
            pass  # Linux ends a terminal whose other side is closed with an error
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode()
    assert "Report:" in text
    assert "\x1b[" in text
    assert "Traceback" not in text


def test_standard_output_that_cannot_be_written(tmp_path, stack):
    command = [sys.executable, "-m", "xcorr_app", "align", "--device", "cpu", str(stack), "-o", str(tmp_path / "out")]
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr == "xcorr: standard output cannot be written (No space left on device); the run goes on\n"
    assert list((tmp_path / "out").glob("*/shifts.csv"))


@pytest.mark.share(2)
@pytest.mark.parametrize("command", [("align", "--no-apply"), ("correlate", "--form", "n-to-m")])
def test_a_closed_standard_output_does_not_stop_a_run(tmp_path, stack, command):
    name, *options = command
    words = [sys.executable, "-m", "xcorr_app", name, *options, stack, *([stack] if name == "correlate" else [])]
    line = shlex.join([*map(str, words), "-o", str(tmp_path / "out.npy"), "--device", "cpu"]) + " >&-"
    run = subprocess.run(["sh", "-c", line], cwd=ROOT, text=True, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "out.npy").exists()


def test_an_array_of_a_file_named_without_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("movie.h5", "w") as file:
        file["data"], file["other"] = movie(), movie(seed=1)
    assert xcorr("filter", "--device", "cpu", "movie.h5:/data", "-o", "out", "--box", 1).code == 0
    assert list(record(tmp_path / "out")["stacks"]) == ["movie_data"]
    for name in ("none.h5:/data", "none.lif:/2", "none.nd2:/0", "none.czi:/1"):
        refused(xcorr("filter", name, "-o", "no", "--box", 1), f"{name}: does not exist")


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


def test_progress_of_a_run_never_falls_and_ends_at_its_frames(monkeypatch):
    shown, counts = [], {"a": 10, "finished before": 3, "b": 4}
    monkeypatch.setattr(progress, "_lines", lambda *_: contextlib.nullcontext(lambda *what: shown.append(what)))
    with progress.display_for(console_for(io.StringIO()), quiet=False, counts=counts, halves=True) as watch:
        for name, take in ((name, watch(name)) for name in ("a", "b")):
            for stage, done in itertools.product(("measure", "measure", "move"), range(counts[name] + 1)):
                take(stage, done, counts[name])
    numbers = [done for _, done, _ in shown]
    assert (numbers[0], numbers[-1]) == (0, 17)
    assert numbers == sorted(numbers)
    assert {done for what, done, _ in shown if what == "b: move"} == {15, 16, 17}


def extremes():
    """Float stacks: name and frames."""
    for dtype, factors in (("float32", (1e-42, 1e-30, 1e30, 1e35)), ("float64", (1e-310, 1e-30, 1e30, 1e300))):
        for factor in factors:
            yield f"{dtype}_{factor:g}", (movie(dtype="float64") * factor).astype(dtype)
        frames = movie(dtype=dtype)
        frames[0], frames[0, 0, 0] = np.finfo(dtype).max, -np.finfo(dtype).max
        frames[1, 0], frames[2] = np.inf, np.nan
        frames[3, :20], frames[3, 20:] = np.inf, -np.inf
        yield f"{dtype}_limits", frames


@pytest.mark.share(2)
@pytest.mark.parametrize("options", [(), ("--interpolation", "cubic", "--border", "crop", "--reference", "mean")])
def test_odd_data_pass_with_warnings_as_errors(tmp_path, options):
    folder = tmp_path / "in"
    folder.mkdir()
    for shape in ((1, 1), (1, 30), (30, 1), (2, 2)):
        frames = np.arange(3 * shape[0] * shape[1], dtype=np.uint8).reshape(3, *shape)
        write_plain(folder / f"tiny_{shape[0]}_{shape[1]}.tif", frames)
    for name, frames in extremes():
        write_plain(folder / f"{name}.tif", frames)
    write_plain(folder / "constant.tif", np.full((3, 20, 20), 7, np.uint16))
    with start("--layout", "stacks", "--device", "cpu", folder, "-o", tmp_path / "out", *options) as process:
        stdout, stderr = process.communicate()
    assert stderr == ""
    assert "Warning" not in stdout
    assert "this is a defect" not in stdout
    assert process.returncode == 1  # for the frames that hold nothing
    assert len(list((tmp_path / "out").glob("*/shifts.csv"))) == len(list(folder.iterdir()))
