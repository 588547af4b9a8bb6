"""Where results of ``xcorr filter`` may go, how a run is resumed, and what a kill or a full disk leaves behind."""

import json

import pytest

from tests.batch.filter_runs import filtering
from tests.batch.movies import record, write_movie
from tests.batch.test_output_folder import content as stored


@pytest.fixture
def folder(tmp_path):
    write_movie(tmp_path / "in" / "a.tif")
    write_movie(tmp_path / "in" / "b.tif", seed=1)
    return tmp_path / "in"


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
