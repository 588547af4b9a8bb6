"""The ablations of the four documents without a device: what is planned, recorded, printed and drawn."""

import json
import re
from dataclasses import replace

import pytest

from benchmarks.ablation import command
from benchmarks.ablation import compile as ahead
from benchmarks.ablation.correlation import CORRELATION, ROWS_PER_WORKER, SIZES
from benchmarks.ablation.cudnn import ALGORITHMS
from benchmarks.ablation.documents import DOCUMENTS
from benchmarks.ablation.drawing import draw, write_drawing
from benchmarks.ablation.im2win import IM2WIN
from benchmarks.ablation.joining import joined
from benchmarks.ablation.local_arrays import with_loops
from benchmarks.ablation.pointwise import POINTWISE, ways_of
from benchmarks.ablation.reuse import REUSE, published_kernel, steps_of
from benchmarks.ablation.tables import groups_of, tables_of
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.suites import ALL_SUITES
from benchmarks.pointwise.layers import LAYERS
from benchmarks.work.records import WorkResult, WorkTiming
from tests.benchmarks.runner import run_benchmarks
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.im2win.launches import ABLATION, STEPS
from xcorr_app.gpu.im2win.problem import LAYERS as IM2WIN_LAYERS
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.compile import kernel_root, kernel_source
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H100 = KNOWN_DEVICES["h100"]
RATES = DeviceRates(30e12, 3e12, 5e-7)


def names_of(suite, group):
    return {way.name for case in suite.cases if case.group == group for way in suite.contenders(case)}


def test_every_suite_can_be_found_by_a_process_of_its_own():
    for suite in DOCUMENTS.values():
        assert ALL_SUITES[suite.name] is suite
        assert len({case.name for case in suite.cases}) == len(suite.cases)
        assert any(case.in_quick for case in suite.cases)
        for case in suite.cases:
            assert case.name.startswith(f"{case.group}: ")
            named = [each.name for each in (*suite.contenders(case), *suite.of_torch(case, True))]
            assert len(set(named)) == len(named) > 1
            assert not list(suite.of_torch(case, False)) or suite is POINTWISE


def test_correlation_runs_every_step_in_every_form_and_every_distribution():
    of_steps = {way for way in names_of(CORRELATION, "steps, n-to-m, 4 x 4") if ", phases" not in way}
    assert of_steps == set(KERNELS) - {"band-product"}
    assert names_of(CORRELATION, "steps, one-to-many, 16 rights") >= of_steps - {"multi-left-right"}
    assert len(names_of(CORRELATION, "work distribution, one-to-one")) == 1 + 2 * len(ROWS_PER_WORKER)
    sizes = {case.case.problem.left_shape[0] for case in CORRELATION.cases}
    assert sizes == set(SIZES)
    for case in CORRELATION.cases:
        for way in case.ways:
            launch = KERNELS[way.variant].launch(case.case.problem, device=H100, tuning=dict(way.macros))
            assert launch.blocks >= 1
            assert {name: launch.defines[name] for name, _ in way.macros} == dict(way.macros)


def test_loops_that_are_not_unrolled_leave_no_constant_index():
    problem = Problem.full_plane((64, 64), (64, 64), lefts=4, rights=4, rights_per_left=4)
    launch = KERNELS["multi-row"].launch(problem, device=H100)
    text = kernel_source(launch.kernel, launch.defines)
    folder = kernel_root() / "direct"
    loops = with_loops(text, folder)
    assert len(re.findall("#pragma unroll", loops)) == len(re.findall("#pragma unroll 1\n", loops)) > 5
    left = [name for name in re.findall('#include "([^"]+)"', loops) if (folder / name).exists()]
    assert left == []
    assert "multi_row(const Left* lefts" in loops


def test_reuse_switches_each_reuse_and_meets_every_algorithm_of_cudnn():
    assert {case.columns for case in REUSE.cases} >= {3, 5, 7}
    kernel = published_kernel(5)
    switches = {
        name: (macros.get("COLUMN_REUSE"), macros.get("ROW_REUSE")) for name, (_, macros) in steps_of(5).items()
    }
    assert {steps_of(5)[name][0] for name in ("direct", "both")} == {kernel}
    assert [switches[name] for name in ("direct", "column reuse", "row reuse", "both")] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]
    peers = {way.name for way in REUSE.of_torch(REUSE.cases[0], True)}
    assert peers == {"PyTorch conv2d", *(f"cuDNN, {name}" for name in ALGORITHMS)}


def test_im2win_runs_every_step_on_every_layer():
    assert [case.problem for case in IM2WIN.cases] == list(IM2WIN_LAYERS.values())
    own = names_of(IM2WIN, "layer")
    assert own >= {*STEPS, *(f"all but: {name}" for name in ABLATION), "direct", "basic form", "as chosen"}
    assert IM2WIN.measures_memory
    assert {way.name for way in IM2WIN.of_torch(IM2WIN.cases[0], True)} > {"im2col + GEMM, PyTorch", "cuDNN, FFT"}


