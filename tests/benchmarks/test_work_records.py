"""Goals, geometric means, tables and files made of planted times."""

import io
import json
from dataclasses import asdict

import pytest
from rich.console import Console

from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.record import write_json
from benchmarks.work.benchmark import better_of
from benchmarks.work.goals import Goal
from benchmarks.work.means import BEST_OWN, BEST_PEER, group_means
from benchmarks.work.records import WorkResult, WorkTiming
from benchmarks.work.tables import print_goals, print_group, print_means, print_result
from tests.benchmarks.small_work import FILTERS


def timing(what, microseconds, choice="", **rest):
    floor = 8.0
    fields = {"multiple_of_floor": microseconds / floor, "fraction_of_fma_rate": 2.0 / microseconds, "error": 1e-7}
    return WorkTiming("planted", what, microseconds, own=bool(choice), choice=choice, **(fields | rest))


def failed(what, **rest):
    return WorkTiming("planted", what, failure="OutOfMemoryError: [red] no room\nat all", **rest)


def result(*timings, name="planted", group="", goals=()):
    return WorkResult(name, group, tuple(goals), 1e9, 1e6, 8.0, timings)


GOALS = (
    Goal("floor multiple", 1.25),
    Goal("floor fraction", 0.85),
    Goal("rate fraction", 0.2),
    Goal("peer speed", 2.5),
    Goal("peer memory", 1.0),
)
PLANTED = result(
    timing("kernels", 10.0, "kernel", registers=64, memory_bytes=3_000_000),
    timing("public", 11.0, "auto", memory_bytes=3_000_000),
    timing("CuPy", 40.0, memory_bytes=9_000_000),
    timing("PyTorch", 24.0, note="with cuDNN's search", memory_bytes=2_000_000),
    failed("Other"),
    goals=GOALS,
)


def printed(call, *arguments):
    console = Console(file=io.StringIO(), width=220)
    call(console, *arguments)
    return console.file.getvalue()


def test_an_outcome_is_set_beside_its_floor():
    case, rates = FILTERS[0], DeviceRates(fma=1e12, copy=1e12, empty=1e-6)
    outcome = Outcome("kernels", own=True, choice="kernel", seconds=2e-6, how="replay", error=1e-7, note="n")
    made = WorkTiming.of(outcome, case, rates)
    assert made.microseconds == pytest.approx(2.0)
    assert made.multiple_of_floor == pytest.approx(2e-6 / (3 * 45 * 83 * 9 / 1e12))
    assert made.fraction_of_fma_rate == pytest.approx(3 * 45 * 83 * 9 / 2e-6 / 1e12)
    assert (made.case, made.what, made.own, made.choice, made.note) == ("3x3", "kernels", True, "kernel", "n")


def test_goals_are_measured_on_the_products_best():
    assert [goal.value(PLANTED) for goal in GOALS] == pytest.approx([1.25, 0.8, 0.2, 2.4, 1.5])
    assert [goal.reached(PLANTED) for goal in GOALS] == [True, False, True, False, False]
    nothing = result(failed("kernels", own=True, choice="auto"), timing("CuPy", 4.0))
    assert [goal.reached(nothing) for goal in GOALS] == [None] * 5
    alone = result(timing("kernels", 10.0, "auto"))
    assert [goal.reached(alone) for goal in GOALS] == [True, False, True, None, None]
    assert [goal.text for goal in GOALS] == [
        "at most 1.25 x floor",
        "at least 0.85 of floor",
        "at least 0.2 of F",
        "2.5 x the best peer's speed",
        "at most 1 x the best peer's memory",
    ]


def test_who_wins():
    assert PLANTED.winner.what == PLANTED.best_own.what == "kernels"
    assert PLANTED.best_peer.what == "PyTorch"
    assert PLANTED.auto_behind_percent == pytest.approx(10.0)
    assert PLANTED.speed_over_peer == pytest.approx(2.4)


def test_the_better_of_two_runs():
    slow, fast, wrong = Outcome("a", seconds=3.0), Outcome("a", seconds=2.0), Outcome("a", failure="no")
    other = Outcome("b", seconds=9.0)
    assert better_of([slow], [fast, other]) == [fast, other]
    assert better_of([fast], [slow]) == [fast]
    assert better_of([wrong, other], [slow]) == [slow, other]
    assert better_of([slow], [wrong]) == [slow]
    assert better_of([], [wrong]) == [wrong]


