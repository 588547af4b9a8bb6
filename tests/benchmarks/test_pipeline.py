"""The benchmark of whole commands: its stacks, its raw rates, and one case from beginning to end."""

import io
import json

import pytest
from rich.console import Console

from benchmarks.pipeline.cases import Size
from benchmarks.pipeline.command import run_pipeline


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
