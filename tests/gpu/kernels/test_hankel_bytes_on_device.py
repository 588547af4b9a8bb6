"""The tensor-core kernel for bytes on a device: bit for bit the whole numbers of the definition."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy import fft

from tests.gpu.kernels.test_hankel_on_device import PROBLEMS as OF_FLOATS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.tensor.bytes_run import exact_sums

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupy():
    return importlib.import_module("cupy")


def whole_sums(lefts, rights, problem):
    """Plain sums of every pair: transforms in float64 are off by less than a half, and rounded."""
    size = [fft.next_fast_len(a + b - 1, real=True) for a, b in zip(lefts.shape[1:], rights.shape[1:], strict=True)]
    of_left, of_right = fft.rfft2(lefts.astype(np.float64), size), fft.rfft2(rights.astype(np.float64), size).conj()
    first, shape = problem.first_shift, problem.plane_shape
    rows, columns = (np.arange(first[axis], first[axis] + shape[axis]) for axis in (0, 1))
    meet = [
        (shifts > -right) & (shifts < left)  # beyond, a transform repeats itself
        for shifts, left, right in zip((rows, columns), problem.left_shape, problem.right_shape, strict=True)
    ]
    planes = []
    for pair in range(problem.pairs):
        plane = fft.irfft2(of_left[pair // problem.rights_per_left] * of_right[pair % problem.rights], size)
        planes.append(plane[np.ix_(rows % size[0], columns % size[1])] * np.outer(*meet))
    planes = np.array(planes)
    assert abs(planes - np.rint(planes)).max() < 0.1
    return np.rint(planes).astype(np.int64)


def matrices(shape, count, seed, brightest=256):
    return np.random.default_rng(seed).integers(0, brightest, (count, *shape), dtype=np.uint8)


PROBLEMS = OF_FLOATS | {
    "whole chunks": Problem((128, 512), (128, 512), (-16, -16), (32, 32), rights=8, rights_per_left=8),
    "larger": Problem((1000, 1040), (1000, 1040), (-16, -16), (33, 33), rights=3, rights_per_left=3),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_sums_are_exact(cupy, name):
    problem = PROBLEMS[name]
    lefts, rights = matrices(problem.left_shape, problem.lefts, 1), matrices(problem.right_shape, problem.rights, 2)
    planes = exact_sums(problem, cupy.asarray(lefts), cupy.asarray(rights))
    assert planes.dtype == np.int64
    np.testing.assert_array_equal(planes.get(), whole_sums(lefts, rights, problem))


def test_matrices_at_any_address(cupy):
    problem = PROBLEMS["whole chunks"]
    lefts, rights = matrices(problem.left_shape, problem.lefts, 1), matrices(problem.right_shape, problem.rights, 2)
    buffer = cupy.zeros(lefts.size + 1, "uint8")
    odd = buffer[1:].reshape(lefts.shape)
    odd[...] = cupy.asarray(lefts)
    np.testing.assert_array_equal(
        exact_sums(problem, odd, cupy.asarray(rights)).get(), whole_sums(lefts, rights, problem)
    )


def test_nothing_else_is_written(cupy, monkeypatch):
    problem = PROBLEMS["n-to-m"]
    lefts, rights = matrices(problem.left_shape, problem.lefts, 1), matrices(problem.right_shape, problem.rights, 2)
    left, right = cupy.asarray(lefts), cupy.asarray(rights)
    made = []

    def guarded(shape, dtype):
        count = int(np.prod(shape))
        buffer = cupy.full(count + 512, 77, dtype)
        buffer[256 : 256 + count] = 0
        made.append(buffer)
        return buffer[256 : 256 + count].reshape(shape)

    with monkeypatch.context() as patch:
        patch.setattr(cupy, "zeros", guarded)
        planes = exact_sums(problem, left, right)
    np.testing.assert_array_equal(planes.get(), whole_sums(lefts, rights, problem))
    for buffer in made:
        assert (cupy.concatenate([buffer[:256], buffer[-256:]]) == 77).all()
