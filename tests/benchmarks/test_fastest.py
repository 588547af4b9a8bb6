"""The fastest right attempt counts; copies are taken in turn, and only whole turns are timed."""

from __future__ import annotations

import pytest

from benchmarks.harness import fastest
from benchmarks.harness.clock import Clock, Measured
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.harness.effort import Effort
from benchmarks.harness.fastest import fastest_of
from benchmarks.work.rotation import rotating


class PlantedClock:
    """Takes the result of a run for its time, and remembers the cycles."""

    def __init__(self):
        self.cycles = []

    def on_device(self, run, cycle=1):
        self.cycles.append(cycle)
        return Measured(run(), "replay")

    def on_device_by_torch(self, run, cycle=1):
        return Measured(run() / 2, "events")


class Exactly:
    tolerance = 0.5
    parts = ("only",)

    def __init__(self, error=0.0):
        self._error = error

    def error(self, part, answer):
        assert part == "only"
        return self._error if answer < 100 else float("inf")


@pytest.fixture(autouse=True)
def no_pools(monkeypatch):
    monkeypatch.setattr(fastest, "free_device_memory", lambda: None)


@pytest.fixture
def effort():
    return Effort(clock=PlantedClock(), attempts=4)


def attempt(seconds, **more):
    return Attempt(lambda: seconds, lambda result, part: result, **more)


def outcome_of(effort, *attempts, expected=None, **options):
    contender = Contender("planted", lambda case, data: iter(attempts), "auto")
    return fastest_of(contender, None, None, expected or Exactly(), effort, **options)


def test_the_fastest_attempt_counts(effort):
    said = []
    outcome = outcome_of(
        effort,
        attempt(3.0, note="slow", remark=lambda: said.append("slow") or "of slow"),
        attempt(2.0, note="fast", registers=32, remark=lambda: said.append("fast") or "of fast"),
        attempt(2.5),
    )
    assert (outcome.what, outcome.own, outcome.choice) == ("planted", True, "auto")
    assert (outcome.seconds, outcome.how, outcome.note, outcome.registers) == (2.0, "replay", "fast; of fast", 32)
    assert said == ["fast"]
    assert not outcome.failure


def test_each_library_has_its_clock(effort):
    assert outcome_of(effort, attempt(3.0, clocking="torch")).seconds == 1.5


def test_a_wrong_answer_is_never_timed(effort):
    outcome = outcome_of(effort, attempt(200.0, note="of nonsense"), attempt(7.0))
    assert outcome.seconds == 7.0
    wrong = outcome_of(effort, attempt(200.0, note="of nonsense"))
    assert wrong.failure == "wrong answer, error inf of nonsense"
    assert wrong.seconds != wrong.seconds
    nearly = outcome_of(effort, attempt(1.0), expected=Exactly(0.6))
    assert nearly.failure.startswith("wrong answer, error 6.0e-01")
    assert outcome_of(effort, attempt(1.0), expected=Exactly(0.4)).error == 0.4


def test_a_contender_may_have_a_tolerance_of_its_own(effort):
    def outcome(tolerance, error):
        contender = Contender("planted", lambda case, data: iter([attempt(1.0)]), tolerance=tolerance)
        return fastest_of(contender, None, None, Exactly(error), effort)

    assert not outcome(0.7, 0.6).failure
    assert outcome(0.1, 0.4).failure.startswith("wrong answer, error 4.0e-01")
    assert not outcome(None, 0.4).failure


def test_a_failure_is_told_and_leaves_what_was_timed_before(effort):
    def attempts(case, data):
        yield attempt(5.0)
        raise MemoryError("too\nlarge")

    outcome = fastest_of(Contender("planted", attempts), None, None, Exactly(), effort)
    assert outcome.seconds == 5.0
    assert not outcome.failure

    def none(case, data):
        raise MemoryError("too\nlarge")
        yield

    assert fastest_of(Contender("p", none), None, None, Exactly(), effort).failure == "MemoryError: too large"
    assert outcome_of(effort).failure == "made no attempt"


def test_no_more_attempts_than_asked_for(effort):
    assert outcome_of(effort, *(attempt(9.0 - k) for k in range(9))).seconds == 6.0


def test_memory_is_asked_for_once_and_only_of_the_fastest(effort, monkeypatch):
    asked = []
    monkeypatch.setattr(fastest, "memory_of", lambda run, clocking: asked.append(run()) or 77)
    assert outcome_of(effort, attempt(3.0), attempt(2.0), with_memory=True).memory_bytes == 77
    assert asked == [2.0]
    assert outcome_of(effort, attempt(3.0)).memory_bytes == 0


def test_copies_take_turns_and_keep_their_results(effort):
    made = []

    def work(number):
        return lambda: made.append([number]) or made[-1]

    turning = rotating([work(number) for number in range(3)], lambda result, part: result[0], note="of three")
    assert turning.cycle == 3
    results = [turning.run() for _ in range(7)]
    assert [number for (number,) in results] == [0, 1, 2, 0, 1, 2, 0]
    assert turning.run._results[0] is results[6]
    assert turning.run._results[1] is results[4]


@pytest.mark.parametrize(("cycle", "once", "calls"), [(1, 1e-3, 20), (7, 1e-3, 21), (30, 1e-3, 30), (300, 1e-9, 300)])
def test_whole_cycles_are_timed(cycle, once, calls):
    done, recorded = [], []

    def timed(work):
        before = len(done)
        work()
        return once * (len(done) - before)

    def record(count):
        recorded.append(count)
        return lambda: done.extend([None] * count)

    measured = Clock(repeats=3, min_seconds=0.02)._steady(lambda: done.append(None), timed, record, cycle)
    assert measured.seconds == pytest.approx(once)
    assert measured.how == "replay"
    assert recorded == [calls]


def test_long_work_is_timed_call_by_call_and_in_whole_cycles():
    done = []

    def timed(work):
        before = len(done)
        work()
        return 0.1 * (len(done) - before)

    measured = Clock(repeats=9)._steady(lambda: done.append(None), timed, None, 2)
    assert (measured.how, len(done)) == ("events", 2 + 3 * 2)
    assert measured.seconds == pytest.approx(0.1)
