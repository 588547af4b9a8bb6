"""The command line that repeats a run: read again, it asks for the same."""

import shlex

import numpy as np
import pytest

from tests.batch.movies import align, refused, write_movie
from xcorr_app.pipeline.state import read_record


@pytest.mark.parametrize(
    "words",
    [
        "-m 5,6 -r 2 --no-apply",
        "--roi 4:36,3:45 --subpixel dft:20 --verify none --smooth-time 2",
        "--roi :36,3: --border reflect",
        "--border nearest --interpolation cubic --doubtful drop --channel 0 --min-overlap 0.4",
        "--prefilter gaussian:1.5 --report quick",
    ],
)
def test_the_report_says_how_to_repeat_it(tmp_path, monkeypatch, words):
    """Also of a movie whose name begins as options do."""
    monkeypatch.chdir(tmp_path)
    write_movie(tmp_path / "-m.tif")
    align("-o", tmp_path / "a", *words.split(), "--", "-m.tif")
    page = (tmp_path / "a" / "report.html").read_text()
    line = page.split("To repeat it: <code>")[1].split("</code>")[0]
    program, command, named, *rest = shlex.split(line)
    assert (program, command, named, rest[:2]) == ("xcorr", "align", "./-m.tif", ["-o", "OUT"])
    align(named, "-o", tmp_path / "b", *rest[2:])
    first, second = (read_record(tmp_path / name / "run.json")["parameters"] for name in "ab")
    assert first == second
    assert np.array_equal(*((tmp_path / name / "-m" / "shifts.csv").read_bytes() for name in "ab"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--motion rigid --patch 64", "--patch goes with --motion patches:64, not rigid"),
        ("--format ome-tiff --pyramid 3", "--pyramid goes with --format ome-zarr:3, not ome-tiff"),
        ("--channel R --align-channel 1", "--align-channel goes with --channel 1, not R"),
    ],
)
def test_a_former_option_overrules_no_other(tmp_path, words, says):
    refused(align(write_movie(tmp_path / "m.tif"), "-o", tmp_path / "a", *words.split()), says)
