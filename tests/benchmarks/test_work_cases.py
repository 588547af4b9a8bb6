"""The cases of filters, Im2win and pointwise layers: arithmetic, what was promised, and enough copies for the cache."""

from itertools import groupby

import numpy as np
import pytest

from benchmarks.filters.cases import CASES as FILTER_CASES
from benchmarks.filters.data import random_stack
from benchmarks.filters.own import ablation_steps
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.suites import SUITES
from benchmarks.im2win.cases import AHEAD_OF_CUDNN
from benchmarks.im2win.cases import CASES as IM2WIN_CASES
from benchmarks.im2win.data import random_layer
from benchmarks.pointwise.cases import BATCHES, layer_group
from benchmarks.pointwise.cases import CASES as POINTWISE_CASES
from benchmarks.pointwise.data import random_mixing
from benchmarks.pointwise.layers import EFFICIENTNET_B0, MOBILENET_V1, MOBILENET_V2
from benchmarks.pointwise.layers import LAYERS as POINTWISE_LAYERS
from benchmarks.pointwise.own import tunings
from benchmarks.work.case import CACHE_BYTES
from tests.benchmarks.small_work import FILTERS, LAYERS, MIXTURES
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.kernels import KERNELS, pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem

RATES = DeviceRates(fma=31.7e12, copy=4.24e12, empty=5e-7)


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_names_are_unique_and_a_quick_run_holds_some_cases(suite):
    names = [case.name for case in suite.cases]
    assert len(set(names)) == len(names)
    assert suite.cases_named("", quick=False) == list(suite.cases)
    quick = suite.cases_named("", quick=True)
    assert 0 < len(quick) < len(suite.cases)
    left_out = next(case for case in suite.cases if case not in quick)
    assert left_out in suite.cases_named(left_out.name, quick=True)
    assert suite.cases_named("no such case", quick=False) == []


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_a_groups_cases_stand_together(suite):
    groups = [group for group, _ in groupby(case.group for case in suite.cases) if group]
    assert len(set(groups)) == len(groups)
    assert set(suite.mean_goals) <= set(groups)


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_copies_overflow_the_cache(suite):
    for case in suite.cases:
        assert case.copies * case.moved_bytes >= CACHE_BYTES
        assert case.copies == 1 or (case.copies - 1) * case.moved_bytes <= CACHE_BYTES


def arrays_of(case, data):
    match case:
        case _ if case in FILTERS:
            return [data.stacks[0], data.stacks[0]]
        case _ if case in LAYERS:
            return [data.images[0], data.filters[0], np.empty(case.problem.out_shape, np.float32)]
        case _:
            stack = data.stacks[0]
            return [stack, data.matrices[0], np.empty((case.images, case.filters, *stack.shape[2:]), case.result)]


