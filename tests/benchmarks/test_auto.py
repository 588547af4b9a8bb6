"""``python -m benchmarks auto`` without a device: problems that are drawn, candidates worth timing, what is printed."""

from __future__ import annotations

import gc
import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console

from benchmarks.auto import command
from benchmarks.auto.command import run_auto
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.tuning import correlation, measure
from xcorr_app.tuning.correlation import Peaks, Planes
from xcorr_app.tuning.measure import Outcome, call_times, share_within

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


def test_how_far_choices_are_from_the_best():
    assert outcome(1.2).ratio == 1.2
    assert outcome(1.2).best == "b"
    assert outcome(1.2, "b").ratio == outcome(1.2).device_ratio == 1.0
    assert share_within([outcome(1.05), outcome(1.2), outcome(1.2, "b"), outcome(1.1)]) == 0.75


def test_what_is_printed_and_written(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "measure_domain", lambda domain, count, seed, tell: [outcome(1.25)] * count)
    text, path = io.StringIO(), tmp_path / "auto.json"
    run_auto(Console(file=text, width=300), ("planes",), 3, 1, path)
    assert "planes: 3 problems, 0.0% within 10 % of the best, worst 1.25 x" in text.getvalue()
    assert "1.250 x  a 1.2 us (expected 1.0), best b 1.0 us (expected 2.0): a problem" in text.getvalue()
    written = json.loads(path.read_text())
    assert written["outcomes"][0]["microseconds"] == {"a": 1.25, "b": 1.0}
    assert written["outcomes"][0]["ratio"] == 1.25


def test_candidates_are_read_in_turns_and_the_least_reading_counts(monkeypatch):
    order, slow = [], iter([9.0, 1.0] * 100)

    def reading(run, calls, ahead=0.0):
        order.append(run)
        return {"short": 100.0 + next(slow), "long": 8000.0}[run] - (20.0 if ahead else 0.0)

    monkeypatch.setattr(measure, "_reading", reading)
    assert call_times({"a": "short", "b": "long"}) == {"a": (101.0, 81.0), "b": (8000.0, 8000.0)}
    assert order[:7] == ["short", "short", "long", "long", "long", "long", "short"]


def test_turns_go_on_while_the_least_readings_fall_and_the_order_changes(monkeypatch):
    read = {"a": [], "b": []}
    order = []

    def reading(run, calls, ahead=0.0):
        if not ahead:
            order.append(run)
            read[run].append(200.0 - (4.0 * min(len(read[run]), 15) if run == "b" else 0.0))
        return 100.0 if ahead else read[run][-1]

    monkeypatch.setattr(measure, "_reading", reading)
    assert call_times({"a": "a", "b": "b"}) == {"a": (200.0, 100.0), "b": (140.0, 100.0)}
    assert 15 < len(read["b"]) < 25  # the last that is less is the sixteenth
    turns = order[4:]
    assert turns[:4] == ["a", "b", "b", "a"]
    assert gc.isenabled()


def test_a_host_that_never_settles_ends_the_readings_as_well(monkeypatch):
    falling = (4500.0 * 0.98**i for i in itertools.count())
    monkeypatch.setattr(measure, "_reading", lambda run, calls, ahead=0.0: min(4500.0, next(falling)))
    assert 0 < call_times({"a": "a"})["a"][0] < 4000.0