def test_geometric_means():
    members = [
        result(timing("own", 16.0, "auto"), timing("p", 32.0), timing("q", 16.0), name="one", group="g"),
        result(timing("own", 10.0, "auto"), timing("p", 80.0), failed("q"), name="two", group="g"),
        result(timing("own", 1.0, "auto"), name="elsewhere"),
    ]
    means = {mean.what: mean for mean in group_means(members, {"g": 0.7, "absent": 1.0})}
    assert set(means) == {BEST_OWN, BEST_PEER, "own", "p", "q"}
    assert means["own"].floor_over_time == pytest.approx((0.5 * 0.8) ** 0.5)
    assert means["p"].floor_over_time == pytest.approx((0.25 * 0.1) ** 0.5)
    assert means["q"].floor_over_time == pytest.approx(0.5)
    assert means[BEST_PEER].floor_over_time == pytest.approx((0.5 * 0.1) ** 0.5)
    assert [(mean.cases, mean.of) for mean in means.values()] == [(2, 2), (2, 2), (2, 2), (2, 2), (1, 2)]
    assert (means[BEST_OWN].goal, means[BEST_OWN].reached) == (0.7, False)
    assert (means["own"].goal, means["own"].reached) == (None, None)
    against_peers = group_means(members, {"g": None})[0]
    assert against_peers.goal == pytest.approx(means["p"].floor_over_time)
    assert against_peers.reached


def test_means_of_failures_are_no_numbers():
    (own, *_) = group_means([result(failed("own", own=True, choice="auto"), group="g")], {"g": 0.5})
    assert own.floor_over_time != own.floor_over_time
    assert own.reached is False
    assert own.cases == 0


def test_the_table_of_a_case():
    lines = [line.rstrip() for line in printed(print_result, PLANTED).splitlines() if line.strip()]
    assert lines[0] == "planted  (floor 8.000 us)"
    assert lines[1].split() == ["us", "x", "floor", "of", "F", "MB", "registers", "error"]
    assert [line.split()[0] for line in lines[2:7]] == ["kernels", "public", "PyTorch", "CuPy", "Other"]
    assert lines[2].split() == ["kernels", "10.00", "1.250", "0.200", "3.0", "64", "1e-07"]
    assert "<- auto" in lines[3]
    assert lines[4].endswith("with cuDNN's search")
    assert "OutOfMemoryError: [red] no room\\nat all" in lines[6]
    assert lines[7].startswith(
        "wins: kernels; auto is 10.0 % behind the product's best; goal at most 1.25 x floor: reached"
    )
    assert "2.5 x the best peer's speed: missed (2.4)" in lines[7]


def test_the_table_of_a_group():
    first = result(timing("own", 16.0, "auto"), timing("p", 32.0), name="width 01", group="g")
    second = result(timing("own", 10.0, "auto"), failed("p"), name="width 02", group="g")
    lines = [line.rstrip() for line in printed(print_group, [first, second]).splitlines() if line.strip()]
    assert lines[0] == "g"
    assert lines[2].split() == ["width", "01", "8.000", "16.00", "2.000", "32.00", "4.000", "2.00x", "p"]
    assert "p: OutOfMemoryError" in lines[3]
    assert lines[4] == "at most 2.00 x floor, in 'planted'"


def test_the_summaries():
    text = printed(print_goals, [PLANTED, result(timing("own", 1.0, "auto"), name="no goal")])
    assert "no goal" not in text
    assert "at least 0.85 of floor: missed (0.8)" in text
    assert text.splitlines()[-1] == "2 goals reached, 3 missed, 0 not measured"
    means = group_means([result(timing("own", 16.0, "auto"), group="g")], {"g": 0.4})
    assert "at least 0.400: reached" in printed(print_means, means)
    assert printed(print_means, []) == ""


def test_json_holds_every_number_and_null_where_there_is_none(tmp_path):
    path = tmp_path / "results.json"
    write_json({"cases": [PLANTED.as_dict()], "timings": [asdict(each) for each in PLANTED.timings]}, path)
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    case = read["cases"][0]
    assert (case["winner"], case["best_own"], case["best_peer"]) == ("kernels", "kernels", "PyTorch")
    assert case["goals"][3] == {"goal": "2.5 x the best peer's speed", "value": pytest.approx(2.4), "reached": False}
    assert "timings" not in case
    assert [each["microseconds"] for each in read["timings"]] == [10.0, 11.0, 40.0, 24.0, None]
