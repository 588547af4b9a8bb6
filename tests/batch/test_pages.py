"""Pages of many stacks, pictures of projections, how to repeat a run."""

import re
import shlex
from urllib.parse import unquote

import numpy as np
import pytest

from tests.batch.movies import align, write_movie
from tests.registration.scenes import drifting
from xcorr_app.batch.align.projections import Projections
from xcorr_app.pipeline.state import read_record
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.interpolation import inside_each

NAMES = ("a", "b c", "d", "e")


def pages(out):
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("report.html"))}


def test_each_of_many_stacks_has_a_page_with_all_of_it(tmp_path):
    for seed, name in enumerate(NAMES):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=seed)
    (tmp_path / "in" / "broken.tif").write_bytes(b"II*\0")
    out = tmp_path / "out"
    assert align(tmp_path / "in", "-o", out, "--layout", "stacks").code == 1
    found = pages(out)
    assert list(found) == ["a/report.html", "b c/report.html", "d/report.html", "e/report.html", "report.html"]
    links = re.findall(r'href="([^"#][^"]*)"', found["report.html"].decode())
    names = ("a", "b%20c", "d", "e")
    assert [link for link in links if link.endswith(".html")] == [f"{name}/report.html" for name in names]
    assert [link for link in links if link.endswith(".csv")] == [f"{name}/shifts.csv" for name in names]
    assert all((out / unquote(link)).is_file() for link in links)
    assert "xcorr align" in found["report.html"].decode()
    text = found["b c/report.html"].decode()
    assert "<title>b c</title>" in text
    assert "Score of each frame" in text
    assert "a/report.html" not in text
    # What was there before is the same, drawn from what is kept.
    assert align(tmp_path / "in", "-o", out, "--layout", "stacks", "--resume").code == 1
    assert pages(out) == found
    assert align(tmp_path / "in", "-o", tmp_path / "none", "--layout", "stacks", "--report", "none").code == 1
    assert pages(tmp_path / "none") == {}
    assert align(tmp_path / "in", "-o", tmp_path / "quick", "--layout", "stacks", "--report", "quick").code == 1
    assert list(pages(tmp_path / "quick")) == ["report.html"]
    assert align(tmp_path / "in" / "a.tif", "-o", out, "--overwrite").code == 0
    assert list(pages(out)) == ["report.html"]


SHAPE = (41, 53)
SHIFTS = np.array([[0, 0], [2.5, -1], [-3, 4.25], [20, 0], [0.3, 0.3], [100, 0], [1, 1]])


def covered(values):
    """NaN in place of what each frame does not cover."""
    out = np.full(values.shape, np.nan)
    for frame, image, (dy, dx) in zip(out, values, SHIFTS, strict=True):
        part = tuple(
            slice(*map(int, inside_each(size, np.asarray(by)))) for size, by in zip(SHAPE, (dy, dx), strict=True)
        )
        frame[part] = image[part]
    return np.where(np.isfinite(out), out, np.nan)


@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "float32", "float64"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_pictures_are_the_definition(xp, dtype, mode):
    before = (60 + 20 * drifting(np.zeros((7, 2)), SHAPE) + np.arange(7)[:, None, None]).astype(dtype)
    if dtype[0] == "f":
        before[3, 10:13, 10:13], before[1, 0, 0] = np.nan, np.inf
        before[2, [0, -1], 20] = np.nan  # with `nearest` beyond what was moved there as well
    after = shift_frames(before, SHIFTS, mode=mode)[0]
    gathered = Projections(SHAPE, SHIFTS, [1, 4])
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        gathered.add(list(range(start, stop)), xp.asarray(before[start:stop]), xp.asarray(after[start:stop]))
    found = gathered.pictures()
    was = np.where(np.isfinite(before.astype(float)), before, np.nan)
    np.testing.assert_allclose(found.mean_before, np.nanmean(was, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.mean_after, np.nanmean(covered(after), axis=0), rtol=1e-5)
    assert sorted(found.thumbnails) == [1, 4]
    assert found.preview is not None
    assert found.preview.shape == (7, 2, *SHAPE)
    assert (found.preview[5, 1] == 0).all()


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
