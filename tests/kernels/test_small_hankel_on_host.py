"""The kernel that finds peaks of small matrices, its own source run on the host, against the definition in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.peak_definition import pairs_with_a_peak, records_by_definition
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.search import RECORD
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch

DEVICE = DeviceLimits(132, 227 * 1024)
LEAST = 12
RING = np.pad(np.zeros((3, 3), bool), 1, constant_values=True).ravel()
PROBLEMS = {
    "window of the benchmark": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=2, rights=2),
    "full plane": Problem.full_plane((32, 32), (32, 32), lefts=2, rights=2),
    "columns off quads": Problem((31, 37), (33, 35), (-9, -6), (17, 21), lefts=2, rights=2),
    "one-to-many": Problem((48, 64), (40, 52), (-7, -5), (15, 9), rights=3, rights_per_left=3),
    "many over one right": Problem((21, 36), (23, 40), (-6, -9), (13, 17), lefts=3),
    "n-to-m": Problem((15, 16), (14, 17), (-7, 3), (18, 9), lefts=2, rights=3, rights_per_left=3),
    "n-to-mn": Problem((9, 33), (8, 31), (-3, -2), (7, 4), lefts=2, rights=6, rights_per_left=3),
    "beyond the matrices": Problem((9, 7), (6, 8), (-12, -40), (30, 66)),
    "parts along x": Problem((12, 40), (10, 60), (-9, -59), (21, 99)),
    "shifts to one side": Problem((33, 34), (20, 18), (5, 7), (20, 23)),
    "same size": Problem((21, 24), (21, 24), (-7, -9), (16, 21), lefts=2, rights=2),
    "same size off quads": Problem((22, 27), (22, 27), (-20, -5), (41, 12), lefts=2, rights=2),
    "same size, beyond": Problem((24, 24), (24, 24), (-25, -12), (52, 44), lefts=2, rights=2),
    "lone column beyond": Problem((40, 48), (40, 48), (-45, -50), (91, 17), lefts=2, rights=2),
    "one row": Problem((1, 40), (1, 44), (-1, -20), (3, 41)),
    "one element": Problem((1, 1), (1, 1), (0, 0), (1, 1)),
}


def records_on_host(folder, lefts, rights, problem, *, tuning=None, least=LEAST):
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    launch = small_hankel_launch(problem, device=DEVICE, tuning=tuning, **types)
    records = guarded(np.full((problem.pairs, RECORD), np.nan))
    numbers = (problem.rights_per_left, problem.rights, least)
    run_kernel(folder, launch, (guarded(lefts), guarded(rights), records), numbers)
    assert guards_are_whole(records)
    return records


def assert_same(records, lefts, rights, problem, *, least=LEAST):
    """Values in single precision, the outer 16 only where one is near the peak; the rival's in half precision.

    A rival closer to the peak than rounding may move both marks the record, whichever of them it holds. Returns which.
    """
    expected = records_by_definition(lefts, rights, problem, False, least)
    marked = records[:, 0] < 0
    records = np.where(marked[:, None] & (np.arange(RECORD) == 0), -1 - records, records)
    for pair, record in enumerate(records):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        norm = np.sqrt((left.astype(float) ** 2).sum() * (right.astype(float) ** 2).sum())
        if marked[pair]:
            assert expected[pair, 2] - expected[pair, 3] < 2**-8 * norm
            if (record[:2] != expected[pair, :2]).any():
                assert 0 < expected[pair, 2] - record[2] < 2**-9 * norm
                continue
        np.testing.assert_array_equal(record[:2], expected[pair, :2])
        around = expected[pair, 4:]
        if np.isnan(record[4:][RING]).all():
            assert not (around[RING] >= around[12]).any()
            around = np.where(RING, np.nan, around)
        np.testing.assert_allclose(record[4:], around, rtol=0, atol=1e-6 * norm)
        assert record[2] == record[16] or np.isnan(record[2])
        np.testing.assert_allclose(record[3], expected[pair, 3], rtol=0, atol=1e-3 * norm)
    return marked


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "window",
    [
        Problem((31, 37), (33, 35), (-9, -6), (17, 21)),
        Problem((40, 36), (34, 44), (-20, -30), (40, 33)),
        Problem((20, 50), (25, 49), (-24, -47), (44, 95)),
        Problem((44, 40), (44, 40), (-23, -30), (37, 62)),
    ],
)
def test_rivals_anywhere(host_builds, window):
    """In noise rivals are as high as peaks, all over the window: every part of the sums shows."""
    problem = replace(window, lefts=12, rights=12)
    rng = np.random.default_rng(3)
    lefts = rng.normal(size=(12, *problem.left_shape)).astype(np.float32)
    rights = rng.normal(size=(12, *problem.right_shape)).astype(np.float32)
    assert_same(records_on_host(host_builds, lefts, rights, problem), lefts, rights, problem)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", ["columns off quads", "one-to-many"])
def test_every_type(host_builds, name, dtype):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem, dtype, seed=4)
    assert_same(records_on_host(host_builds, lefts, rights, problem), lefts, rights, problem)
    lefts = np.rint(lefts * 20 + 100).astype(dtype)
    assert_same(records_on_host(host_builds, lefts, rights, problem), lefts, rights, problem)


def test_constant_matrices(host_builds):
    problem = PROBLEMS["columns off quads"]
    lefts = np.full((2, *problem.left_shape), 0.25, np.float32)
    rights = np.full((2, *problem.right_shape), 3.0, np.float32)
    rights[1] = 0
    records = records_on_host(host_builds, lefts, rights, problem)
    expected = records_by_definition(lefts, rights, problem, False, LEAST)
    np.testing.assert_array_equal(records, expected)
