"""The check before every timing accepts the definition and refuses what is wrong, for all three suites."""

import numpy as np
import pytest
from scipy import ndimage

from benchmarks.filters import data as filter_data
from benchmarks.im2win import data as layer_data
from benchmarks.pointwise import data as mixing_data
from tests.benchmarks.small_work import FILTERS, LAYERS, MIXTURES, OTHER_FILTERS
from tests.kernels.im2win_definition import convolution_by_definition


def filtered(case, data):
    stack = data.stacks[0].astype(np.float64)
    if case.sigma:
        whole = ndimage.gaussian_filter(stack, (0, case.sigma, case.sigma), mode=case.boundary)
    else:
        whole = ndimage.correlate(stack, data.taps[None].astype(np.float64), mode=case.boundary)
    return whole if case.element == "float32" else np.rint(whole).astype(case.element)


def assert_refused(expected, right, read):
    """A shift by a column, a wrong last image, a missing row and NaN: each shows in some part."""
    for wrong in (np.roll(right, 1, axis=-1), right * np.float32(1.01), np.full(right.shape, np.nan)):
        assert any(not expected.error(part, read(wrong, part)) <= expected.tolerance for part in expected.parts)
    only_last = right.copy()
    only_last[-1] = only_last[-1][..., ::-1]
    assert any(not expected.error(part, read(only_last, part)) <= expected.tolerance for part in expected.parts)
    part = expected.parts[0]
    assert expected.error(part, read(right, part)[:-1]) == float("inf")


@pytest.mark.parametrize("case", [*FILTERS, *OTHER_FILTERS], ids=lambda case: case.name)
def test_filters(case):
    data = filter_data.random_stack(case, np, 1)
    expected = filter_data.Expected(case, data)
    right = filtered(case, data)
    assert {number for number, _ in expected.parts} == {0, case.images - 1}
    limit = 1e-12 if case.element == "float32" else 5e-4
    for part in expected.parts:
        assert expected.error(part, filter_data.Expected.read_corner(right, part)) < limit
    assert_refused(expected, right, filter_data.Expected.read_corner)
    channel = right[:, None]  # as conv2d returns it
    assert expected.error(expected.parts[-1], filter_data.Expected.read_corner(channel, expected.parts[-1])) < limit


def test_corners_of_one_image():
    case = OTHER_FILTERS[1]
    data = filter_data.random_stack(case, np, 1)
    expected = filter_data.Expected(case, data)
    image = filtered(case, data)[0]
    for part in expected.parts:
        assert expected.error(part, filter_data.Expected.read_corner_of_one(image, part)) < 1e-12


def test_taps_are_of_full_rank_and_counts_of_twelve_bits():
    case = FILTERS[6]
    data = filter_data.random_stack(case, np, 1)
    assert np.linalg.matrix_rank(data.taps.astype(np.float64)) == 7
    assert data.taps.sum() == pytest.approx(1)
    assert data.stacks[0].dtype == np.uint16
    assert 2000 < data.stacks[0].max() < filter_data.COUNTS


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_layers(case):
    data = layer_data.random_layer(case, np, 1)
    expected = layer_data.Expected(case, data)
    right = convolution_by_definition(data.images[0], data.filters[0], case.problem)
    assert right.shape == case.problem.out_shape
    for part in expected.parts:
        assert expected.error(part, layer_data.Expected.read_row(right, part)) < 1e-6
    if right.shape[-1] > 1:
        assert_refused(expected, right, layer_data.Expected.read_row)


@pytest.mark.parametrize("case", MIXTURES, ids=lambda case: case.name)
def test_mixtures(case):
    data = mixing_data.random_mixing(case, np, 1)
    expected = mixing_data.Expected(case, data)
    right = np.einsum("fc,nchw->nfhw", data.matrix.astype(np.float64), data.stacks[0].astype(np.float64))
    if case.result != "float32":
        right = np.clip(np.rint(right), 0, 65535).astype(np.uint16)
    read = mixing_data.Expected.read_planar
    for part in expected.parts:
        assert expected.error(part, read(right, part)) < 1e-12
        interleaved = right.reshape(case.images, case.filters, -1).transpose(0, 2, 1)
        assert expected.error(part, mixing_data.Expected.read_interleaved(interleaved, part)) < 1e-12
    assert_refused(expected, right, read)
    np.testing.assert_allclose(data.matrix.sum(1), 1, rtol=1e-5)
