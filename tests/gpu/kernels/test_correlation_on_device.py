"""The kernels on the device against the definition in float64; outputs poisoned, sizes odd, every variant and type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.definition import planes_by_definition
from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

pytestmark = NEEDS_DEVICE

SIZES = (1, 2, 3, 31, 32, 33, 63, 65, 100, 257)
ATOMIC = {"warp-shuffle-distributed"}  # sums of one element come from several threads, in any order


def random_batch(problem, dtype, seed=1):
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -99
    lefts = rng.integers(low, 200, (problem.lefts, *problem.left_shape)).astype(dtype)
    rights = rng.integers(low, 200, (problem.rights, *problem.right_shape)).astype(dtype)
    return (lefts / np.float32(3), rights / np.float32(7)) if dtype == "float32" else (lefts, rights)


def computed(cupy, lefts, rights, problem, variant, **options):
    dtype = "float64" if options.get("sum_type") == "double" else "float32"
    out = cupy.full((problem.pairs, *problem.plane_shape), cupy.nan, dtype)
    return correlate_on_device(cupy.asarray(lefts), cupy.asarray(rights), problem, variant, out=out, **options).get()


def skip_unless_computed(variant, problem):
    """Leave out what a variant is not for; tests/kernels checks that it says so."""
    if KERNELS[variant].accepts(problem, DeviceLimits()) is not None:
        pytest.skip(f"{variant} is not for such a problem")


def assert_equal(planes, expected, tolerance=1e-5):
    assert np.isfinite(planes).all()
    assert np.linalg.norm(planes - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("size", SIZES)
def test_sizes_with_a_window_beyond_the_matrix(cupy, variant, size):
    problem = Problem((size, size + 2), (size + 1, size), (-5, -33), (9, 70), lefts=2, rights=3, rights_per_left=3)
    skip_unless_computed(variant, problem)
    lefts, rights = random_batch(problem, "float32")
    assert_equal(computed(cupy, lefts, rights, problem, variant), planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("shapes", [((33, 65), (31, 63)), ((100, 37), (45, 101))])
@pytest.mark.parametrize("dtype", INPUT_TYPES)
def test_full_planes_of_every_type(cupy, variant, shapes, dtype):
    problem = Problem.full_plane(*shapes, lefts=2, rights=2, rights_per_left=2)
    skip_unless_computed(variant, problem)
    lefts, rights = random_batch(problem, dtype)
    assert_equal(computed(cupy, lefts, rights, problem, variant), planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("variant", [name for name in KERNELS if name not in ATOMIC])
def test_the_same_bits_every_run(cupy, variant):
    problem = Problem.full_plane((130, 131), (130, 131))
    skip_unless_computed(variant, problem)
    lefts, rights = random_batch(problem, "float32")
    first = computed(cupy, lefts, rights, problem, variant)
    for _ in range(3):
        np.testing.assert_array_equal(first, computed(cupy, lefts, rights, problem, variant))


@pytest.mark.parametrize("variant", ["combined", "row-product"])
def test_more_pairs_than_a_grid_axis_holds(cupy, variant):
    problem = Problem.full_plane((2, 3), (2, 3), lefts=70_001, rights=70_001)
    lefts, rights = random_batch(problem, "uint8")
    planes = computed(cupy, lefts, rights, problem, variant)
    last = Problem.full_plane((2, 3), (2, 3))
    for pair in (0, 65_535, 65_536, 70_000):
        np.testing.assert_array_equal(
            planes[pair], planes_by_definition(lefts[pair : pair + 1], rights[pair : pair + 1], last)[0]
        )


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


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("dtypes", [("float32", "uint16"), ("int16", "uint8"), ("uint8", "float32")])
def test_left_and_right_of_different_types(cupy, variant, dtypes):
    problem = Problem((33, 30), (31, 40), (-9, -12), (20, 30), lefts=2, rights=2, rights_per_left=2)
    lefts, rights = (random_batch(problem, dtype)[side] for side, dtype in enumerate(dtypes))
    assert_equal(computed(cupy, lefts, rights, problem, variant), planes_by_definition(lefts, rights, problem))


def test_wrong_arrays_are_refused(cupy):
    problem = Problem.full_plane((4, 4), (4, 4))
    good = cupy.zeros((1, 4, 4), "float32")
    with pytest.raises(ShapeError, match="must have the shapes"):
        correlate_on_device(good[:, :3], good, problem)
    with pytest.raises(DataTypeError, match="must be of the types"):
        correlate_on_device(good, good.astype("float64"), problem)
    with pytest.raises(ShapeError, match="out must be"):
        correlate_on_device(good, good, problem, out=good)
