"""Where results may go, and what happens to what lies there."""

import json
import shutil

import numpy as np
import pytest
import xxhash

from tests.batch.movies import align, files, record, refused, write_movie, xcorr
from xcorr_app.batch.align import run as align_run
from xcorr_app.gpu.runtime.select import Device

pytestmark = pytest.mark.usefixtures("short_report")


def content(out):
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", ["", "inside", "inside/deeper", "../in/x", "link"])
def test_inside_or_equal_to_the_input_is_refused(tmp_path, folder, place):
    (tmp_path / "link").symlink_to(folder)
    out = tmp_path / "link" / "x" if place == "link" else folder / place
    before = content(folder)
    for more in ([], ["--overwrite"], ["--resume"]):
        refused(align(folder, "-o", out, *more), "lies in the input folder", "-o")
    assert content(folder) == before


def test_inside_the_folder_that_links_lead_to_is_refused(tmp_path):
    (tmp_path / "links").mkdir()
    for number in range(3):
        path = write_movie(tmp_path / "real" / f"x_{number}.tif", drift=((0, 0),))
        (tmp_path / "links" / path.name).symlink_to(path)
    for inputs in (sorted((tmp_path / "links").iterdir()), [tmp_path / "links"]):
        refused(align(*inputs, "-o", tmp_path / "real" / "out"), f"lies in the input folder {tmp_path / 'real'}")
    assert files(tmp_path / "real") == {"x_0.tif", "x_1.tif", "x_2.tif"}


def test_series_that_would_be_written_beside_itself_is_refused(tmp_path):
    write_movie(tmp_path / "s" / "s.tif")
    refused(align(tmp_path / "s" / "s.tif", "-o", tmp_path, "--overwrite"), "holds the input itself")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "s").symlink_to(tmp_path / "s")
    refused(align(tmp_path / "s" / "s.tif", "-o", tmp_path / "out", "--overwrite"), "holds the input itself")
    assert files(tmp_path / "s") == {"s.tif"}


def test_results_are_not_taken_for_input_of_the_same_place(tmp_path, folder):
    assert align(folder / "*.tif", "-o", tmp_path / "all" / "out").code == 0
    for more in ("--resume", "--overwrite"):
        run = align(tmp_path / "all" / "*", "-o", tmp_path / "all" / "out", more)
        refused(run, "holds results of an earlier run", "choose another -o")
    for named in (out := tmp_path / "all" / "out", tmp_path / "all" / "o*", tmp_path / "a*" / "out"):
        run = align(named, "-o", tmp_path / "again")
        refused(run, f"{out}: is an output folder of xcorr align", f"as {out / 'a'}")
        assert not (tmp_path / "again").exists()
    assert align(out / "a", "-o", tmp_path / "again").code == 0
    assert align(out / "*" / "*_aligned.tif", "-o", tmp_path / "both").code == 0
    (out / ".xcorr" / "a.json").unlink()  # of a stack that no run knows
    assert align(out / "a" / "a_aligned.tif", "-o", tmp_path / "one").code == 0


def test_a_file_is_refused(tmp_path, folder):
    (tmp_path / "file").write_text("precious")
    refused(align(folder, "-o", tmp_path / "file", "--overwrite"), "is a file; -o names a folder")
    refused(align(folder, "-o", tmp_path / "file" / "below", "--overwrite"), "file/below: cannot be written")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("out", ["/proc/xcorr", "/sys/xcorr/out"])
def test_place_where_nothing_can_be_written(folder, out):
    refused(align(folder, "-o", out), f"{out}: cannot be written")


def test_not_empty_is_refused_without_resume_or_overwrite(tmp_path, folder):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("precious")
    for more in ([], ["--explain"]):
        refused(align(folder, "-o", tmp_path / "out", *more), "is not empty", "--resume", "--overwrite")
    assert files(tmp_path / "out") == {"notes.txt"}
    assert align(folder, "-o", tmp_path / "out", "--overwrite").code == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "precious"


def test_resume_keeps_what_is_finished(tmp_path, folder):
    assert align(folder, "-o", tmp_path / "out").code == 0
    before = content(tmp_path / "out")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*")}
    run = align(folder, "-o", tmp_path / "out", "--resume")
    assert run.code == 0
    assert "Finished before: a, b" in run.stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*")} == stamps
    after = content(tmp_path / "out")
    assert after.pop("run.json") != before.pop("run.json")
    assert after == before
    assert record(tmp_path / "out")["resumed"] == ["a", "b"]


def test_what_another_device_has_done_is_done_anew(tmp_path, folder, monkeypatch):
    """Devices differ in their last digits: of a run that goes on elsewhere, all stacks are of one device."""
    options = [folder, "-o", tmp_path / "out"]
    assert align(*options).code == 0
    monkeypatch.setattr(align_run, "select_device", lambda _: Device(np, "another CPU"))
    assert align(*options, "--resume").code == 0
    assert record(tmp_path / "out")["resumed"] == []
    assert align(*options, "--resume").code == 0
    assert record(tmp_path / "out")["resumed"] == ["a", "b"]


