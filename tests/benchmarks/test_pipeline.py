"""The benchmark of whole commands: its stacks, its raw rates, and one case from beginning to end."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

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
def test_one_case_is_timed_and_recorded(tmp_path):
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    run_pipeline(console, Size(1, 10, 32), "unchecked, no report", "cpu", tmp_path / "r.json")
    known = json.loads((tmp_path / "r.json").read_text())
    start, case = known["cases"]
    assert start["seconds"] > 0
    assert case["frames"] == 10
    assert case["frames_per_second_whole"] > 0
    assert case["timings"]["pace"] in case["timings"]["stages"]
    assert len(known["raw"]) == 3
    assert all(rate > 0 for rate in known["raw"].values())
    assert "the pace was set by" in stream.getvalue()
