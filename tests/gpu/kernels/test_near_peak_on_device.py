"""Exact neighbourhoods of peaks and scores from centred sums, on the device, against definition and other kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.definition import planes_by_definition
from tests.kernels.peak_definition import pairs_with_a_peak, records_by_definition
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.near_peak import SHIFTS, near_peak_launch
from xcorr_app.gpu.peaks.search import RECORD, plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.planes import uncentre_launch

pytestmark = NEEDS_DEVICE

LEAST = 12
DEVICE = DeviceLimits()
PROBLEMS = {
    "window inside": Problem((61, 103), (58, 99), (-4, -3), (9, 8), lefts=2, rights=2),
    "window beyond the matrices": Problem((9, 7), (6, 8), (-12, -10), (24, 22)),
    "n-to-m": Problem((33, 47), (35, 45), (-3, -2), (7, 8), lefts=3, rights=4, rights_per_left=4),
    "n-to-mn": Problem((33, 47), (35, 45), (-3, -2), (7, 8), lefts=2, rights=4, rights_per_left=2),
    "odd frames": Problem((300, 511), (301, 509), (-8, -8), (17, 17), rights=3, rights_per_left=3),
    "frames": Problem((512, 500), (510, 512), (-8, -8), (17, 17), rights=5, rights_per_left=5),
}


def made_by(side):
    """Which of the 5 x 5 values a launch makes."""
    return np.abs(np.mgrid[-2:3, -2:3]).max(axis=0) <= side // 2


def started(launch, arrays, numbers):
    function = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    function((launch.blocks,), (launch.threads,), (*arrays, *map(np.int32, numbers)), shared_mem=launch.shared_bytes)


def without_means(images):
    """As float32, exactly: a whole number is taken from each image of integers."""
    means = images.mean(axis=(1, 2), keepdims=True)
    return (images - (means if images.dtype.kind == "f" else means.round())).astype(np.float32)


def of_scores(problem, lefts, rights):
    """Arrays and numbers by which kernels score: tables, edges; the problem's sizes and those of the edges."""
    tables = SummedAreaTables(problem)
    return (tables.left(lefts), tables.right(rights), tables.rows, tables.columns), (*tables.sizes, LEAST)


@pytest.mark.parametrize(
    ("side", "tuning"),
    [
        (5, {}),
        (5, {"STRIP_ROWS": 17}),
        (5, {"AHEAD": 2, "STRIP_ROWS": 40}),
        (3, {}),
        (3, {"STRIP_ROWS": 17}),
        (3, {"AHEAD": 1, "LANES": 8}),
    ],
)
@pytest.mark.parametrize("left_type", ["float32", "uint16"])
@pytest.mark.parametrize("right_type", INPUT_TYPES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_rewritten_records_are_those_of_single_precision(cupy, name, normalize, right_type, left_type, side, tuning):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem, right_type, seed=11)
    if left_type == "uint16":
        lefts = np.rint(lefts * 25 + 200).astype(left_type)
    lefts, rights = cupy.asarray(lefts), cupy.asarray(rights)
    finder = PeakFinder(problem, normalize=normalize, min_overlap_pixels=LEAST)
    # Scores do not change with the means, but the other engine's rounding does: it takes zero means.
    plain = (lefts, rights) if not normalize else (without_means(lefts), without_means(rights))
    expected = finder.find(*plain, problem.rights_per_left)[0].get()
    types = {"left_type": left_type, "right_type": right_type}
    launch = near_peak_launch(problem, side=side, normalize=normalize, device=DEVICE, tuning=tuning, **types)
    expected[:, 4 + np.flatnonzero(~made_by(side))] = np.nan
    arrays, numbers = of_scores(problem, lefts, rights)
    found = []
    for _ in range(2):
        poisoned = expected.copy()
        poisoned[:, 2] = poisoned[:, 4:] = 77
        records = cupy.asarray(poisoned)
        workspace = cupy.full(problem.pairs * launch.segments * SHIFTS, np.nan)
        arrived = cupy.zeros(problem.pairs, np.int32)
        numbers_of_all = (*problem.arguments(), *launch.extra, *numbers)
        started(launch, (lefts, rights, workspace, arrived, *arrays, records), numbers_of_all)
        found.append(records.get())
        assert not arrived.any()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0][:, [0, 1, 3]], expected[:, [0, 1, 3]])
    largest = max(1.0, np.abs(expected[:, 2]).max())
    np.testing.assert_allclose(found[0][:, 4:], expected[:, 4:], rtol=2e-6, atol=1e-5 * largest)
    np.testing.assert_array_equal(found[0][:, 2], found[0][:, 16])


