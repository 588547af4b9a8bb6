"""The tensor-core kernels on a device against float64: sizes off every tile, adversarial values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.tensor.kernels import KERNELS
from xcorr_app.gpu.tensor.planes import plain_sums
from xcorr_app.gpu.tensor.sums import prepared_sums

pytestmark = pytest.mark.gpu


def centred(matrices):
    """Less their centres, as the kernels take them."""
    means = matrices.astype(np.float64).mean(axis=(1, 2), keepdims=True)
    return matrices.astype(np.float64) - (means.astype(np.float32) if matrices.dtype.kind == "f" else np.rint(means))


def sums(lefts, rights, problem):
    """Plain sums of every pair in float64."""
    size = [fft.next_fast_len(a + b - 1, real=True) for a, b in zip(lefts.shape[1:], rights.shape[1:], strict=True)]
    of_left, of_right = fft.rfft2(lefts, size), fft.rfft2(rights, size).conj()
    first, shape = problem.first_shift, problem.plane_shape
    planes = []
    for pair in range(problem.pairs):
        plane = fft.irfft2(of_left[pair // problem.rights_per_left] * of_right[pair % problem.rights], size)
        rows, columns = (np.arange(first[axis], first[axis] + shape[axis]) for axis in (0, 1))
        meet = [
            (shifts > -right) & (shifts < left)  # beyond, a transform repeats itself
            for shifts, left, right in zip((rows, columns), problem.left_shape, problem.right_shape, strict=True)
        ]
        planes.append(plane[np.ix_(rows % size[0], columns % size[1])] * np.outer(*meet))
    return np.array(planes)


def norms(lefts, rights):
    return np.sqrt((lefts**2).sum(axis=(1, 2)).max() * (rights**2).sum(axis=(1, 2)).max())


def assert_near(planes, lefts, rights, problem, bound):
    """Fail unless centred sums are right to a fraction of the largest norms."""
    exact = sums(centred(lefts), centred(rights), problem)
    np.testing.assert_allclose(planes, exact, rtol=0, atol=bound * norms(centred(lefts), centred(rights)))


def kernel_for(problem, split):
    """The one of the least expected time among those that make centred sums."""
    if split == 2:
        return "hankel"
    limits = device_limits(0)
    able = [entry for entry in KERNELS.values() if entry.accepts(problem, limits) is None]
    return min(able, key=lambda entry: entry.cost(problem, limits)).name


def centred_sums(cupy, problem, left, right, tables, *, split=1):
    planes = cupy.empty((problem.pairs, *problem.plane_shape), "float32")
    sums_of = prepared_sums(problem, left.dtype, right.dtype, tables.cells, kernel_for(problem, split), split=split)
    sums_of(left, right, (tables.left(left), tables.right(right)), planes)
    return planes


def computed(cupy, lefts, rights, problem, *, split=1):
    tables = SummedAreaTables(problem)
    left, right = cupy.asarray(lefts), cupy.asarray(rights)
    return centred_sums(cupy, problem, left, right, tables, split=split).get()


def matrices(shape, count, dtype="float32", seed=1):
    """Noise around 1000, or all of what a type holds."""
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.normal(1000, 20, (count, *shape)).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (count, *shape), dtype=dtype, endpoint=True)


PROBLEMS = {
    "one-to-many": Problem((201, 517), (201, 517), (-16, -16), (32, 32), rights=9, rights_per_left=9),
    "many over one right": Problem((130, 300), (131, 291), (-20, -33), (41, 66), lefts=6),
    "one pair": Problem((333, 402), (333, 402), (-16, -16), (33, 33)),
    "n-to-mn": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=3, rights=15, rights_per_left=5),
    "n-to-m": Problem((65, 63), (60, 70), (-7, 5), (12, 40), lefts=3, rights=7, rights_per_left=7),
    "one-to-one pairs": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=40, rights=40),
    "full plane": Problem.full_plane((32, 32), (32, 32), lefts=5, rights=5),
    "few shifts": Problem((100, 1030), (100, 1030), (0, 0), (1, 1), rights=4, rights_per_left=4),
    "all ey": Problem((150, 40), (150, 40), (-64, -3), (129, 7), rights=5, rights_per_left=5),
    "all ex": Problem((30, 280), (30, 280), (-3, -64), (7, 129), rights=5, rights_per_left=5),
    "apart": Problem((50, 50), (50, 50), (30, -70), (40, 90), rights=4, rights_per_left=4),
    "columns off quads": Problem((90, 131), (90, 131), (-9, -13), (20, 27), rights=5, rights_per_left=5),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_centred_sums(cupy, name):
    problem = PROBLEMS[name]
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights, seed=2)
    ours = computed(cupy, lefts, rights, problem)
    assert_near(ours, lefts, rights, problem, 2e-4)
    again = computed(cupy, lefts, rights, problem)
    np.testing.assert_array_equal(ours, again)


@pytest.mark.parametrize("right", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("left", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right", "one-to-one pairs", "columns off quads"])
def test_every_type(cupy, name, left, right):
    problem = PROBLEMS[name]
    lefts = matrices(problem.left_shape, problem.lefts, left)
    rights = matrices(problem.right_shape, problem.rights, right, seed=2)
    ours = computed(cupy, lefts, rights, problem)
    assert_near(ours, lefts, rights, problem, 2e-4)


@pytest.mark.parametrize("name", ["one-to-many", "many over one right", "one pair", "n-to-mn", "full plane"])
def test_split_fp16_is_nearly_single_precision(cupy, name):
    problem = PROBLEMS[name]
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights, seed=2)
    ours = computed(cupy, lefts, rights, problem, split=2)
    assert_near(ours, lefts, rights, problem, 1e-6)
    plain = plain_sums(problem, cupy.asarray(lefts), cupy.asarray(rights), SummedAreaTables(problem), "hankel").get()
    exact = sums(lefts.astype(np.float64), rights.astype(np.float64), problem)
    np.testing.assert_allclose(plain, exact, rtol=0, atol=1e-6 * norms(lefts.astype(float), rights.astype(float)))


HARD = {
    "large offset": lambda m: m + np.float32(1e6),
    "huge": lambda m: (m - 1000) * np.float32(1e15),
    "tiny": lambda m: (m - 1000) * np.float32(1e-15),
    "checkerboard": lambda m: np.broadcast_to(np.indices(m.shape[1:]).sum(0) % 2 * 0.1, m.shape).astype("float32"),
    "impulses in corners": lambda m: m * 0 + np.pad(np.zeros(np.array(m.shape[1:]) - 2), 1, constant_values=7.0),
    "one hot pixel": lambda m: (m % 5).round() + 65535 * (np.arange(m[0].size).reshape(m.shape[1:]) == 777),
    "lattice": lambda m: np.broadcast_to(np.sin(np.arange(m.shape[2]) * 0.7), m.shape) + 0 * m,
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", ["one-to-many", "one pair"])
def test_hard_values(cupy, name, kind):
    problem = PROBLEMS[name]
    lefts = HARD[kind](matrices(problem.left_shape, problem.lefts)).astype("float32")
    rights = HARD[kind](matrices(problem.right_shape, problem.rights, seed=2)).astype("float32")
    ours = computed(cupy, lefts, rights, problem)
    assert np.isfinite(ours).all()
    assert_near(ours, lefts, rights, problem, 1e-3)


def test_every_sum_is_written_and_nothing_else(cupy, monkeypatch):
    problem = PROBLEMS["many over one right"]
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights)
    made = []

    def poisoned(shape, dtype=float):
        count = int(np.prod(shape))
        buffer = cupy.full(count + 512, np.nan if np.dtype(dtype).kind == "f" else 77, dtype)
        made.append(buffer)
        return buffer[256 : 256 + count].reshape(shape)

    tables = SummedAreaTables(problem)
    left, right = cupy.asarray(lefts), cupy.asarray(rights)
    with monkeypatch.context() as patch:
        patch.setattr(cupy, "empty", poisoned)
        planes = centred_sums(cupy, problem, left, right, tables)
    assert cupy.isfinite(planes).all()
    for buffer in made:
        rims = cupy.concatenate([buffer[:256], buffer[-256:]])
        assert (cupy.isnan(rims) if rims.dtype.kind == "f" else rims == 77).all()
