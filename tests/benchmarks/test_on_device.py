"""The benchmarks on a device: every contender right, times that make sense, wrong contenders found out."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.correlation.check import Expected
from benchmarks.correlation.data import random_data
from benchmarks.correlation.suite import CORRELATION
from benchmarks.harness.benchmark import Benchmark
from benchmarks.harness.contender import Attempt, Contender, plane_at
from benchmarks.harness.fastest import memory_of
from benchmarks.harness.record import has_torch
from benchmarks.suites import SUITES
from tests.benchmarks.runner import run_benchmarks
from tests.benchmarks.small_cases import FILTERS, MIXTURES, OTHER_FILTERS, PEAKS, PLANES, REGISTRATIONS
from tests.device import NEEDS_DEVICE

pytestmark = NEEDS_DEVICE


@pytest.mark.parametrize("case", [*PLANES, *PEAKS, *REGISTRATIONS], ids=lambda case: case.name)
def test_every_attempt_of_every_contender_is_right(cupy, case):
    data = random_data(case, cupy)
    expected = Expected(case, data)
    contenders = [*CORRELATION.contenders(case), *(CORRELATION.of_torch(case) if has_torch() else ())]
    assert len({contender.name for contender in contenders}) == len(contenders) >= 2
    for contender in contenders:
        attempts = list(contender.attempts(case, data))
        assert attempts, contender.name
        for attempt in attempts:
            result = attempt.run()
            for pair in expected.parts:
                error = expected.error(pair, attempt.read(result, pair))
                limit = 1e-5 if case.task == "plane" else 2e-3
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
    suite = replace(CORRELATION, contenders=lambda case: iter(contenders), of_torch=lambda case: iter(()))
    result = Benchmark(suite, suite.quick).measure(case)
    good, *bad = result.outcomes
    assert result.winner is good
    assert good.seconds > 0
    assert "wrong answer, error 1.0e+00 of zeros" in bad[0].failure
    assert "MemoryError: too large" in bad[1].failure
    assert all(np.isnan(outcome.seconds) for outcome in bad)


def _combined(case, data):
    from benchmarks.correlation.suite import timed_variant

    yield timed_variant(case, data, "combined")


SMALL = [
    *(("filter", case) for case in (*FILTERS, *OTHER_FILTERS)),
    *(("pointwise", case) for case in MIXTURES),
]


@pytest.mark.parametrize(("suite", "case"), SMALL, ids=lambda value: getattr(value, "name", value))
def test_every_contender_is_right_on_every_copy(cupy, suite, case):
    suite = SUITES[suite]
    data = suite.data(case, cupy, 3)
    expected = suite.expected(case, data)
    limit = 1e-5 if expected.tolerance < 1e-3 else expected.tolerance
    for contender in suite.contenders(case):
        for attempt in contender.attempts(case, data):
            for _ in range(attempt.cycle):
                result = attempt.run()
                errors = [expected.error(part, attempt.read(result, part)) for part in expected.parts]
                assert max(errors) < limit, (contender.name, attempt.note, errors)
            assert attempt.cycle == 3


def test_the_product_is_replayed_from_a_graph(cupy):
    case, suite = FILTERS[0], SUITES["filter"]
    by_name = {each.what: each for each in suite.outcomes(case, suite.contenders(case), cupy, suite.quick)}
    assert by_name["kernel"].how == "replay"


def test_memory_is_that_of_the_result_at_least(cupy):
    array = cupy.zeros(3 << 20, "uint8")
    assert 3 << 20 <= memory_of(lambda: array + 1, "cupy") < 4 << 20
    assert memory_of(lambda: cupy.add(array, 1, out=array), "cupy") == 0


@pytest.mark.parametrize(
    ("command", "only", "cases"),
    [
        ("correlation", "one-to-one 32", 1),
        ("filter", "width 03", 1),
        ("pointwise", "batch 1: 512 -> 512, 14", 1),
    ],
)
def test_the_commands_on_one_case(tmp_path, command, only, cases):
    path = tmp_path / "results.json"
    run = run_benchmarks(command, "--quick", "--only", only, "--json", path)
    assert run.code == 0, run.stderr
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert read["benchmark"] == command
    assert read["device"]["name"] in run.stdout
    assert read["rates"]["tfma_per_second"] > 1
    assert read["environment"]["devices"][0]["driver"]
    assert len(read["cases"]) == cases
    assert read["cases"][0]["name"].startswith(only)
    assert read["cases"][0]["best_own"]
    assert not [timing for timing in read["timings"] if timing["failure"]]
    peers = [timing["what"] for timing in read["timings"] if not timing["own"]]
    assert any("PyTorch" in what for what in peers) is (has_torch() and only != "width 03")
