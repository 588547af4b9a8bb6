"""The benchmark of whole commands: its stacks, its raw rates, and one case from beginning to end."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from benchmarks.pipeline import command
from benchmarks.pipeline.cases import Size, cases
from benchmarks.pipeline.command import run_pipeline
from benchmarks.pipeline.raw import decode_rate, read_rate, write_rate
from xcorr_app.io import discover


def test_every_case_has_the_frames_it_says(tmp_path):
    size = Size(2, 20, 32)
    for case in cases(tmp_path):
        folder = tmp_path / "".join(c for c in case.name if c.isalnum())
        case.make(folder, size)
        planes = 0
        for spec in discover(folder).series:
            with spec.open() as source:
                planes += source.metadata.planes
        assert planes == case.frames(size) == 40, case.name


def test_raw_rates_are_of_what_was_done(tmp_path):
    (tmp_path / "a").write_bytes(bytes(1 << 20))
    assert 1e6 < read_rate([tmp_path / "a"], 2) < 1e13
    assert 1e5 < write_rate(tmp_path, 1 << 23, 2) < 1e13
    assert 1 < decode_rate(np.arange(4096, dtype=np.uint16).reshape(64, 64), 2) < 1e8
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.share(3)
def test_cases_are_timed_and_recorded(tmp_path):
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    run_pipeline(console, Size(1, 10, 32), ["unchecked, no report", "start"], "cpu", tmp_path / "r.json")
    known = json.loads((tmp_path / "r.json").read_text())
    assert known["environment"]["date"]
    start, case = known["cases"]
    assert start["seconds"] > 0
    assert case["frames"] == 10
    assert case["frames_per_second_whole"] > 0
    assert case["timings"]["pace"] in case["timings"]["stages"]
    assert case["size"] == {"stacks": 1, "frames": 10, "side": 32}
    assert len(case["raw"]) == 3
    assert all(rate > 0 for rate in case["raw"].values())
    assert "the pace was set by" in stream.getvalue()


def test_a_case_timed_again_takes_the_place_of_the_earlier_one(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_run", lambda *_: (0.5, {}))  # what is recorded of a run is looked at above
    path, console = tmp_path / "r.json", Console(file=io.StringIO())
    for frames in (10, 12):
        run_pipeline(console, Size(1, frames, 32), ["start"], "cpu", path)
        known = json.loads(path.read_text())
        assert [case["size"]["frames"] for case in known["cases"]] == [frames]
        path.write_text(json.dumps(known | {"cases": [*known["cases"], {"case": "another"}]}))
        run_pipeline(console, Size(1, frames, 32), ["start"], "cpu", path)
        assert [case["case"] for case in json.loads(path.read_text())["cases"]] == [
            known["cases"][0]["case"],
            "another",
        ]
        path.write_text(json.dumps(known))
    path.write_text(json.dumps(known | {"environment": known["environment"] | {"cpu": "another"}}))
    run_pipeline(console, Size(1, 11, 32), ["nothing"], "cpu", path)
    assert json.loads(path.read_text())["environment"]["cpu"] == "another"
    run_pipeline(console, Size(1, 11, 32), ["start"], "cpu", path)
    assert [case["size"]["frames"] for case in json.loads(path.read_text())["cases"]] == [11]
