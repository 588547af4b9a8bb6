"""The correlation and peak kernels on the device against the definition in float64; outputs poisoned."""

from itertools import product

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.correlation_definition import pairs_with_a_peak, planes_by_definition, records_by_definition
from tests.kernels.test_correlation_on_host import BLOCKS, N_TO_M, TILES
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

pytestmark = NEEDS_DEVICE

ATOMIC = {"warp-shuffle-distributed"}  # sums of one element come from several threads, in any order
FLOATS = ("float32", "float32")


def random_batch(problem, types, seed=1):
    made = []
    for side, dtype in enumerate(types):
        rng = np.random.default_rng(seed + side)
        shape = (problem.lefts, *problem.left_shape) if side == 0 else (problem.rights, *problem.right_shape)
        values = rng.integers(0 if dtype.startswith("u") else -99, 200, shape).astype(dtype)
        made.append(values / np.float32(3 + 4 * side) if dtype == "float32" else values)
    return made


def computed(cupy, lefts, rights, problem, variant, **options):
    out = cupy.full((problem.pairs, *problem.plane_shape), cupy.nan, "float32")
    return correlate_on_device(cupy.asarray(lefts), cupy.asarray(rights), problem, variant, out=out, **options).get()


def beyond(size):
    """A window beyond the matrices."""
    return Problem((size, size + 2), (size + 1, size), (-5, -33), (9, 70), lefts=2, rights=3, rights_per_left=3)


def full(left, right):
    return Problem.full_plane(left, right, lefts=2, rights=2, rights_per_left=2)


WINDOW = Problem((33, 30), (31, 40), (-9, -12), (20, 30), lefts=2, rights=2, rights_per_left=2)
N_TO_MS = [*N_TO_M, Problem.full_plane((130, 97), (101, 133), lefts=5, rights=6, rights_per_left=6)]
ROWS = [{"DISTRIBUTION": d, "MAX_ROWS": m} for d, m in ((0, 1), (1, 5), (2, 1), (2, 7), (2, 65536))]
ASKED = [
    *product(KERNELS, [None], map(beyond, (1, 2, 3, 31, 32, 33, 63, 65, 100, 257)), [FLOATS]),
    *product(
        KERNELS, [None], [full((33, 65), (31, 63)), full((100, 37), (45, 101))], [(each, each) for each in INPUT_TYPES]
    ),
    *product(KERNELS, [None], [WINDOW], [("float32", "uint16"), ("int16", "uint8"), ("uint8", "float32")]),
    *((variant, tuning | rows, problem, FLOATS) for (variant, tuning), rows, problem in product(TILES, ROWS, N_TO_MS)),
    *(
        (variant, {**tuning, "DISTRIBUTION": 2, "MAX_ROWS": 4}, N_TO_M[0], (dtype, dtype))
        for (variant, tuning), dtype in product(TILES, ("uint8", "uint16", "int16"))
    ),
    *((variant, tuning, N_TO_M[0], FLOATS) for variant, tuning in BLOCKS),
]
"""Variants, tunings, problems and types of lefts and rights; what a variant is not for is left out."""
CASES = [case for case in ASKED if KERNELS[case[0]].accepts(case[2], DeviceLimits()) is None]


@pytest.mark.parametrize(("variant", "tuning", "problem", "types"), CASES)
def test_planes_equal_the_definition(cupy, variant, tuning, problem, types):
    lefts, rights = random_batch(problem, types)
    planes = computed(cupy, lefts, rights, problem, variant, tuning=tuning)
    expected = planes_by_definition(lefts, rights, problem)
    assert np.isfinite(planes).all()
    assert np.linalg.norm(planes - expected) <= 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("variant", [name for name in KERNELS if name not in ATOMIC])
def test_the_same_bits_every_run(cupy, variant):
    problem = Problem.full_plane((130, 131), (130, 131))
    lefts, rights = random_batch(problem, FLOATS)
    if KERNELS[variant].accepts(problem, DeviceLimits()) is None:
        first, *others = (computed(cupy, lefts, rights, problem, variant) for _ in range(4))
        assert all((first == other).all() for other in others)


@pytest.mark.parametrize("variant", ["combined", "row-product"])
def test_more_pairs_than_a_grid_axis_holds(cupy, variant):
    problem = Problem.full_plane((2, 3), (2, 3), lefts=70_001, rights=70_001)
    lefts, rights = random_batch(problem, ("uint8", "uint8"))
    planes, one = computed(cupy, lefts, rights, problem, variant), Problem.full_plane((2, 3), (2, 3))
    for pair in (0, 65_535, 65_536, 70_000):
        expected = planes_by_definition(lefts[pair : pair + 1], rights[pair : pair + 1], one)
        np.testing.assert_array_equal(planes[pair], expected[0])


@pytest.mark.parametrize("variant", ["overlap-wise", "combined", "row-product"])
def test_a_stack_beyond_two_to_the_31_elements(cupy, variant):
    side, count = 1024, 2100  # 2.2e9 elements
    problem = Problem((side, side), (side, side), (0, 0), (1, 2), lefts=count)
    lefts = cupy.zeros((count, side, side), "uint8")
    lefts[-1, -1, -1] = 3
    rights = cupy.full((1, side, side), 5, "uint8")
    planes = correlate_on_device(lefts, rights, problem, variant).get()
    assert planes[-1].tolist() == [[15.0, 15.0]]
    assert not planes[:-1].any()


def test_wrong_arrays_are_refused(cupy):
    problem = Problem.full_plane((4, 4), (4, 4))
    good = cupy.zeros((1, 4, 4), "float32")
    for arrays, how, error, message in (
        ((good[:, :3], good), {}, ShapeError, "must have the shapes"),
        ((good, good.astype("float64")), {}, DataTypeError, "must be of the types"),
        ((good, good), {"out": good}, ShapeError, "out must be"),
    ):
        with pytest.raises(error, match=message):
            correlate_on_device(*arrays, problem, **how)


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
