"""The correlation and peak kernels' own source, run on the host in lock-step, against the definition in float64."""

from itertools import product

import numpy as np
import pytest

from tests.kernels.correlation_definition import pairs_with_a_peak, planes_by_definition, records_by_definition
from tests.kernels.host_device import correlate_on_host, guarded, guards_are_whole, run_kernel
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.overlap_edges import OverlapEdges, Strips
from xcorr_app.gpu.peaks.search import RECORD, peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import small_table_launch, summed_area_launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

PROBLEMS = {
    "one element": Problem.full_plane((1, 1), (1, 1)),
    "full plane of odd sizes": Problem.full_plane((33, 35), (20, 31)),
    "right larger than left": Problem.full_plane((3, 2), (9, 63)),
    "window inside": Problem((31, 33), (32, 40), (-2, -2), (5, 5)),
    "window beyond the matrices": Problem((9, 5), (4, 8), (-12, -40), (30, 66)),
    "n-to-m": Problem.full_plane((5, 6), (5, 7), lefts=3, rights=5, rights_per_left=5),
    "n-to-mn": Problem((9, 33), (8, 31), (-3, -2), (7, 4), lefts=2, rights=6, rights_per_left=3),
    "one-to-many": Problem.full_plane((4, 17), (6, 16), rights=9, rights_per_left=9),
}
N_TO_M = [
    Problem((20, 31), (9, 35), (-10, -40), (31, 70), lefts=3, rights=4, rights_per_left=4),
    Problem((9, 33), (21, 30), (-25, -3), (37, 7), lefts=1, rights=5, rights_per_left=5),
    Problem((9, 33), (8, 31), (-30, -2), (11, 5), lefts=3, rights=4, rights_per_left=4),  # shifts without any overlap
]
TILES = [
    ("multi-right", {"RIGHTS": 3, "WARPS": 2}),
    ("multi-left-right", {"LEFTS": 2, "RIGHTS": 3, "WARPS": 5}),
    ("multi-row", {"SHIFTS": 3, "LEFT_ROWS": 2, "WARPS": 8}),
    ("multi-row", {"SHIFTS": 8, "LEFT_ROWS": 4, "WARPS": 1, "PHASES": 1}),
    ("multi-row", {"SHIFTS": 2, "LEFT_ROWS": 5, "PHASES": 1}),
    ("combined-shuffle", {"LEFTS": 2, "RIGHTS": 3, "SHIFTS": 3, "LEFT_ROWS": 2}),
    ("combined-shuffle", {"PHASES": 1, "WARPS": 3}),
]
"""Of the kernels of several matrices and rows a thread, by shuffles."""
ROWS = [{"DISTRIBUTION": d, "MAX_ROWS": m} for d, m in ((0, 1), (1, 5), (2, 1), (2, 7))]
BLOCKS = [
    ("overlap-wise", {"THREADS": 1}),
    ("overlap-wise", {"THREADS": 96}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 1}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 7}),
    ("warp-shuffle", {"WARPS": 1}),
    ("warp-shuffle", {"WARPS": 9}),
    ("warp-shuffle-distributed", {"WARPS": 6}),
]
COMBINED_TILES = [
    # tiles, warps along x, y and for the same tile, chunk, segments
    {"TILE_X": 8, "TILE_Y": 8, "WARPS_X": 4, "WARPS_Y": 2, "WARPS_K": 1, "CHUNK_ROWS": 8, "CHUNK_COLUMNS": 16},
    {"TILE_X": 17, "TILE_Y": 6, "WARPS_X": 1, "WARPS_Y": 3, "WARPS_K": 2, "CHUNK_ROWS": 16, "CHUNK_COLUMNS": 12},
    {"TILE_X": 33, "TILE_Y": 3, "WARPS_X": 1, "WARPS_Y": 2, "WARPS_K": 1, "CHUNK_ROWS": 7, "SEGMENTS": 4},
    {"TILE_X": 4, "TILE_Y": 1, "WARPS_X": 2, "WARPS_Y": 1, "WARPS_K": 4, "CHUNK_ROWS": 32, "SEGMENTS": 9},
]
ROW_PIECES = [
    {"BLOCK": 16, "PAIRS": 2, "SHIFT_ROWS": 16, "CHUNK_ROWS": 8},  # rows wrap within and between chunks
    {"BLOCK": 32, "PAIRS": 1, "SHIFT_ROWS": 64, "CHUNK_ROWS": 64},  # all rows at once
    {"BLOCK": 20, "PAIRS": 4, "SHIFT_ROWS": 32, "CHUNK_ROWS": 16},
]
PIECES = [Problem.full_plane(*each, lefts=3, rights=3) for each in (((41, 37), (29, 60)), ((29, 64), (41, 33)))]


