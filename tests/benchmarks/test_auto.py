"""``python -m benchmarks auto`` without a device: problems that are drawn, candidates worth timing, what is printed."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from benchmarks.auto import command
from benchmarks.auto.command import run_auto
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.tuning import correlation
from xcorr_app.tuning.correlation import Peaks, Planes
from xcorr_app.tuning.measure import Outcome

H200 = KNOWN_DEVICES["h200"]


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setattr(command, "current_device", lambda: 0)
    monkeypatch.setattr(command, "device_limits", lambda _: H200)


def outcome(ratio, chosen="a"):
    return Outcome(
        "planes", "a problem", chosen, "", {"a": ratio, "b": 1.0}, {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}
    )


@pytest.mark.parametrize("domain", [Planes(H200), Peaks(H200)], ids=lambda domain: domain.name)
def test_problems_are_drawn_again_the_same_and_decided(domain):
    drawn = domain.problems(np.random.default_rng(1), 20)
    assert drawn == domain.problems(np.random.default_rng(1), 20)
    assert len(drawn) == len(set(drawn)) == 20
    for problem in drawn:
        decision = domain.decision(problem)
        worth = correlation._worth_timing(decision)
        assert decision.name in worth
        assert set(worth) <= {candidate.name for candidate in decision.candidates}
        for launch in domain.launches(problem):
            assert launch.blocks >= 1


def test_what_is_printed_and_written(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "measure_domain", lambda domain, count, seed, tell: [outcome(1.25)] * count)
    text, path = io.StringIO(), tmp_path / "auto.json"
    run_auto(Console(file=text, width=300), ("planes",), 3, 1, path)
    assert "planes: 3 problems, 0.0% within 10 % of the best, worst 1.25 x" in text.getvalue()
    assert "1.250 x  a 1.2 us (expected 1.0), best b 1.0 us (expected 2.0): a problem" in text.getvalue()
    written = json.loads(path.read_text())
    assert written["outcomes"][0]["microseconds"] == {"a": 1.25, "b": 1.0}
    assert written["outcomes"][0]["ratio"] == 1.25
