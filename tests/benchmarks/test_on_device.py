"""The benchmark on a device: every contender right, times that make sense, wrong contenders found out."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.correlation.cases import Case
from benchmarks.correlation.check import Expected
from benchmarks.correlation.data import random_data
from benchmarks.correlation.suite import CORRELATION
from benchmarks.harness.benchmark import Benchmark
from benchmarks.harness.contender import Attempt, Contender, plane_at
from benchmarks.harness.record import has_torch
from tests.benchmarks.runner import run_benchmarks
from tests.benchmarks.small_cases import PEAKS, PLANES, REGISTRATIONS
from tests.device import NEEDS_DEVICE
from xcorr_app.gpu.direct.problem import Problem

pytestmark = NEEDS_DEVICE
CALL = Case(name="call", problem=Problem.full_plane((16, 16), (16, 16)), task="call")


@pytest.mark.parametrize("case", [*PLANES, *PEAKS, *REGISTRATIONS, CALL], ids=lambda case: case.name)
def test_every_attempt_of_every_contender_is_right(cupy, case):
    data = random_data(case, cupy)
    expected = Expected(case, data)
    contenders = [*CORRELATION.contenders(case), *(CORRELATION.of_torch(case, True) if has_torch() else ())]
    assert len({contender.name for contender in contenders}) == len(contenders) >= 2
    for contender in contenders:
        attempts = list(contender.attempts(case, data))
        assert attempts, contender.name
        for attempt in attempts:
            result = attempt.run()
            for pair in expected.parts:
                error = expected.error(pair, attempt.read(result, pair))
                limit = 1e-5 if case.task in ("plane", "call") else 2e-3
                assert error < limit, (contender.name, attempt.note, pair, error)


def test_work_that_no_graph_holds_is_timed_by_events(cupy):
    array = cupy.arange(1000.0)
    assert CORRELATION.quick.on_device(lambda: float(array.sum())).how == "events"
    assert CORRELATION.quick.on_device(lambda: array + 1).how == "replay"


def test_a_wrong_or_failing_contender_is_a_line_of_the_table(cupy):
    case = PLANES[0]

    def wrong(case, data):
        yield Attempt(lambda: cupy.zeros((1, *case.problem.plane_shape)), plane_at, note="of zeros")

    def failing(case, data):
        raise MemoryError("too large")

    contenders = [Contender("right", _combined, "combined"), Contender("wrong", wrong), Contender("failing", failing)]
    suite = replace(CORRELATION, contenders=lambda case: iter(contenders))
    result = Benchmark(suite, suite.quick).measure(case)
    good, *bad = result.outcomes
    assert result.winner is good
    assert good.seconds > 0
    assert "wrong answer, error 1.0e+00 of zeros" in bad[0].failure
    assert "MemoryError: too large" in bad[1].failure
    assert all(np.isnan(outcome.seconds) for outcome in bad)


def test_the_command_on_one_small_case(tmp_path):
    path = tmp_path / "results.json"
    run = run_benchmarks("correlation", "--quick", "--only", "one-to-one 32", "--json", path)
    assert run.code == 0, run.stderr
    assert "wins: " in run.stdout
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert read["device"]["name"] in run.stdout
    assert read["environment"]["devices"]
    assert {"cupy", "numpy", "xcorr-app"} & set(read["environment"]["versions"]) >= {"numpy"}
    assert [case["name"] for case in read["cases"]] == ["one-to-one 32^2 full"]
    assert read["cases"][0]["auto_behind_percent"] is not None
    assert not [timing for timing in read["timings"] if timing["failure"]]


def _combined(case, data):
    from benchmarks.correlation.own_kernels import timed_variant

    yield timed_variant(case, data, "combined")