def integers(problem, dtype="float32", seed=3):
    """Random matrices of small integers, whose sums float32 holds exactly."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -9
    lefts = rng.integers(low, 30, (problem.lefts, *problem.left_shape)).astype(dtype)
    return lefts, rng.integers(low, 30, (problem.rights, *problem.right_shape)).astype(dtype)


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_variant_equals_the_definition(host_builds, variant, name):
    problem = PROBLEMS[name]
    lefts, rights = integers(problem)
    if KERNELS[variant].accepts(problem, DeviceLimits()) is not None:
        with pytest.raises(ArgumentError, match="n-to-m"):
            correlate_on_host(host_builds, lefts, rights, problem, variant)
        return
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("variant", ["overlap-wise", "warp-shuffle", "combined", "row-product"])
@pytest.mark.parametrize("dtype", [name for name in INPUT_TYPES if name != "float32"])
def test_integers_are_converted_on_load(host_builds, variant, dtype):
    problem = Problem((10, 33), (9, 36), (-8, -20), (18, 40), lefts=2, rights=2)
    lefts, rights = integers(problem, dtype)
    info = np.iinfo(dtype)
    lefts[0, 0, :2], rights[0, -1, -2:] = (info.min, info.max), (1, 0)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


TUNED = [
    *product(["combined"], COMBINED_TILES, [Problem((41, 37), (29, 44), (-14, -21), (38, 39), lefts=2, rights=2)]),
    *product(["row-product"], ROW_PIECES, PIECES),
]


@pytest.mark.parametrize(("variant", "tuning", "problem"), TUNED)
def test_every_kind_of_tile_and_piece(host_builds, variant, tuning, problem):
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning=tuning)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.share(4)
@pytest.mark.parametrize("problem", N_TO_M)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("variant", "tuning"), TILES)
def test_rows_distributed(host_builds, variant, tuning, rows, problem):
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning={**tuning, **rows})
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


DEVICE = DeviceLimits()
LEAST = 12  # smaller overlaps score one at many shifts
SEARCHES = {
    "one element": Problem((1, 1), (1, 1), (0, 0), (1, 1)),
    "window inside": Problem((31, 33), (32, 40), (-4, -6), (9, 11), lefts=2, rights=2),
    "window beyond the matrices": Problem((9, 7), (6, 8), (-12, -10), (24, 22)),
    "one-to-many": Problem((40, 41), (37, 41), (-5, -5), (11, 11), rights=3, rights_per_left=3),
    "n-to-m": Problem((12, 13), (14, 11), (-3, -2), (7, 8), lefts=2, rights=2, rights_per_left=2),
}


def tables_on_host(folder, images, row_edges, column_edges, *, small=True, longest=8):
    """Tables of rectangle sums by the kernel for small matrices or the one for any; outputs poisoned before."""
    count, height, width = images.shape
    bands, cells = row_edges.size - 1, column_edges.size - 1
    edge_of_column = np.full(width + 1, -1, np.int32)
    edge_of_column[column_edges] = np.arange(column_edges.size)
    tables = guarded(np.full((count, bands + 1, cells + 1, 2), np.nan))
    if small:
        launch = small_table_launch(str(images.dtype), count)
        arrays, numbers = (guarded(images), row_edges, edge_of_column, tables), (height, width, bands, cells)
        run_kernel(folder, launch, arrays, numbers)
        assert guards_are_whole(tables)
        return tables
    strips = Strips.of(row_edges, longest)
    bands = strips.edge_of_band.size
    launch = summed_area_launch(str(images.dtype), count, width, strips.rows.shape[0])
    of_cells, arrived = guarded(np.full((count, bands, cells, 2), np.nan)), np.zeros(count, np.int32)
    arrays = (guarded(images), edge_of_column, strips.rows, strips.edge_of_band, of_cells, arrived, tables)
    run_kernel(folder, launch, arrays, (height, width, strips.rows.shape[0], bands, row_edges.size, cells))
    assert guards_are_whole(of_cells)
    assert guards_are_whole(tables)
    assert not arrived.any()
    return tables


def tables_of_pairs(folder, lefts, rights, problem):
    """Tables of both sides and the edges of the overlaps, as kernels take them, and how many edges each axis has."""
    edges = OverlapEdges.of(problem)
    sides = ((lefts, edges.left_rows, edges.left_columns), (rights, edges.right_rows, edges.right_columns))
    tables = [tables_on_host(folder, *side) for side in sides]
    return (*tables, edges.rows, edges.columns), [axis.size for side in sides for axis in side[1:]]


def records_on_host(folder, lefts, rights, problem, launch, planes=None, *, normalize=True, least=1):
    """Records of a batch by one of the two kernels that find peaks."""
    tables, sizes = tables_of_pairs(folder, lefts, rights, problem)
    records = guarded(np.full((problem.pairs, RECORD), np.nan))
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    if planes is None:
        workspace = np.full(problem.pairs * launch.segments * shifts, np.nan, np.float32)
        sources = [guarded(lefts), guarded(rights), workspace, np.zeros(problem.pairs, np.int32)]
    else:
        sources = [guarded(planes)]
    arrays = (*sources, *tables, records)
    run_kernel(folder, launch, arrays, (*problem.arguments(), *launch.extra, *sizes, least))
    assert guards_are_whole(records)
    return records


def far_from_zero(problem, dtypes, offsets):
    """Matrices of these types with means far from zero, and the sums of their centred products."""
    matrices, centred = [], []
    for values, dtype, offset in zip(pairs_with_a_peak(problem, seed=21), dtypes, offsets, strict=True):
        values = (values + offset).astype(dtype) if dtype == "float32" else np.rint(values * 40 + offset).astype(dtype)
        centres = np.float32(values.mean(axis=(1, 2), keepdims=True, dtype=np.float64))
        matrices.append(values)
        centred.append(values.astype(np.float64) - (centres if dtype == "float32" else np.rint(centres)))
    planes = planes_by_definition(*centred, problem).astype(np.float32)
    return *matrices, planes, tuple(dtype != "float32" for dtype in dtypes)


def assert_same(records, expected):
    np.testing.assert_array_equal(records[:, :2], expected[:, :2])
    largest = max(1.0, np.nanmax(np.abs(expected[:, 2]), initial=0))
    np.testing.assert_allclose(records[:, 2:], expected[:, 2:], rtol=2e-6, atol=2e-6 * largest)


def assert_sums_of_all_rectangles(tables, images, row_edges, column_edges):
    for i, bottom in enumerate(row_edges):
        for j, last in enumerate(column_edges):
            part = images[:, :bottom, :last].astype(np.float64)
            np.testing.assert_array_equal(tables[:, i, j, 0], part.sum(axis=(1, 2)))
            np.testing.assert_array_equal(tables[:, i, j, 1], (part * part).sum(axis=(1, 2)))


def whole_numbers(shape, dtype):
    low, high = (-200, 200) if dtype.startswith("float") else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    return np.random.default_rng(2).integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("dtype", [*INPUT_TYPES, "float64"])
@pytest.mark.parametrize("window", [((-3, -9), (9, 30)), ((-1, -90), (2, 170))])
def test_tables_hold_the_sums_of_all_rectangles(host_builds, window, dtype, small):
    problem = Problem((70, 1203), (70, 1203), *window)
    images = whole_numbers((2, 70, 1203), dtype)
    edges = OverlapEdges.of(problem)
    tables = tables_on_host(host_builds, images, edges.right_rows, edges.right_columns, small=small)
    assert_sums_of_all_rectangles(tables, images, edges.right_rows, edges.right_columns)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_fused_launch_equals_the_definition(host_builds, name, normalize):
    problem = SEARCHES[name]
    lefts, rights = pairs_with_a_peak(problem)
    for segments in (1, 3):
        types = {"left_type": "float32", "right_type": "float32"}
        launch = peak_launch(problem, normalize=normalize, device=DEVICE, segments=segments, **types)
        assert launch is not None
        records = records_on_host(host_builds, lefts, rights, problem, launch, normalize=normalize, least=LEAST)
        assert_same(records, records_by_definition(lefts, rights, problem, normalize, LEAST))


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float32", "uint16"), ("uint16", "int16")])
@pytest.mark.parametrize("name", SEARCHES)
def test_scores_from_centred_sums_equal_the_definition(host_builds, name, dtypes):
    problem = SEARCHES[name]
    lefts, rights, planes, centred = far_from_zero(problem, dtypes, (1000, 3000))
    launch = plane_peak_launch(problem, normalize=True, device=DEVICE, centred=centred)
    records = records_on_host(host_builds, lefts, rights, problem, launch, planes, least=LEAST)
    assert_same(records, records_by_definition(lefts, rights, problem, True, LEAST))


def test_a_constant_matrix_has_no_peak(host_builds):
    problem = Problem((9, 9), (9, 9), (-2, -2), (5, 5))
    lefts, rights = np.ones((1, 9, 9), np.float32), pairs_with_a_peak(problem)[1]
    launch = peak_launch(problem, normalize=True, left_type="float32", right_type="float32", device=DEVICE)
    records = records_on_host(host_builds, lefts, rights, problem, launch)
    assert_same(records, np.concatenate([[0, 0, np.nan, -np.inf], np.full(25, np.nan)])[None])


def test_of_equal_values_the_first_is_the_peak(host_builds):
    problem = Problem((8, 40), (8, 40), (-3, -20), (7, 41))
    plane = np.zeros((1, 7, 41), np.float32)
    plane[0, 3, [4, 30]] = plane[0, 5, 12] = 2
    launch = plane_peak_launch(problem, normalize=False, device=DEVICE)
    ones = np.ones((1, 8, 40), np.float32)
    record = records_on_host(host_builds, ones, ones, problem, launch, plane, normalize=False)[0]
    assert record[:4].tolist() == [3, 4, 2, 2]
