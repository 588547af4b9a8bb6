"""Peers give the right plane and the right peak: a comparison with a wrong peer would mean nothing."""

import importlib

import numpy as np
import pytest

from benchmarks.correlation.data import random_data
from benchmarks.correlation.fft_geometry import Layout
from benchmarks.correlation.padded_fft import PaddedFFT
from benchmarks.correlation.pruned_fft import PrunedFFT, inverse_matrices
from benchmarks.correlation.registration_fft import FFTRegistration, pushed_out
from benchmarks.correlation.single_calls import from_circular
from tests.benchmarks.small_cases import PEAKS, PLANES, REGISTRATIONS
from tests.correlation import plain
from tests.kernels.definition import plane_by_definition
from xcorr_app.correlation.problem import window_of
from xcorr_app.gpu.direct.problem import Problem


@pytest.fixture(params=[pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)])
def torch_device(request):
    pytest.importorskip("torch")
    return request.param


def tensors(layout, data, device):
    torch = importlib.import_module("torch")
    return (
        torch.as_tensor(np.ascontiguousarray(array), device=device) for array in layout.by_role(data.lefts, data.rights)
    )


def numpy_fft(layout, chunk):
    return PaddedFFT(np, lambda shape: np.zeros(shape, np.float32), layout, chunk)


def expected_plane(case, data, pair):
    problem = case.problem
    left, right = data.lefts[pair // problem.rights_per_left], data.rights[pair % problem.rights]
    return plane_by_definition(left, right, problem.first_shift, problem.plane_shape)


def expected_scores(case, data, pair):
    return plain.zncc(data.lefts[0], data.rights[pair], window_of(case.problem))


@pytest.mark.parametrize("chunk", [1, 2, 1000])
@pytest.mark.parametrize("case", PLANES, ids=lambda case: case.name)
def test_padded_planes(case, chunk):
    data, layout = random_data(case, np), Layout.of(case.problem)
    planes = numpy_fft(layout, min(chunk, layout.moving)).planes(*layout.by_role(data.lefts, data.rights))
    for pair in range(case.problem.pairs):
        np.testing.assert_allclose(layout.read_plane(planes, pair), expected_plane(case, data, pair), atol=1e-4)


@pytest.mark.parametrize("case", PEAKS, ids=lambda case: case.name)
def test_padded_peaks(case):
    data, layout = random_data(case, np), Layout.of(case.problem)
    found = numpy_fft(layout, 4).peaks(*layout.by_role(data.lefts, data.rights))
    for pair in range(case.problem.pairs):
        assert layout.read_index(found, pair) == expected_plane(case, data, pair).argmax()


@pytest.mark.parametrize("case", PEAKS, ids=lambda case: case.name)
def test_larger_grids_change_nothing(case):
    data, smallest = random_data(case, np), Layout.of(case.problem)
    layouts = list(smallest.on_grids(4))
    assert len({layout.grid for layout in layouts}) == 4
    for layout in layouts:
        planes = numpy_fft(layout, 3).planes(*layout.by_role(data.lefts, data.rights))
        plane = expected_plane(case, data, 1)
        np.testing.assert_allclose(layout.read_plane(planes, 1), plane, atol=1e-5 * abs(plane).max())


@pytest.mark.parametrize("grid", [(12, 10), (15, 9), (8, 16)])
def test_the_pruned_inverse_is_the_corner_of_the_whole_one(grid):
    values = np.random.default_rng(3).normal(size=grid)
    spectrum = np.fft.rfft2(values)
    parts = np.stack((spectrum.real, spectrum.imag), axis=2).reshape(grid[0], -1)
    by_row, by_column = inverse_matrices(grid, (5, 4))
    np.testing.assert_allclose((by_row @ parts).reshape(5, -1) @ by_column, values[:5, :4], atol=1e-5)


@pytest.mark.parametrize("chunk", [4, 100])
@pytest.mark.parametrize("case", PEAKS, ids=lambda case: case.name)
def test_pruned_peaks(torch_device, case, chunk):
    torch = importlib.import_module("torch")
    data, layout = random_data(case, np), Layout.of(case.problem)
    before = torch.get_float32_matmul_precision()
    found = PrunedFFT(layout, min(chunk, layout.moving), torch_device).peaks(*tensors(layout, data, torch_device))
    assert torch.get_float32_matmul_precision() == before
    for pair in range(case.problem.pairs):
        assert layout.read_index(found, pair) == expected_plane(case, data, pair).argmax()


@pytest.mark.parametrize("case", REGISTRATIONS, ids=lambda case: case.name)
def test_registration_scores_and_peaks(torch_device, case):
    data = random_data(case, np)
    for layout in Layout.of(case.problem).on_grids(2):
        frames, reference = tensors(layout, data, torch_device)
        registration = FFTRegistration(reference[0], layout, 4)
        scores = registration.scores(frames[:4])
        found = registration.peaks(frames)
        for pair in range(case.problem.pairs):
            expected = expected_scores(case, data, pair)
            assert layout.read_index(found, pair) == expected.argmax()
            if pair < 4:
                np.testing.assert_allclose(layout.read_plane(scores, pair), expected, atol=2e-5)


def test_lines_pushed_out_of_an_overlap():
    assert pushed_out(np.array([-2, 0, 1]), 2).tolist() == [[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_a_circular_plane_is_brought_into_the_windows_order():
    problem = Problem.full_plane((4, 5), (4, 5))
    left, right = np.random.default_rng(0).random((2, 4, 5))
    circular = np.fft.irfft2(np.fft.rfft2(left, s=(8, 10)) * np.fft.rfft2(right, s=(8, 10)).conj(), s=(8, 10))
    expected = plane_by_definition(left, right, problem.first_shift, problem.plane_shape)
    np.testing.assert_allclose(from_circular(circular, problem), expected, atol=1e-12)
