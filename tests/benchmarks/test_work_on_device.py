"""The benchmarks of filters, Im2win and pointwise layers on a device: every contender right, and the commands."""

import json

import pytest

from benchmarks.harness.benchmark import Benchmark
from benchmarks.harness.fastest import memory_of
from benchmarks.harness.record import has_torch
from benchmarks.harness.torch_process import torch_outcomes
from benchmarks.im2win.data import Expected as ExpectedLayer
from benchmarks.suites import SUITES
from tests.benchmarks.runner import run_benchmarks
from tests.benchmarks.small_work import FILTERS, LAYERS, MIXTURES, OTHER_FILTERS
from tests.device import NEEDS_DEVICE

pytestmark = NEEDS_DEVICE
SMALL = [
    *(("filter", case) for case in (*FILTERS, *OTHER_FILTERS)),
    *(("im2win", case) for case in LAYERS),
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
            assert attempt.cycle == (1 if "call" in attempt.clocking else 3)


def test_the_product_is_replayed_from_a_graph(cupy):
    case, suite = FILTERS[0], SUITES["filter"]
    by_name = {each.what: each for each in suite.outcomes(case, suite.contenders(case), cupy, suite.quick)}
    assert by_name["kernel"].how == "replay"


def test_memory_is_that_of_the_result_at_least(cupy):
    array = cupy.zeros(3 << 20, "uint8")
    assert 3 << 20 <= memory_of(lambda: array + 1, "cupy") < 4 << 20
    assert memory_of(lambda: cupy.add(array, 1, out=array), "cupy") == 0


@pytest.mark.skipif(not has_torch(), reason="PyTorch is not installed")
@pytest.mark.parametrize("search", [False, True])
def test_pytorch_in_its_own_process(search):
    suite = SUITES["im2win"]
    cases = [suite.cases[11]]
    ((outcome,),) = torch_outcomes("im2win", cases, suite.quick, 0, search=search).values()
    assert not outcome.failure
    assert outcome.how in ("replay", "events")
    assert outcome.error < ExpectedLayer.tolerance
    assert outcome.memory_bytes >= 4 * 128 * 512 * 25
    assert ("cuDNN's search" in outcome.note) is search


@pytest.mark.parametrize(
    ("command", "only", "cases"),
    [
        ("filter", "width 03", 1),
        ("filter", "call one image", 1),
        ("im2win", "layer 12", 1),
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


def test_a_benchmark_without_a_case_of_pytorch_starts_no_process(monkeypatch):
    suite = SUITES["filter"]
    monkeypatch.setattr("benchmarks.harness.benchmark.torch_outcomes", lambda *_, **__: pytest.fail("started"))
    assert Benchmark(suite, suite.quick).of_torch([case for case in suite.cases if case.group]) == {}