def test_pointwise_runs_all_layers_at_every_batch():
    layers = [case for case in POINTWISE.cases if case.group.startswith("batch")]
    assert len(layers) == len(LAYERS) * len({case.images for case in layers})
    for case in POINTWISE.cases[::9]:
        problem = PointwiseProblem(case.images, case.channels, case.filters, case.pixels)
        ways = ways_of(case)
        assert {"blocking, as planned", "blocking, channels over 1 lane", "tiled, 4 segments"} <= set(ways)
        launches = {}
        for name, (kernel, macros) in ways.items():
            try:
                launch = pointwise_launch(problem, kernel, limits=H100, tuning=macros)
            except ArgumentError:  # of so many filters that no tile fits the registers: the table says so
                assert name.startswith("blocking, channels over")
                continue
            launches[name] = launch.kernel, tuple(sorted(launch.defines.items())), launch.segments
        assert len(set(launches.values())) > 4


def a_result(suite, case, failing=""):
    outcomes = [
        Outcome(way.name, seconds=3e-5 * (i + 1), best_seconds=2e-5 * (i + 1), memory_bytes=int(1e8))
        for i, way in enumerate(suite.contenders(case))
    ]
    outcomes = [
        replace(each, failure="wrong answer, error 1e+0") if each.what == failing else each for each in outcomes
    ]
    timings = tuple(WorkTiming.of(outcome, case, RATES) for outcome in outcomes)
    return WorkResult(case.name, case.group, (), case.fma, case.moved_bytes, 1.0, timings)


def a_record(suite, cases, failing="", *, readings=100, driver="580"):
    results = [a_result(suite, case, failing) for case in cases]
    devices = [{"name": "NVIDIA H100", "driver": driver}]
    return {
        "environment": {"devices": devices, "versions": {"cupy": "14.2.0"}, "date": "2026-11-22"},
        "device": {"name": "NVIDIA H100"},
        "benchmark": suite.name,
        "cases": [result.as_dict() | {"readings": readings, "date": "2026-11-22"} for result in results],
        "timings": [timing.__dict__ for result in results for timing in result.timings],
    }


def test_tables_give_median_and_best_by_group_way_and_case():
    cases = [case for case in REUSE.cases if case.images > 1]
    record = a_record(REUSE, cases)
    group = groups_of(record)["64 images 1024^2"]
    assert list(group["direct"])[:2] == ["3 x 3", "5 x 5"]
    assert list(group["CuPy correlate"]) == ["3 x 3", "5 x 5", "7 x 7", "9 x 9"]
    record["timings"] = [
        each for each in record["timings"] if each["what"] != "direct" or each["case"].endswith(("3 x 3", "5 x 5"))
    ]
    lines = list(tables_of(record))
    direct = next(line for line in lines if line.startswith("direct "))
    assert direct.split()[1:] == ["30/20", "100M", "30/20", "100M", "-", "-"]
    assert lines[-1].endswith(" ways, 0 with a wrong answer")
    quick = next(line for line in tables_of(a_record(REUSE, cases, readings=20)) if line.startswith("direct "))
    assert quick.split()[1] == "30"


def test_a_wrong_answer_is_told_and_has_no_time():
    record = a_record(REUSE, REUSE.cases[:1], failing="both")
    lines = list(tables_of(record))
    assert next(line for line in lines if line.startswith("both")).split() == ["both", "-"]
    assert "1 with a wrong answer; one image 1024^2: 3 x 3, both: wrong answer" in lines[-1]


