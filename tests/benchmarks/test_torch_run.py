"""PyTorch's own process: what it is asked, what is read of its answer, and what happens when it ends too soon."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.filters.data import Expected
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.harness.effort import QUICK
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.suites import SUITES
from benchmarks.im2win.torch_peers import algorithm_of
from benchmarks.work import torch_process, torch_run
from benchmarks.work.torch_run import FAILED_PROCESS, effort_of, read_outcomes, torch_outcomes
from tests.benchmarks.small_work import FILTERS, LAYERS, MIXTURES

CASES = FILTERS[:3]


def answering(monkeypatch, text, code=0, stderr=""):
    """Put a process in the place of PyTorch's that writes a text; returns what it is asked."""
    asked = {}

    def run(command, **options):
        request, answer = command[-2:]
        assert command[:3] == [sys.executable, "-m", "benchmarks.work.torch_process"]
        asked.update(json.loads(Path(request).read_text()))
        if text is None:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        Path(answer).write_text(text)
        return subprocess.CompletedProcess(command, code, "", stderr)

    monkeypatch.setattr(torch_run.subprocess, "run", run)
    return asked


def line(case, *outcomes):
    return json.dumps({"case": case.name, "outcomes": [asdict(outcome) for outcome in outcomes]}) + "\n"


def test_outcomes_come_back_as_they_were(monkeypatch):
    outcomes = [
        Outcome("a", seconds=2e-6, how="replay", error=1e-7, note="n", memory_bytes=5, best_seconds=1e-6),
        Outcome("b", failure="no"),
    ]
    asked = answering(monkeypatch, "".join(line(case, *outcomes) for case in CASES))
    found = torch_outcomes("filter", CASES, QUICK, 1, search=True)
    assert list(found) == [case.name for case in CASES]
    assert found["3x3"][0] == outcomes[0]
    assert [(each.what, each.failure) for each in found["3x3"]] == [("a", ""), ("b", "no")]
    assert (asked["suite"], asked["device"], asked["search"]) == ("filter", 1, True)
    assert asked["cases"] == [case.name for case in CASES]
    effort = effort_of(asked)
    assert (effort.clock, effort.attempts) == (QUICK.clock, QUICK.attempts)


def test_what_a_process_owed_when_it_ended_is_told(monkeypatch):
    whole = line(CASES[0], Outcome("a", seconds=1.0))
    answering(
        monkeypatch, whole + line(CASES[1], Outcome("a", seconds=1.0))[:-9], code=139, stderr="x\nSegmentation fault"
    )
    found = torch_outcomes("filter", CASES, QUICK, 0, search=False)
    assert found[CASES[0].name][0].seconds == 1.0
    for case in CASES[1:]:
        (outcome,) = found[case.name]
        assert outcome.what == FAILED_PROCESS
        assert outcome.failure == "PyTorch's process ended with code 139: Segmentation fault"
    answering(monkeypatch, None)
    assert "ended after" in torch_outcomes("filter", CASES, QUICK, 0, search=False)[CASES[0].name][0].failure


def test_no_answer_is_no_outcome(tmp_path):
    assert read_outcomes(tmp_path / "none") == {}


def test_the_process_answers_every_case_that_it_was_asked(monkeypatch, tmp_path):
    """With NumPy in CuPy's place and the product's own definition in PyTorch's."""
    case = SUITES["filter"].cases[0]
    seen = []

    def contenders(case, search):
        seen.append((case.name, search))
        if case.name == "skipped":
            return
        yield Contender("right", lambda case, data: iter([Attempt(lambda: "result", lambda result, part: part)]))

    class Nothing(Expected):
        def __init__(self, case, data):
            self.parts, self.tolerance = [1], 0.5

        def error(self, part, answer):
            assert answer == part == 1
            return 0.25

    other = FILTERS[0]
    suite = SUITES["filter"].__class__(
        "filter", (case, other), lambda case, xp, copies: None, Nothing, lambda case: iter(()), contenders
    )
    monkeypatch.setitem(torch_process.ALL_SUITES, "filter", suite)
    monkeypatch.setattr(torch_process, "_prepare", lambda device, search: seen.append((device, search)))
    monkeypatch.setattr(torch_process, "free_device_memory", lambda: None)
    monkeypatch.setattr("benchmarks.harness.fastest.free_device_memory", lambda: None)
    monkeypatch.setattr(
        "benchmarks.harness.clock.Clock.on_device", lambda self, run, cycle: (_ for _ in ()).throw(OSError("no GPU"))
    )
    monkeypatch.setitem(sys.modules, "cupy", np)
    request, answer = tmp_path / "request", tmp_path / "answer"
    asked = {"suite": "filter", "cases": [case.name, other.name], "device": 2, "search": True, "attempts": 3}
    request.write_text(json.dumps(asked | {"clock": asdict(QUICK.clock)}))
    torch_process.main(request, answer)
    assert seen == [(2, True), (case.name, True), (other.name, True)]
    found = read_outcomes(answer)
    assert [outcomes[0].failure for outcomes in found.values()] == ["OSError: no GPU"] * 2


@pytest.mark.parametrize(
    ("kernels", "algorithm"),
    [
        (["fft2d_r2c_32x32", "cutlass_80_simt_sgemm"], "runs an FFT"),
        (["cudnn::winograd_nonfused::winogradForwardData4x4", "sgemm"], "runs Winograd"),
        (["sm80_xmma_fprop_implicit_gemm_f32f32"], "runs a matrix product"),
        (["precomputed_convolve"], ""),
    ],
)
def test_the_algorithm_is_told_by_the_kernels_names(kernels, algorithm):
    assert algorithm_of(kernels) == algorithm


def test_the_search_is_left_out_only_where_it_matters_to_no_one():
    for suite, cases in (("filter", FILTERS), ("im2win", LAYERS), ("pointwise", MIXTURES)):
        for case in cases:
            with_search = {contender.name for contender in SUITES[suite].of_torch(case, True)}
            without = {contender.name for contender in SUITES[suite].of_torch(case, False)}
            assert without <= with_search
            assert {name for name in with_search - without if "matmul" not in name} == set()
            assert not any(contender.own for contender in SUITES[suite].of_torch(case, True))
