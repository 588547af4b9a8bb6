"""The kernel of exact neighbourhoods of peaks, its own source run on the host, against the definition in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.peak_definition import pairs_with_a_peak, scores_by_definition
from tests.kernels.test_peaks_on_host import tables_on_host
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.near_peak import SHIFTS, near_peak_launch, near_peak_launches
from xcorr_app.gpu.peaks.overlap_edges import OverlapEdges
from xcorr_app.gpu.peaks.search import RECORD
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

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
    edges = OverlapEdges.of(problem)
    sides = ((lefts, edges.left_rows, edges.left_columns), (rights, edges.right_rows, edges.right_columns))
    tables = [tables_on_host(folder, *side) for side in sides]
    sizes = [axis.size for side in sides for axis in side[1:]]
    workspace = guarded(np.full(problem.pairs * launch.segments * SHIFTS, np.nan))
    arrived, records = guarded(np.zeros(problem.pairs, np.int32)), guarded(records)
    arrays = (guarded(lefts), guarded(rights), workspace, arrived, *tables, edges.rows, edges.columns, records)
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


@pytest.mark.parametrize("tuning", [{"LANES": 8}, {}, {"AHEAD": 3}], ids=str)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("column", range(8))
def test_every_alignment_of_left_and_right(host_builds, column, side, tuning):
    problem = PROBLEMS["whole quads"]
    lefts, rights = pairs_with_a_peak(problem)
    places = [(4, column), (0, column + 1)]
    launch = launch_for(problem, lefts, rights, side=side, tuning=tuning)
    records = rewritten(host_builds, lefts, rights, problem, launch, records_at(places))
    assert_same(records, expected_at(places, lefts, rights, problem, True, side))


@pytest.mark.share(4)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["warps inside", "whole quads", "window beyond the matrices", "left is smaller"])
def test_peaks_in_corners_and_beside_the_true_one(host_builds, name, side):
    problem = PROBLEMS[name]
    lefts, rights = pairs_with_a_peak(problem, seed=9)
    height, width = problem.plane_shape
    true_row, true_column = peaks_by_definition(lefts, rights, problem, True)[0]
    beside = [(true_row + dy, true_column + dx) for dy, dx in ((1, 0), (0, -1), (2, 2), (-1, 2))]
    beside = [(row, column) for row, column in beside if 0 <= row < height and 0 <= column < width]
    launch = launch_for(problem, lefts, rights, side=side)
    marked = 0
    for place in [*itertools.product((0, height - 1), (0, width - 1)), *beside]:
        places = [place] * problem.pairs
        records = rewritten(host_builds, lefts, rights, problem, launch, records_at(places))
        assert_same(records, expected_at(places, lefts, rights, problem, True, side))
        marked += records[0, 0] == -1 - place[0]
    assert marked > 0


@pytest.mark.parametrize("left_type", INPUT_TYPES)
@pytest.mark.parametrize("right_type", INPUT_TYPES)
@pytest.mark.parametrize(("widths", "side"), [((101, 98), 5), ((148, 144), 5), ((148, 144), 3)])
def test_all_types(host_builds, widths, side, left_type, right_type):
    problem = Problem((40, widths[0]), (43, widths[1]), (-4, -5), (9, 11), rights=2, rights_per_left=2)
    lefts, rights = pairs_with_a_peak(problem)
    limits = {"uint8": (0, 255), "uint16": (40000, 65535), "int16": (-900, 900), "float32": (-2, 2)}

    def scaled(values, dtype):
        low, high = limits[dtype]
        values = np.clip(low + (values + 4) / 8 * (high - low), low, high)
        return (values if dtype == "float32" else np.rint(values)).astype(dtype)

    lefts, rights = scaled(lefts, left_type), scaled(rights, right_type)
    places = peaks_by_definition(lefts, rights, problem, False)
    launch = launch_for(problem, lefts, rights, side=side, normalize=False)
    records = rewritten(host_builds, lefts, rights, problem, launch, records_at(places))
    assert_same(records, expected_at(places, lefts, rights, problem, False, side))


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


def test_a_record_without_a_peak_stays_as_it_is(host_builds):
    problem = PROBLEMS["warps inside"]
    lefts, rights = pairs_with_a_peak(problem)
    places = peaks_by_definition(lefts, rights, problem, True)
    records = records_at(places)
    records[0, 2], records[0, :2] = np.nan, 1e9
    for strip_rows in (0, 8):
        launch = launch_for(problem, lefts, rights, tuning={"STRIP_ROWS": strip_rows})
        after = rewritten(host_builds, lefts, rights, problem, launch, records)
        np.testing.assert_array_equal(after[0], records[0])
        assert_same(after[1:], expected_at(places, lefts, rights, problem, True)[1:])


@pytest.mark.parametrize("strip_rows", [0, 8])
def test_of_two_launches_one_takes_each_record(host_builds, strip_rows):
    margin, tuning = 0.25, {"STRIP_ROWS": strip_rows}
    problem = Problem((61, 103), (58, 99), (-4, -3), (9, 8), rights=6, rights_per_left=6)
    lefts, rights = pairs_with_a_peak(problem)
    places = peaks_by_definition(lefts, rights, problem, True)
    records = records_at(places)
    records[:, 2], records[:, 4:] = 0.75, 0.5  # of lower precision, all but just far enough below the peak
    records[:, 4:].reshape(-1, 5, 5)[:, 1:4, 1:4] = 0.74
    records[0, 4 + 9] = np.nextafter(0.5, 1)
    records[1, 4 + 24] = 0.9
    records[2, [4, 8]] = np.nan, 0.6
    records[3, 4:] = np.nan
    records[4, 2] = np.nan
    narrow, wide = (launch_for(problem, lefts, rights, side=side, margin=margin, tuning=tuning) for side in SIDES)
    after = rewritten(host_builds, lefts, rights, problem, narrow, records)
    whole = rewritten(host_builds, lefts, rights, problem, wide, after)
    of_narrow, of_wide = [3, 5], [0, 1, 2]
    np.testing.assert_array_equal(after[[*of_wide, 4]], records[[*of_wide, 4]])
    assert_same(after[of_narrow], expected_at(places, lefts, rights, problem, True, 3)[of_narrow])
    np.testing.assert_array_equal(whole[[*of_narrow, 4]], after[[*of_narrow, 4]])
    assert_same(whole[of_wide], expected_at(places, lefts, rights, problem, True, 5)[of_wide])


def test_what_is_better_than_a_peak_is_not_sought_farther_away(host_builds):
    problem = PROBLEMS["warps inside"]
    lefts, rights = pairs_with_a_peak(problem)
    row, column = peaks_by_definition(lefts, rights, problem, True)[0]
    records = records_at([(row, column - 1)] * 2)
    records[:, 4:] = 0
    narrow, wide = (launch_for(problem, lefts, rights, side=side, margin=2e-3) for side in SIDES)
    after = rewritten(host_builds, lefts, rights, problem, narrow, records)
    assert after[0, 0] == -1 - row
    np.testing.assert_array_equal(rewritten(host_builds, lefts, rights, problem, wide, after), after)


@pytest.mark.parametrize(("pairs", "error", "sides"), [(512, 1e-3, [3, 5]), (512, None, [5]), (1, 1e-3, [5])])
def test_few_sums_are_made_where_many_pairs_have_scores(pairs, error, sides):
    problem = Problem((512, 512), (512, 512), (-16, -16), (32, 32), rights=pairs, rights_per_left=pairs)
    how = {"normalize": True, "left_type": "float32", "right_type": "uint16", "device": DEVICE}
    launches = near_peak_launches(problem, error=error, **how)
    assert [launch.defines["SIDE"] for launch in launches] == sides
    if len(sides) > 1:
        assert [float(launch.defines["RING_MARGIN"]) for launch in launches] == [2 * error] * 2


def test_of_equal_values_the_first_is_the_peak(host_builds):
    problem = Problem((20, 20), (20, 20), (-3, -3), (7, 7))
    lefts, rights = np.ones((1, 20, 20), np.float32), np.zeros((1, 20, 20), np.float32)
    rights[0, 10, 10] = 1
    launch = launch_for(problem, lefts, rights, normalize=False)
    for place, row in (((0, 0), 0), ((3, 3), -4), ((0, 1), -1), ((1, 0), -2)):
        record = rewritten(host_builds, lefts, rights, problem, launch, records_at([place]))[0]
        assert record[:3].tolist() == [row, place[1], 1]


def test_same_bits_whatever_wrote_the_workspace_before(host_builds):
    problem = Problem((90, 70), (90, 70), (-4, -4), (9, 9), rights=3, rights_per_left=3)
    lefts, rights = pairs_with_a_peak(problem)
    places = peaks_by_definition(lefts, rights, problem, True)
    launch = launch_for(problem, lefts, rights, tuning={"STRIP_ROWS": 8})
    assert launch.segments > 4
    first, second = (rewritten(host_builds, lefts, rights, problem, launch, records_at(places)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("pairs", [1, 10, 256])
def test_strips_cover_the_rows_and_fill_the_device(pairs, side):
    problem = Problem((512, 512), (512, 512), (-8, -8), (17, 17), rights=pairs, rights_per_left=pairs)
    lefts = rights = np.zeros(1, np.float32)
    launch = launch_for(problem, lefts, rights, side=side)
    segments, strip_rows = launch.extra
    assert segments * launch.defines["WARPS"] >= 4 * -(-512 // strip_rows)
    assert (strip_rows + side - 1) % (side + launch.defines["AHEAD"]) == 0
    assert launch.blocks == pairs * segments >= 40