@pytest.mark.parametrize(
    ("case", "maker"),
    [
        *((case, random_stack) for case in FILTERS),
        *((case, random_layer) for case in LAYERS),
        *((case, random_mixing) for case in MIXTURES),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_bytes_are_those_of_the_arrays(case, maker):
    data = maker(case, np, 1)
    assert case.moved_bytes == sum(array.nbytes for array in arrays_of(case, data))
    again = maker(case, np, 3)
    copies = again.images if case in LAYERS else again.stacks
    assert len(copies) == 3
    assert len({copy.ctypes.data for copy in copies}) == 3
    for copy in copies:
        np.testing.assert_array_equal(copy, copies[0])


def test_floors_are_those_of_the_published_tables():
    floors = {case.name: case.floor_seconds(RATES) for suite in SUITES.values() for case in suite.cases}
    millisecond = pytest.approx
    assert floors["unmix 2 -> 2, 16 x 2048^2 float32"] * 1e3 == millisecond(0.253, rel=5e-3)
    assert floors["unmix 8 -> 8, 16 x 2048^2 float32"] * 1e3 == millisecond(1.01, rel=5e-3)
    assert floors["unmix 32 -> 32, 16 x 2048^2 float32"] * 1e3 == millisecond(4.05, rel=5e-3)
    assert floors["unmix 4 -> 4, 16 x 2048^2 uint16 to float32"] * 1e3 == millisecond(0.38, rel=5e-3)
    assert floors["one image 4096^2 float32 3x3"] * 1e6 == millisecond(32, rel=2e-2)
    assert floors["one image 4096^2 float32 31x31"] * 1e6 == millisecond(508, rel=2e-2)
    stack = 64 * 1024**2
    assert floors["64 x 1024^2 uint16 3x3"] == pytest.approx(stack * 4 / 4.24e12)
    assert floors["64 x 1024^2 float32 15x15"] == pytest.approx(stack * 225 / 31.7e12)
    assert floors["64 x 1024^2 float32 gaussian sigma 250"] == pytest.approx(stack * 8 / 4.24e12)


def test_best_published_shares_of_cudnn_follow_from_the_counts():
    """1.088 ms of layer 1 are 39 % of the rate, 26.85 ms of layer 4 are 36 %, 0.504 ms of layer 12 are 47 %."""
    by_number = dict(enumerate(IM2WIN_CASES[:12], start=1))
    for number, milliseconds, share in ((1, 1.088, 0.39), (4, 26.85, 0.36), (8, 5.45, 0.66), (12, 0.504, 0.47)):
        assert by_number[number].fma / (milliseconds * 1e-3) / 31.7e12 == pytest.approx(share, abs=6e-3)


def test_every_promise_about_filters_has_a_case():
    dense = {(case.images, case.height, case.rows, case.element) for case in FILTER_CASES if case.task == "dense"}
    assert {(64, 1024, side, "float32") for side in (3, 5, 7, 9, 11, 15, 21, 31)} <= dense
    assert {(64, 1024, side, "uint16") for side in (3, 5, 7, 9, 31)} <= dense
    assert {(1, 4096, side, "float32") for side in (3, 7, 15, 31)} <= dense
    assert {(16, 1024, side, "float32") for side in range(1, 64)} <= dense
    gaussians = {(case.sigma, case.element) for case in FILTER_CASES if case.task == "gaussian"}
    assert gaussians == {(sigma, element) for sigma in (1, 2, 4, 8, 64, 250) for element in ("float32", "uint16")}
    goals = {case.name: [(goal.measure, goal.bound) for goal in case.goals] for case in FILTER_CASES}
    assert ("floor multiple", 1.15) in goals["64 x 1024^2 float32 3x3"]
    assert ("floor multiple", 1.25) in goals["64 x 1024^2 uint16 5x5"]
    assert ("floor multiple", 1.6) in goals["width 63"]
    assert ("peer speed", 10.0) in goals["one image 4096^2 float32 15x15"]
    assert sum(case.task == "call" for case in FILTER_CASES) == 1


def test_the_ablation_goes_from_no_reuse_to_the_kernel_that_ships():
    steps = ablation_steps()
    switches = [(tuning.get("COLUMN_REUSE"), tuning.get("ROW_REUSE")) for _, tuning in steps.values()]
    assert switches == [(0, 0), (1, 0), (0, 1), (1, 1), (None, None)]
    assert [kernel for kernel, _ in steps.values()] == [*["exchange"] * 4, "reuse"]


def test_twelve_layers_of_im2win():
    layers = [case for case in IM2WIN_CASES if not case.ablation]
    assert len(layers) == 12
    assert layers[3].name == "layer 04: 64x224|64,7,2"
    ahead = [
        number for number, case in enumerate(layers, 1) if any(goal.measure == "peer speed" for goal in case.goals)
    ]
    assert tuple(ahead) == AHEAD_OF_CUDNN
    assert all((goal.measure, goal.bound) != ("rate fraction", 0) for case in layers for goal in case.goals)
    assert sum(case.ablation for case in IM2WIN_CASES) == 1


def test_forty_one_layers_of_three_networks():
    assert (len(MOBILENET_V1), len(MOBILENET_V2), len(EFFICIENTNET_B0)) == (9, 19, 13)
    assert len(set(POINTWISE_LAYERS)) == len(POINTWISE_LAYERS) == 41
    for batch in BATCHES:
        members = [case for case in POINTWISE_CASES if case.group == layer_group(batch)]
        assert [(case.channels, case.filters, case.side) for case in members] == list(POINTWISE_LAYERS)
        assert {case.images for case in members} == {batch}


def bottlenecks(stages, first_channels, first_side):
    """Pointwise layers of inverted bottlenecks; of each stage expansion, channels, repeats and stride."""
    layers, channels, side = set(), first_channels, first_side
    for expansion, out, repeats, stride in stages:
        for repeat in range(repeats):
            wide = channels * expansion
            if expansion > 1:
                layers.add((channels, wide, side))
            side //= stride if repeat == 0 else 1
            layers.add((wide, out, side))
            channels = out
    return layers | {(channels, 1280, side)}


def test_layers_follow_from_the_papers_tables():
    separable = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    separable += [(512, 512, 1)] * 5 + [(512, 1024, 2), (1024, 1024, 1)]
    side, v1 = 112, set()
    for channels, filters, stride in separable:
        side //= stride
        v1.add((channels, filters, side))
    v2 = bottlenecks(
        [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)],
        32,
        112,
    )
    b0 = bottlenecks(
        [(1, 16, 1, 1), (6, 24, 2, 2), (6, 40, 2, 2), (6, 80, 3, 2), (6, 112, 3, 1), (6, 192, 4, 2), (6, 320, 1, 1)],
        32,
        112,
    )
    assert set(MOBILENET_V1) == v1
    assert set(MOBILENET_V2) == v2
    assert set(EFFICIENTNET_B0) == b0 - v2


@pytest.mark.parametrize(
    "case", [case for case in POINTWISE_CASES if case.task == "ablation"], ids=lambda case: case.name
)
def test_the_ablation_of_pointwise_layers_is_of_what_it_says(case):
    problem = PointwiseProblem(case.images, case.channels, case.filters, case.pixels)
    counts = []
    for name, (kernel, tuning) in tunings(case).items():
        assert name.startswith(f"{kernel}, ")
        try:
            launch = pointwise_launch(problem, kernel, tuning=tuning)
        except ArgumentError:
            continue  # a line of the table
        assert launch.kernel in KERNELS[kernel].sources
        assert tuning.items() <= launch.defines.items()
        counts += [launch.defines["CHANNEL_COUNT"]] if kernel == "blocking" else []
    assert len(set(counts)) == len(counts) >= 3
    chosen = pointwise_launch(problem, "blocking").defines["CHANNEL_COUNT"]
    assert chosen in counts
