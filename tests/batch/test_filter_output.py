"""Where results of ``xcorr filter`` may go, how a run is resumed, and what a kill or a full disk leaves behind."""

import json

import pytest

from tests.batch.filter_runs import filtering
from tests.batch.movies import files, record, refused, write_movie
from tests.batch.test_disk_full import Disk
from tests.batch.test_output_folder import content as stored


@pytest.fixture
def folder(tmp_path):
    write_movie(tmp_path / "in" / "a.tif")
    write_movie(tmp_path / "in" / "b.tif", seed=1)
    return tmp_path / "in"


@pytest.mark.parametrize("place", ["", "inside/deeper"])
def test_inside_or_equal_to_the_input_is_refused(folder, place):
    before = stored(folder)
    for more in ([], ["--overwrite"], ["--resume"]):
        refused(filtering(folder, "-o", folder / place, "--box", "3", *more), "lies in the input folder", "-o")
    assert stored(folder) == before


def test_not_empty_is_refused_without_resume_or_overwrite(tmp_path, folder):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("precious")
    refused(filtering(folder, "-o", tmp_path / "out", "--box", "3"), "is not empty", "--resume", "--overwrite")
    assert files(tmp_path / "out") == {"notes.txt"}
    assert filtering(folder, "-o", tmp_path / "out", "--box", "3", "--overwrite").code == 0
    assert files(tmp_path / "out") == {"notes.txt", "run.json", "a/a_filtered.tif", "b/b_filtered.tif"}
    assert (tmp_path / "out" / "notes.txt").read_text() == "precious"


def test_resume_keeps_what_is_finished(tmp_path, folder):
    assert filtering(folder, "-o", tmp_path / "out", "--box", "3").code == 0
    before, known = stored(tmp_path / "out"), record(tmp_path / "out")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*")}
    run = filtering(folder, "-o", tmp_path / "out", "--box", "3", "--resume")
    assert run.code == 0
    assert "Finished before: a, b" in run.stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*")} == stamps
    after = stored(tmp_path / "out")
    assert after.pop("run.json") != before.pop("run.json")
    assert after == before
    assert record(tmp_path / "out")["resumed"] == ["a", "b"]
    assert record(tmp_path / "out")["stacks"] == known["stacks"]


@pytest.mark.parametrize("change", ["input", "taps", "output", "record", "facts"])
def test_resume_does_anew_what_no_longer_holds(tmp_path, folder, change):
    taps = tmp_path / "taps.csv"
    taps.write_text("1,2,1\n")
    options = ["--taps", taps] if change == "taps" else ["--gaussian", "1"]
    assert filtering(folder, "-o", tmp_path / "out", *options).code == 0
    anew = ["a", "b"]
    if change == "taps":
        taps.write_text("1,3,1\n")
    else:
        anew = ["a"]
        if change == "input":
            write_movie(folder / "a.tif", seed=7)
        elif change == "output":
            (tmp_path / "out" / "a" / "a_filtered.tif").write_bytes(b"II*\0")
        else:
            path = tmp_path / "out" / ".xcorr" / "a.json"
            whole = json.loads(path.read_text())
            path.write_text(json.dumps(whole | {"facts": None}) if change == "facts" else "\0")
    filtering(folder, "-o", tmp_path / "out", *options, "--resume")
    assert record(tmp_path / "out")["resumed"] == [name for name in "ab" if name not in anew]
    filtering(folder, "-o", tmp_path / "fresh", *options)
    ours, fresh = stored(tmp_path / "out"), stored(tmp_path / "fresh")
    for name in ("a/a_filtered.tif", "b/b_filtered.tif"):
        assert ours[name] == fresh[name]


@pytest.mark.parametrize(
    "options",
    [
        ["--log", "1"],
        ["--gaussian", "2"],
        ["--gaussian", "1", "--mode", "wrap"],
        ["--gaussian", "1", "--dtype", "float32"],
    ],
)
def test_resume_refuses_other_options(tmp_path, folder, options):
    assert filtering(folder, "-o", tmp_path / "out", "--gaussian", "1").code == 0
    before = stored(tmp_path / "out")
    refused(filtering(folder, "-o", tmp_path / "out", *options, "--resume"), "holds a run with", ", not ")
    assert stored(tmp_path / "out") == before


def test_record_of_a_run(tmp_path, folder):
    (tmp_path / "taps.csv").write_text("1,2,1\n")
    options = ["--taps", tmp_path / "taps.csv", "--mode", "constant", "--cval", "5"]
    assert filtering(folder, "-o", tmp_path / "out", *options).code == 0
    known = record(tmp_path / "out")
    assert json.dumps(known, allow_nan=False)
    assert known["program"] == "xcorr filter"
    assert known["parameters"] == {
        **dict.fromkeys(("gaussian", "box", "sobel", "log", "dog", "unsharp", "bank")),
        "laplacian": False,
        "taps": str(tmp_path / "taps.csv"),
        "mode": "constant",
        "cval": 5.0,
        "dtype": None,
        "kernel": "auto",
        "kernel_options": [],
        "stride": 1,
        "engine": "auto",
        "device": "cpu",
        "layout": "auto",
        "channel": None,
        "compression": None,
    }
    assert known["device"] == "CPU"
    assert known["inputs"] == [str(folder)]
    assert {"python", "numpy", "scipy", "tifffile", "xcorr-app"} <= set(known["versions"])
    assert any(name.startswith("opencv") for name in known["versions"])
    assert known["failed"] is False
    assert [len(sum_) for sum_ in known["taps_file"].values()] == [32]
    for name in "ab":
        facts = known["stacks"][name]
        assert [len(sum_) for sum_ in facts["inputs"].values()] == [32]
        assert facts["seconds"]["filter"] >= 0
        assert (facts["planes"], facts["shape"], facts["axes"]) == (4, [4, 40, 48], "TYX")


@pytest.mark.parametrize("lasting", [False, True])
def test_any_write_may_fail(tmp_path, folder, lasting):
    def run(out, fails_at, *more):
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, fails_at, lasting=lasting)
            return filtering(folder, "-o", out, "--box", "3", *more), disk.writes

    ended, total = run(tmp_path / "counted", 0)
    assert ended.code == 0
    assert total > 20
    whole = files(tmp_path / "counted")
    for n in sorted({1, 2, total, *range(3, total, total // 9)}):
        out = tmp_path / f"out{n}"
        ended, _ = run(out, n)
        assert ended.code == (2 if n <= 2 else 1), (n, ended)
        assert len(ended.lines_of_error) <= 1
        assert "No space left on device" in ended.stdout + ended.stderr, (n, ended)
        left = files(out) if out.exists() else set()
        assert not [name for name in left if "partial" in name], (n, left)
        for name in left - {"run.json"}:
            assert (out / name).read_bytes() == (tmp_path / "counted" / name).read_bytes(), (n, name)
        if n in (2, total):
            assert filtering(folder, "-o", out, "--box", "3", "--resume").code == 0
            assert files(out) == whole
