"""The kernel of exact neighbourhoods of peaks, its own source run on the host, against the definition in float64."""

import numpy as np
import pytest

from tests.kernels.correlation_definition import pairs_with_a_peak, scores_by_definition
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.test_correlation_on_host import tables_of_pairs
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.near_peak import SHIFTS, near_peak_launch
from xcorr_app.gpu.peaks.search import RECORD
from xcorr_app.gpu.runtime.limits import DeviceLimits

DEVICE = DeviceLimits()
SIDES = [3, 5]
RING = np.pad(np.zeros((3, 3), bool), 1, constant_values=True).ravel()
LEAST = 12  # smaller overlaps score one at many shifts
RIVAL = 0.125
PROBLEMS = {
    "one element": Problem((1, 1), (1, 1), (0, 0), (1, 1)),
    "warps inside": Problem((61, 103), (58, 99), (-4, -3), (9, 8), rights=2, rights_per_left=2),
    "window beyond the matrices": Problem((9, 7), (6, 8), (-12, -10), (24, 22)),
    "one row": Problem((1, 75), (1, 70), (-1, -20), (3, 41)),
    "one column": Problem((50, 1), (47, 1), (-9, -1), (19, 3)),
    "left is smaller": Problem((17, 40), (45, 97), (-30, -60), (40, 70), lefts=2, rights=2),
    "n-to-mn": Problem((33, 47), (35, 45), (-3, -2), (7, 8), lefts=2, rights=4, rights_per_left=2),
    "whole quads": Problem((67, 416), (64, 412), (-5, -4), (9, 11), rights=2, rights_per_left=2),
    "whole quads, left is smaller": Problem((20, 36), (31, 300), (-18, -270), (30, 300)),
    "n-to-m": Problem((33, 47), (35, 45), (-3, -2), (7, 8), lefts=2, rights=2, rights_per_left=2),
}


def launch_for(problem, lefts, rights, *, side=5, margin=None, normalize=True, tuning=None):
    how = {"normalize": normalize, "left_type": str(lefts.dtype), "right_type": str(rights.dtype), "device": DEVICE}
    return near_peak_launch(problem, side=side, margin=margin, tuning=tuning, **how)


def records_at(places):
    """Records with a peak at each place, of values that must not remain."""
    records = np.full((len(places), RECORD), 77.0)
    records[:, :2], records[:, 3] = places, RIVAL
    return records


def rewritten(folder, lefts, rights, problem, launch, records, *, least=LEAST):
    """What the launch makes of `records`."""
    tables, sizes = tables_of_pairs(folder, lefts, rights, problem)
    workspace = guarded(np.full(problem.pairs * launch.segments * SHIFTS, np.nan))
    arrived, records = guarded(np.zeros(problem.pairs, np.int32)), guarded(records)
    arrays = (guarded(lefts), guarded(rights), workspace, arrived, *tables, records)
    run_kernel(folder, launch, arrays, (*problem.arguments(), *launch.extra, *sizes, least))
    assert guards_are_whole(records)
    assert guards_are_whole(workspace)
    assert not arrived.any()
    return records


def expected_at(places, lefts, rights, problem, normalize, side=5):
    """Records of the definition with the peak where it is said to be, marked where a neighbour is the better one."""
    records = records_at(places)
    for pair, (row, column) in enumerate(places):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        scores = np.pad(scores_by_definition(left, right, problem, normalize, LEAST), 2, constant_values=np.nan)
        around = scores[row : row + 5, column : column + 5].ravel()
        if side == 3:
            around = np.where(RING, np.nan, around)
        records[pair, 4:], records[pair, 2] = around, around[12]
        if (around > around[12]).any() or (around[:12] == around[12]).any():
            records[pair, 0] = -1 - row
    return records


def assert_same(records, expected):
    np.testing.assert_array_equal(records[:, [0, 1, 3]], expected[:, [0, 1, 3]])
    largest = max(1.0, np.nanmax(np.abs(expected[:, 4:]), initial=0))
    np.testing.assert_allclose(records[:, 2:], expected[:, 2:], rtol=2e-6, atol=2e-6 * largest)


def peaks_by_definition(lefts, rights, problem, normalize):
    places = []
    for pair in range(problem.pairs):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        scores = scores_by_definition(left, right, problem, normalize, LEAST)
        places.append((0, 0) if np.isnan(scores).all() else np.unravel_index(np.nanargmax(scores), scores.shape))
    return places


@pytest.mark.parametrize("strip_rows", [0, 17])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_values_around_peaks_equal_the_definition(host_builds, name, side, normalize, strip_rows):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem)
    places = peaks_by_definition(lefts, rights, problem, normalize)
    tuning = {"STRIP_ROWS": strip_rows, "WARPS": 2}
    launch = launch_for(problem, lefts, rights, side=side, normalize=normalize, tuning=tuning)
    records = rewritten(host_builds, lefts, rights, problem, launch, records_at(places))
    assert_same(records, expected_at(places, lefts, rights, problem, normalize, side))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "types", [("uint16", "uint8"), ("uint8", "uint16"), ("int16", "uint16"), ("uint16", "float32")]
)
@pytest.mark.parametrize("widths", [(101, 98), (148, 144)])
def test_scores_of_whole_numbers_far_from_zero(host_builds, widths, types, side):
    problem = Problem((131, widths[0]), (129, widths[1]), (-4, -5), (9, 11), rights=2, rights_per_left=2)
    levels = {"uint8": (240, 2), "uint16": (60000, 90), "int16": (-30000, 40), "float32": (5000, 60)}
    lefts, rights = (
        np.float32(levels[dtype][0] + np.rint(levels[dtype][1] * values)).astype(dtype)
        for values, dtype in zip(pairs_with_a_peak(problem), types, strict=True)
    )
    places = peaks_by_definition(lefts, rights, problem, True)
    launch = launch_for(problem, lefts, rights, side=side, tuning={"STRIP_ROWS": 128})
    records = rewritten(host_builds, lefts, rights, problem, launch, records_at(places))
    assert_same(records, expected_at(places, lefts, rights, problem, True, side))


def test_of_equal_values_the_first_is_the_peak(host_builds):
    problem = Problem((20, 20), (20, 20), (-3, -3), (7, 7))
    lefts, rights = np.ones((1, 20, 20), np.float32), np.zeros((1, 20, 20), np.float32)
    rights[0, 10, 10] = 1
    launch = launch_for(problem, lefts, rights, normalize=False)
    for place, row in (((0, 0), 0), ((3, 3), -4), ((0, 1), -1), ((1, 0), -2)):
        record = rewritten(host_builds, lefts, rights, problem, launch, records_at([place]))[0]
        assert record[:3].tolist() == [row, place[1], 1]
