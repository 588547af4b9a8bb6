"""What is printed, where, and how much of it."""

import os
import pty
import shlex
import subprocess
import sys

import pytest

from tests.batch.movies import align, write_movie, xcorr
from tests.conftest import ROOT
from xcorr_app.cli.printing import tables


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    return write_movie(tmp_path_factory.mktemp("printing") / "m.tif")


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
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcdefg":
        write_movie(folder / f"{name}.tif")
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
