"""The peak kernels on the device against the definition in float64; records poisoned beforehand by fresh memory."""

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.correlation_definition import pairs_with_a_peak, records_by_definition
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.runtime.types import INPUT_TYPES

pytestmark = NEEDS_DEVICE

LEAST = 12
PROBLEMS = {
    "window inside": Problem((31, 33), (32, 40), (-4, -6), (9, 11), lefts=2, rights=2),
    "window beyond the matrices": Problem((9, 7), (6, 8), (-12, -10), (24, 22)),
    "one-to-many": Problem((65, 63), (63, 100), (-8, -8), (17, 17), rights=5, rights_per_left=5),
    "n-to-m": Problem((33, 32), (31, 33), (-3, -2), (7, 8), lefts=3, rights=4, rights_per_left=4),
    "rows in segments": Problem((257, 100), (257, 100), (-8, -8), (17, 17), rights=3, rights_per_left=3),
    "planes in a workspace": Problem.full_plane((33, 31), (32, 33), lefts=3, rights=3),
    "wider than one block": Problem((65, 64), (65, 64), (-20, -25), (41, 51), lefts=2, rights=4, rights_per_left=2),
}


def poison(cupy):
    """Fill memory that the pool will hand out again."""
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24):
        cupy.full(size // 8, cupy.nan)


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_records_equal_the_definition(cupy, name, normalize, dtype):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem, dtype, seed=11)
    poison(cupy)
    finder = PeakFinder(problem, normalize=normalize, min_overlap_pixels=LEAST)
    records, sums = finder.find(cupy.asarray(lefts), cupy.asarray(rights), problem.rights_per_left)
    again, _ = finder.find(cupy.asarray(lefts), cupy.asarray(rights), problem.rights_per_left)
    if normalize:
        values, moments = rights.astype(np.float64), sums[:, -1, -1].get()
        np.testing.assert_allclose(moments[:, 0], values.sum(axis=(1, 2)), atol=1e-6)
        np.testing.assert_allclose(moments[:, 1], (values**2).sum(axis=(1, 2)))
    found, expected = records.get(), records_by_definition(lefts, rights, problem, normalize, LEAST)
    np.testing.assert_array_equal(found, again.get())
    np.testing.assert_array_equal(found[:, :2], expected[:, :2])
    largest = max(1.0, np.abs(expected[:, 2]).max())
    np.testing.assert_allclose(found[:, 2:], expected[:, 2:], rtol=2e-6, atol=3e-6 * largest)


def test_planes_of_another_variant(cupy):
    problem = PROBLEMS["window inside"]
    lefts, rights = pairs_with_a_peak(problem, seed=3)
    finder = PeakFinder(problem, min_overlap_pixels=LEAST, options=KernelOptions("warp-shuffle"))
    on_device = cupy.asarray(lefts), cupy.asarray(rights)
    found = PeakRecords.of(finder.find(*on_device, problem.rights_per_left)[0])
    expected = records_by_definition(lefts, rights, problem, True, LEAST)
    np.testing.assert_array_equal(np.stack([found.row, found.column], axis=1), expected[:, :2])
    np.testing.assert_allclose(found.around.reshape(-1, 25), expected[:, 4:], atol=3e-6)


def test_many_small_pairs_in_several_parts(cupy, monkeypatch):
    monkeypatch.setattr("xcorr_app.correlation.peak_finder._TABLE_BYTES", 1 << 16)
    problem = Problem((16, 16), (16, 16), (-4, -4), (9, 9), lefts=70, rights=70)
    lefts, rights = pairs_with_a_peak(problem)
    found = PeakFinder(problem, min_overlap_pixels=LEAST).find(cupy.asarray(lefts), cupy.asarray(rights), 1)[0].get()
    expected = records_by_definition(lefts, rights, problem, True, LEAST)
    np.testing.assert_array_equal(found[:, :2], expected[:, :2])