def test_of_two_launches_one_takes_each_record(cupy):
    problem = PROBLEMS["frames"]
    lefts, rights = map(cupy.asarray, pairs_with_a_peak(problem, seed=11))
    exact = PeakFinder(problem, min_overlap_pixels=LEAST).find(lefts, rights, problem.rights_per_left)[0].get()
    poisoned = exact.copy()
    poisoned[:, 2], poisoned[:, 4:] = 0.5, 0.25
    near = np.arange(problem.pairs) % 2 == 0
    poisoned[near, 4 + 24] = 0.4999
    records = cupy.asarray(poisoned)
    arrays, numbers = of_scores(problem, lefts, rights)
    arrived = cupy.zeros(problem.pairs, np.int32)
    for side in (3, 5):
        types = {"left_type": "float32", "right_type": "float32"}
        launch = near_peak_launch(problem, side=side, margin=2e-3, normalize=True, device=DEVICE, **types)
        workspace = cupy.full(problem.pairs * launch.segments * SHIFTS, np.nan)
        arrays_of_all = (lefts, rights, workspace, arrived, *arrays, records)
        started(launch, arrays_of_all, (*problem.arguments(), *launch.extra, *numbers))
    exact[np.ix_(~near, 4 + np.flatnonzero(~made_by(3)))] = np.nan
    np.testing.assert_allclose(records.get(), exact, rtol=2e-6, atol=1e-5)


@pytest.mark.parametrize("name", ["window inside", "window beyond the matrices", "n-to-m", "n-to-mn"])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("uint16", "int16")])
def test_scores_and_plain_sums_from_centred_sums(cupy, name, dtypes):
    problem = PROBLEMS[name]
    matrices, centred = [], []
    for values, dtype in zip(pairs_with_a_peak(problem, seed=4), dtypes, strict=True):
        whole = dtype != "float32"
        values = (np.rint(40 * values + 1000) if whole else values + 1000).astype(dtype)
        centres = np.float32(values.mean(axis=(1, 2), keepdims=True, dtype=np.float64))
        matrices.append(values)
        centred.append(values.astype(np.float64) - (np.rint(centres) if whole else centres))
    planes = cupy.asarray(planes_by_definition(*centred, problem).astype(np.float32))
    lefts, rights = map(cupy.asarray, matrices)
    integers = (dtypes[0] != "float32", dtypes[1] != "float32")
    arrays, numbers = of_scores(problem, lefts, rights)
    records = cupy.full((problem.pairs, RECORD), np.nan)
    launch = plane_peak_launch(problem, normalize=True, device=DEVICE, centred=integers)
    started(launch, (planes, *arrays, records), (*problem.arguments(), *numbers))
    expected = records_by_definition(*matrices, problem, True, LEAST)
    np.testing.assert_array_equal(records.get()[:, :2], expected[:, :2])
    np.testing.assert_allclose(records.get()[:, 2:], expected[:, 2:], atol=3e-6)
    started(uncentre_launch(problem, integers), (planes, *arrays), (*problem.arguments(), *numbers))
    expected = planes_by_definition(*matrices, problem)
    np.testing.assert_allclose(planes.get(), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