CHANGED = {
    "input": lambda place: write_movie(place / "in" / "a.tif", seed=7),
    "named": lambda place: (
        write_movie(place / "reference.tif", drift=((1, 0),)),
        (place / "taps.csv").write_text("1,3,1\n"),
    ),
    "output": lambda place: [path.write_bytes(b"II*\0") for path in (place / "out" / "a").glob("*.*")][:1],
    "record": lambda place: (place / "out" / ".xcorr" / "a.json").write_text("\0"),
    "facts": lambda place: (place / "out" / ".xcorr" / "a.json").write_text(
        json.dumps(json.loads((place / "out" / ".xcorr" / "a.json").read_text()) | {"facts": None})
    ),
    "pictures": lambda place: (place / "out" / ".xcorr" / "a.html").write_bytes(b"\x00\x01"),
    "pictures of another": lambda place: [
        (place / "out" / ".xcorr" / "a.html").write_bytes(path.read_bytes())
        for path in (place / "out" / ".xcorr").glob("b.html")
    ],
}


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize(
    ("command", "named"), [("align", ("--reference", "reference.tif")), ("filter", ("--taps", "taps.csv"))]
)
def test_resume_does_anew_what_no_longer_holds(tmp_path, folder, monkeypatch, command, named, change):
    monkeypatch.chdir(tmp_path)
    write_movie(tmp_path / "reference.tif", drift=((0, 0),))
    (tmp_path / "taps.csv").write_text("1,2,1\n")
    words = (command, folder, "--device", "cpu", *named, "-o")
    xcorr(*words, "out")
    CHANGED[change](tmp_path)
    xcorr(*words, "out", "--resume")
    anew = "ab" if change == "named" else "" if command == "filter" and "pictures" in change else "a"
    assert record(tmp_path / "out")["resumed"] == [name for name in "ab" if name not in anew]
    xcorr(*words, "fresh")
    ours, fresh = content(tmp_path / "out"), content(tmp_path / "fresh")
    results = {name for name in fresh if name.endswith((".csv", ".tif", "report.html"))}
    assert {name: ours[name] for name in results} == {name: fresh[name] for name in results}


@pytest.mark.parametrize("name", ["a", ".xcorr"])
def test_nothing_is_written_through_links(tmp_path, folder, name):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    out.mkdir()
    (out / name).symlink_to(elsewhere)
    run = align(folder, "-o", out, "--overwrite")
    assert run.code == (1 if name == "a" else 2)
    assert "is a link, and results would be written where it leads" in " ".join((run.stdout + run.stderr).split())
    assert not list(elsewhere.iterdir())


def test_a_folder_of_another_run_is_refused_with_what_differs(tmp_path, folder):
    other, out = write_movie(tmp_path / "other" / "c.tif"), tmp_path / "out"
    assert align(folder, "-o", out).code == 0
    before = content(out)
    for more in ([], ["--resume"]):
        refused(
            align(other, "-o", out, *more), f"holds a run over {folder}", "left out now", "another -o, or --overwrite"
        )
        refused(align(folder, "-o", out, "--interpolation", "cubic", *more), 'interpolation "linear", not "cubic"')
    for name in ("report.html", "run.json"):
        (out / name).unlink()  # as of a run that was killed
    refused(align(other, "-o", out, "--resume"), f"holds a run over {folder}")
    shutil.rmtree(out / ".xcorr")
    for name in ("report.html", "run.json"):
        (out / name).write_bytes(before[name])
    refused(align(other, "-o", out, "--resume"), f"holds a run over {folder}")
    assert align(folder, other, "-o", out, "--resume").code == 0
    assert list(record(out)["stacks"]) == ["a", "b", "c"]
    refused(xcorr("filter", folder, "-o", out, "--box", "3", "--resume"), "results of `xcorr align`")


def test_results_of_an_earlier_run_never_lie_beside_new_ones(tmp_path, folder):
    assert align(folder, "-o", tmp_path / "out").code == 0
    assert align(folder, "-o", tmp_path / "out", "--overwrite", "--no-apply").code == 0
    assert files(tmp_path / "out") == {"a/shifts.csv", "b/shifts.csv", "report.html", "run.json"}
    assert align(folder, "-o", tmp_path / "out", "--no-apply", "--resume").code == 0
    assert align(folder, "-o", tmp_path / "out", "--overwrite", "--reference", "99").code == 1
    assert files(tmp_path / "out") == {"report.html", "run.json"}


def test_record_of_a_run(tmp_path, folder):
    assert align(folder, "-o", tmp_path / "out", "--max-shift", "9,7").code == 0
    known = record(tmp_path / "out")
    assert json.dumps(known, allow_nan=False)
    assert known["parameters"]["max_shift"] == [9, 7]
    assert known["device"] == "CPU"
    assert known["inputs"] == [str(folder)]
    assert {"python", "numpy", "tifffile", "xcorr-app"} <= set(known["versions"])
    assert known["versions"]["numpy"] == np.__version__
    env = xcorr("env").stdout
    for name, version in known["versions"].items():
        assert any(line.split() == [name, version] for line in env.splitlines()), name
    assert known["processor"].endswith("cores")
    assert known["processor"] in env
    assert known["failed"] is False
    for name in "ab":
        facts, path = known["stacks"][name], folder / f"{name}.tif"
        assert facts["inputs"] == {str(path): xxhash.xxh3_128(path.read_bytes()).hexdigest()}
        assert set(facts["seconds"]) == {"measure", "move", "assess"}
        assert all(seconds >= 0 for seconds in facts["seconds"].values())
        assert (facts["frames"], facts["engine"]) == (4, "fft")


def test_a_folder_of_an_earlier_version_is_not_continued(tmp_path, folder):
    out = tmp_path / "out"
    assert align(folder, "-o", out).code == 0
    for path in (out / "run.json", out / ".xcorr" / "run"):
        known = json.loads(path.read_text())
        del known["record_version"]
        path.write_text(json.dumps(known))
    refused(align(folder, "-o", out, "--resume"), "results of another version of xcorr", "or --overwrite")
    assert align(folder, "-o", out, "--overwrite").code == 0
    assert align(folder, "-o", out, "--resume").code == 0
