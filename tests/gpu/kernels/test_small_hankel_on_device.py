"""Peaks of small matrices found by one block a pair, on a device against float64: values in single precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.gpu.kernels.test_hankel_on_device import sums
from tests.kernels.peak_definition import pairs_with_a_peak, record_by_definition
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch

pytestmark = NEEDS_DEVICE

LEAST = 12
RING = np.pad(np.zeros((3, 3), bool), 1, constant_values=True).ravel()
PROBLEMS = {
    "window of the benchmark": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=40, rights=40),
    "full plane": Problem.full_plane((32, 32), (32, 32), lefts=20, rights=20),
    "full plane of few": Problem.full_plane((16, 16), (16, 16), lefts=7, rights=7),
    "one-to-many": Problem((48, 64), (40, 52), (-7, -5), (15, 9), rights=9, rights_per_left=9),
    "many over one right": Problem((21, 36), (23, 40), (-6, -9), (13, 17), lefts=5),
    "n-to-m": Problem((15, 16), (14, 17), (-7, 3), (18, 9), lefts=4, rights=3, rights_per_left=3),
    "columns off quads": Problem((31, 37), (33, 35), (-9, -6), (17, 21), lefts=3, rights=6, rights_per_left=2),
    "beyond the matrices": Problem((9, 7), (6, 8), (-12, -40), (30, 66)),
    "parts along x": Problem((12, 40), (10, 60), (-9, -59), (21, 99), lefts=2, rights=2),
}


def is_small(problem, left_type, right_type):
    device = device_limits(current_device())
    return small_hankel_launch(problem, left_type=left_type, right_type=right_type, device=device) is not None


def counted(planes, problem):
    """Sums of shifts whose overlap counts; NaN for the others."""
    overlaps = np.outer(problem.overlaps(0), problem.overlaps(1))
    return np.where(overlaps >= LEAST, planes, np.nan)


def assert_peaks(cupy, lefts, rights, problem):
    """Places are right but where the record says that it does not know; values are those of the place."""
    assert is_small(problem, str(lefts.dtype), str(rights.dtype))
    finder = PeakFinder(problem, normalize=False, min_overlap_pixels=LEAST, engine="tensor", kernel="small-peaks")
    on_device = cupy.asarray(lefts), cupy.asarray(rights)
    for size in (1 << 12, 1 << 16, 1 << 20):  # memory that the pool hands out again
        cupy.full(size, cupy.nan)
    records = finder.find(*on_device, problem.rights_per_left)[0].get()
    np.testing.assert_array_equal(records, finder.find(*on_device, problem.rights_per_left)[0].get())
    lefts, rights = lefts.astype(np.float64), rights.astype(np.float64)
    planes = counted(sums(lefts, rights, problem), problem)
    undecided = records[:, 0] < 0
    for pair, record in enumerate(records):
        expected = record_by_definition(planes[pair])
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        norm = np.sqrt((left**2).sum() * (right**2).sum())
        if undecided[pair]:
            assert planes[pair, int(-1 - record[0]), int(record[1])] >= expected[2] - 2e-3 * norm
            continue
        if expected[2] - planes[pair, int(record[0]), int(record[1])] < 1e-6 * norm:  # a tie, or the same place
            expected[:2] = record[:2]
        np.testing.assert_array_equal(record[:2], expected[:2])
        around = np.pad(planes[pair], 2, constant_values=np.nan)
        around = around[int(record[0]) :, int(record[1]) :][:5, :5].ravel()
        if np.isnan(record[4:][RING]).all():  # half precision told that they are lower
            assert not (around[RING] >= around[12]).any()
            around = np.where(RING, np.nan, around)
        np.testing.assert_allclose(record[4:], around, rtol=0, atol=1e-6 * norm)
        assert record[2] == record[16]
        np.testing.assert_allclose(record[3], expected[3], rtol=0, atol=1e-3 * norm)
    return undecided


@pytest.mark.parametrize("name", PROBLEMS)
def test_pairs_with_a_peak(cupy, name):
    problem = PROBLEMS[name]
    assert assert_peaks(cupy, *pairs_with_a_peak(problem, seed=3), problem).sum() <= 1  # a rival may be near


@pytest.mark.parametrize("right", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("left", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("name", ["one-to-many", "columns off quads", "n-to-m"])
def test_every_type(cupy, name, left, right):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem, seed=4)
    to_type = {"float32": lambda m: m, "int16": lambda m: m * 900}
    lefts, rights = (
        np.rint(to_type.get(kind, lambda m: np.clip(m * 25 + 120, 0, 255))(matrices)).astype(kind)
        for kind, matrices in ((left, lefts), (right, rights))
    )
    assert_peaks(cupy, lefts, rights, problem)


@pytest.mark.parametrize("name", ["window of the benchmark", "full plane"])
def test_noise(cupy, name):
    """No peak stands out; where two are so close that half precision may take the wrong one, records say so."""
    problem = replace(PROBLEMS[name], lefts=600, rights=600)
    rng = np.random.default_rng(5)
    lefts = rng.normal(size=(problem.lefts, *problem.left_shape)).astype(np.float32)
    rights = rng.normal(size=(problem.rights, *problem.right_shape)).astype(np.float32)
    finder = PeakFinder(problem, normalize=False, min_overlap_pixels=LEAST, engine="tensor", kernel="small-peaks")
    records = finder.find(cupy.asarray(lefts), cupy.asarray(rights), 1)[0].get()
    planes = counted(sums(lefts.astype(float), rights.astype(float), problem), problem)
    inside = np.pad(np.ones(np.subtract(problem.plane_shape, 2), bool), 1)  # a higher value on the rim is not noticed
    for record, plane in zip(records, planes, strict=True):
        row = int(record[0] if record[0] >= 0 else -1 - record[0])
        value = plane[row, int(record[1])]
        np.testing.assert_allclose(record[2], value, rtol=0, atol=1e-5 * np.prod(problem.left_shape))
        assert value > np.nanmax(plane) * 0.995
        if record[0] >= 0:
            assert value >= np.nanmax(plane[inside]) - 1e-6 * np.prod(problem.left_shape)
    assert 0 < (records[:, 0] < 0).sum() < 0.5 * problem.pairs


HARD = {
    "large offset": lambda m: m + np.float32(1e4),
    "huge": lambda m: m * np.float32(1e15),
    "tiny": lambda m: m * np.float32(1e-15),
    "one hot pixel": lambda m: (m % 5).round() + 65535 * (np.arange(m[0].size).reshape(m.shape[1:]) == 777),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", ["window of the benchmark", "full plane"])
def test_hard_values(cupy, name, kind):
    problem = PROBLEMS[name]
    lefts, rights = (HARD[kind](matrices).astype(np.float32) for matrices in pairs_with_a_peak(problem, seed=6))
    assert_peaks(cupy, lefts, rights, problem)


def test_constant_matrices(cupy):
    problem = PROBLEMS["columns off quads"]
    lefts = np.full((problem.lefts, *problem.left_shape), 0.25, np.float32)
    rights = np.full((problem.rights, *problem.right_shape), 3, np.uint8)
    rights[1] = 0
    assert_peaks(cupy, lefts, rights, problem)
