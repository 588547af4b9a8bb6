"""PyTorch's contenders give the right answer on the host and on a device, and in-process peers what they should."""

import importlib
from functools import partial

import numpy as np
import pytest

from benchmarks.filters.data import Expected as ExpectedFilter
from benchmarks.filters.data import random_stack
from benchmarks.filters.torch_peers import TorchFilter
from benchmarks.harness.suites import SUITES
from benchmarks.im2win.cases import Im2winCase
from benchmarks.im2win.data import Expected as ExpectedLayer
from benchmarks.im2win.data import random_layer
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.data import Expected as ExpectedMixture
from benchmarks.pointwise.data import random_mixing
from benchmarks.pointwise.torch_peers import FORMS, mixed
from tests.benchmarks.small_work import FILTERS, LAYERS, MIXTURES, OTHER_FILTERS
from xcorr_app.gpu.im2win.problem import Im2winProblem


@pytest.fixture(params=[pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)])
def as_tensor(request):
    torch = pytest.importorskip("torch")
    return lambda array: torch.as_tensor(
        array.view(np.int16) if array.dtype == np.uint16 else array, device=request.param
    )


@pytest.mark.parametrize("case", [*FILTERS, *OTHER_FILTERS[:2]], ids=lambda case: case.name)
def test_filters(as_tensor, case):
    data = random_stack(case, np, 1)
    expected = ExpectedFilter(case, data)
    stack = as_tensor(data.stacks[0])[:, None]
    if case.name == "long gaussian":
        with pytest.raises(RuntimeError):  # padding beyond the image
            TorchFilter(case, data.taps, stack.device)(stack)
        return
    result = TorchFilter(case, data.taps, stack.device)(stack)
    assert result.dtype == stack.dtype
    limit = 1e-6 if case.element == "float32" else 1e-4
    for part in expected.parts:
        assert expected.error(part, ExpectedFilter.read_corner(result, part)) < limit


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_layers(as_tensor, case):
    torch = importlib.import_module("torch")
    data = random_layer(case, np, 1)
    expected = ExpectedLayer(case, data)
    torch.backends.cudnn.allow_tf32 = False
    result = torch.nn.functional.conv2d(
        as_tensor(data.images[0]), as_tensor(data.filters[0]), stride=case.problem.stride
    )
    assert result.shape == case.problem.out_shape
    for part in expected.parts:
        assert expected.error(part, ExpectedLayer.read_row(result, part)) < 1e-6


@pytest.mark.parametrize("form", FORMS.values())
@pytest.mark.parametrize("case", MIXTURES, ids=lambda case: case.name)
def test_mixtures(as_tensor, case, form):
    torch = importlib.import_module("torch")
    data = random_mixing(case, np, 1)
    expected = ExpectedMixture(case, data)
    stack, matrix = as_tensor(data.stacks[0]), as_tensor(data.matrices[0])
    read = ExpectedMixture.read_planar
    if form == "interleaved":
        stack, read = stack.flatten(2).transpose(1, 2).contiguous(), ExpectedMixture.read_interleaved
    elif form == "channels last":
        stack = stack.to(memory_format=torch.channels_last)
    before = stack.clone()
    torch.backends.cudnn.allow_tf32 = False
    result = mixed(form, case.result, stack, matrix)
    assert torch.equal(stack, before)
    for part in expected.parts:
        assert expected.error(part, read(result, part)) < (1e-6 if case.result == "float32" else 3e-4)


def names(suite, case):
    return [contender.name for contender in SUITES[suite].contenders(case)]


def test_who_takes_part():
    of_torch = partial(SUITES["filter"].of_torch, search=True)
    assert names("filter", FILTERS[0]) == ["filter_taps", "filter_on_device", "CuPy correlate"]
    assert names("filter", FILTERS[7]) == ["filter_taps", "separable_on_device", "CuPy gaussian_filter"]
    assert names("filter", OTHER_FILTERS[0]) == ["filter_taps", "sliding_gaussian_on_device", "CuPy gaussian_filter"]
    assert names("filter", OTHER_FILTERS[1]) == ["filter_taps", "filter_on_device", "CuPy correlate"]
    assert names("filter", OTHER_FILTERS[2]) == ["filter_on_device"]
    assert [len(list(of_torch(case))) for case in (*FILTERS, *OTHER_FILTERS)] == [1] * len(FILTERS) + [0, 1, 0]
    assert names("im2win", LAYERS[0]) == ["im2win_on_device", "kernel im2win", "kernel implicit", "kernel shallow"]
    deep = Im2winCase(name="deep", problem=Im2winProblem(1, 8, 9, 9, 4, 3, 3))
    assert names("im2win", deep) == ["im2win_on_device", "kernel im2win", "kernel implicit"]
    assert names("pointwise", MIXTURES[0]) == ["pointwise_on_device", "CuPy matmul"]
    for filters, other in ((30, "mix"), (40, "tiled")):
        few = PointwiseCase(name="few", images=1, channels=24, filters=filters, side=4)
        assert names("pointwise", few)[:3] == ["pointwise_on_device", "kernel shallow", f"kernel {other}"]


@pytest.mark.parametrize(
    ("suite", "case"),
    [
        *(("filter", case) for case in (*FILTERS, *OTHER_FILTERS)),
        *(("im2win", case) for case in LAYERS),
        *(("pointwise", case) for case in MIXTURES),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_names_are_unique_and_auto_is_among_the_products_own(suite, case):
    contenders = list(SUITES[suite].contenders(case))
    assert len({contender.name for contender in contenders}) == len(contenders)
    choices = [contender.choice for contender in contenders if contender.own]
    assert len(set(choices)) == len(choices)
    assert "auto" in choices