def test_a_picture_has_a_panel_a_group_a_line_a_way_and_is_the_same_again(tmp_path):
    cases = [case for case in CORRELATION.cases if case.group.startswith("warps per block")]
    record = json.loads(json.dumps(a_record(CORRELATION, cases)))
    for timing in record["timings"]:
        timing["memory_bytes"] = 0
    figure = draw(record)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(groups_of(record))
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert set(lines) == names_of(CORRELATION, "warps per block, warp-shuffle")
    expected = [
        timing["multiple_of_floor"]
        for timing in groups_of(record)["warps per block, warp-shuffle"]["1 warp a block"].values()
    ]
    assert list(lines["1 warp a block"].get_ydata()) == expected
    write_drawing(record, tmp_path / "a.svg")
    write_drawing(record, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "</svg>" in (tmp_path / "a.svg").read_text()


def test_memory_has_panels_of_its_own():
    figure = draw(a_record(IM2WIN, IM2WIN.cases[:2]))
    assert [axes.get_ylabel() for axes in figure.axes] == ["time over the floor", "memory of a call over its arrays"]
    moved = IM2WIN.cases[0].moved_bytes
    assert figure.axes[1].get_lines()[0].get_ydata()[0] == pytest.approx(1e8 / moved)


def test_the_command_writes_record_and_picture_and_prints_tables_last(monkeypatch, tmp_path):
    asked = []

    def measured(console, suite, only, *, quick):
        asked.append((suite.name, only, quick))
        yield a_record(suite, suite.cases_named(only, quick=quick)[:1])

    monkeypatch.setattr(command, "measured", measured)
    monkeypatch.setattr("benchmarks.commands.require_device", lambda: None)
    monkeypatch.setattr("benchmarks.commands.select_device", lambda name: None)
    run = run_benchmarks("ablation", "--document", "reuse", "--document", "im2win", "--quick", "--results", tmp_path)
    assert run.code == 0
    assert asked == [("ablation-reuse", "", True), ("ablation-im2win", "", True)]
    assert run.stdout.splitlines()[0] == "== reuse (ablation_reuse.json)"
    assert {path.name for path in tmp_path.iterdir()} == {
        f"ablation_{name}.{kind}" for name in ("reuse", "im2win") for kind in ("json", "svg")
    }
    assert json.loads((tmp_path / "ablation_reuse.json").read_text())["benchmark"] == "ablation-reuse"


def named_in(record):
    return [case["name"] for case in record["cases"]]


def test_a_record_keeps_what_an_earlier_run_on_the_same_device_measured():
    first, second, third = REUSE.cases[:3]
    earlier = a_record(REUSE, [first, third], readings=100)
    record = joined(a_record(REUSE, [second, third], readings=20), earlier, REUSE)
    assert named_in(record) == [first.name, second.name, third.name]
    assert [case["readings"] for case in record["cases"]] == [100, 20, 20]
    assert [each["case"] for each in record["timings"]] == [
        case.name for case in (first, second, third) for _ in REUSE.contenders(case)
    ]
    new = a_record(REUSE, [second], driver="590")
    assert joined(new, earlier, REUSE) is new
    assert joined(new, None, REUSE) is new
    assert named_in(joined(a_record(REUSE, [second]), earlier, replace(REUSE, cases=(second, third)))) == [
        second.name,
        third.name,
    ]


def test_a_run_that_is_broken_off_keeps_the_groups_that_it_has_finished(monkeypatch, tmp_path):
    groups = {case.group: case for case in REUSE.cases}
    assert len(groups) > 1

    def measured(console, suite, only, *, quick):
        yield a_record(suite, [next(iter(groups.values()))])
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measured", measured)
    with pytest.raises(KeyboardInterrupt):
        command.run_ablation(None, ["reuse"], "", tmp_path, quick=False)
    record = json.loads((tmp_path / "ablation_reuse.json").read_text())
    assert named_in(record) == [next(iter(groups.values())).name]


def test_what_cannot_be_is_refused_before_anything_is_measured(tmp_path):
    assert run_benchmarks("ablation", "--only", "no such case").code == 2
    assert run_benchmarks("ablation", "--results", tmp_path / "missing").code == 2
    assert run_benchmarks("ablation", "--document", "another").code == 2


def test_a_quick_run_takes_fewer_readings_of_fewer_cases(monkeypatch):
    made = {}

    class Benchmark:
        status, rates = None, None

        def __init__(self, suite, *, effort):
            made["repeats"] = effort.clock.repeats

        def time_torch(self, cases):
            made["cases"] = made.get("cases", 0) + len(cases)

        def measure(self, case):
            return case.name

        def record(self, results):
            cases = [{"name": name} for name in results]
            return {"environment": {"date": "2026-11-22"}, "quick": False, "cases": cases}

    monkeypatch.setattr(command, "WorkBenchmark", Benchmark)
    monkeypatch.setattr(command, "compile_ahead", lambda suite, cases: None)
    monkeypatch.setattr(command, "print_ceilings", lambda *_, **__: None)
    console = type("Console", (), {"print": lambda self, *_, **__: None})()
    records = list(command.measured(console, REUSE, "", quick=True))
    assert made == {"repeats": command.QUICK_READINGS, "cases": 4}
    assert [case["readings"] for record in records for case in record["cases"]] == [command.QUICK_READINGS] * 4
    made.clear()
    records = list(command.measured(console, REUSE, "", quick=False))
    assert len(records) == len({case.group for case in REUSE.cases})
    assert {case["readings"] for record in records for case in record["cases"]} == {100}
    assert made["cases"] == len(REUSE.cases)
    assert list(command.measured(console, REUSE, "no such case", quick=False)) == []


def test_shares_of_what_is_compiled_make_the_whole(monkeypatch):
    ran = []
    contenders = [
        type("C", (), {"attempts": staticmethod(lambda case, data, i=i: ran.append((case.name, i)) or ())})()
        for i in range(5)
    ]
    suite = replace(REUSE, contenders=lambda case: iter(contenders), data=lambda case, xp, copies: None)
    monkeypatch.setitem(ALL_SUITES, "ablation-reuse", suite)
    monkeypatch.setattr("xcorr_app.gpu.runtime.device.cuda_status", lambda: type("S", (), {"available": True})())
    pool = type("P", (), {"free_all_blocks": lambda self: None})()
    cupy = type("X", (), {"get_default_memory_pool": staticmethod(lambda: pool)})
    monkeypatch.setattr(ahead.importlib, "import_module", lambda name: cupy)
    names = [case.name for case in REUSE.cases[:3]]
    assert sum(ahead.run_share("ablation-reuse", names, 4, share) for share in range(4)) == 15
    assert sorted(ran) == sorted((name, i) for name in names for i in range(5))
