"""Pointwise convolution by its definition in float64, random problems, and the kernels' own source run on the host."""

import numpy as np

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.pixels import pixels
from xcorr_app.gpu.pointwise.blocking import pointwise_argument, stored_matrix
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.mix import mixing_argument, sums_in_double
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.limits import H200

COUNTERS = 256


def random_stack(shape, dtype, seed=1):
    """Noise over the whole range of an integer type, or around zero."""
    return pixels(np.random.default_rng(seed), shape, dtype)


def random_matrix(filters, channels, seed=2):
    """Factors of both signs whose results stay within reach of the stack's range, some of them beyond."""
    return np.random.default_rng(seed).normal(0, 0.8 / np.sqrt(channels), (filters, channels))


def values_of(stack, white=None):
    """What is mixed, in float64: the stack, or its optical density."""
    values = stack.astype(np.float64)
    return values if white is None else -np.log10(np.maximum(values / white, 1e-6))


def mixed_by_definition(stack, matrix, axis, white=None):
    """The sum over the channels, in float64, with the channels where they were."""
    values = np.moveaxis(values_of(stack, white), axis, -1)
    return np.moveaxis(np.einsum("kc,...c->...k", np.asarray(matrix, np.float64), values), -1, axis)


def assert_mixed(result, stack, matrix, axis, *, white=None, clip=False, exact=False, counted=None):
    """Fail unless a result is the definition's: float32 within 3e-6 of the sum of absolute products, integers rounded.

    An integer may differ by one where the exact sum lies that close to a half, and not at all where `exact`.
    """
    expected = mixed_by_definition(stack, matrix, axis, white)
    values = np.moveaxis(np.abs(values_of(stack, white)), axis, -1)
    if white is not None:
        values = values + 0.3  # log2 is off by an absolute amount near white
    products = np.moveaxis(np.einsum("kc,...c->...k", np.abs(np.asarray(matrix, np.float64)), values), -1, axis)
    bound = (1e-12 if exact else 3e-6) * products
    expected = np.maximum(expected, 0) if clip else expected
    assert result.shape == expected.shape
    if result.dtype.kind == "f":
        assert (np.abs(result - expected) <= bound).all(), np.abs(result - expected).max()
        return
    assert_rounded(result, expected, bound, counted)


def assert_rounded(result, expected, bound, counted=None):
    """Fail unless integers are those nearest to what is expected, half to even, within their type's range.

    Where it lies within a bound of a half, an integer may be its other neighbour, and count as beyond the range or not.
    """
    limits = np.iinfo(result.dtype)
    stored = np.clip(np.rint(expected), limits.min, limits.max)
    wrong = result != stored
    edge = np.abs(np.abs(expected - np.floor(expected)) - 0.5) <= bound
    assert not (wrong & ~edge).any()
    assert (np.abs(result.astype(np.int64) - stored)[wrong] == 1).all()
    if counted is not None:
        sure = ((expected < limits.min - 0.5 - bound) | (expected > limits.max + 0.5 + bound)).sum()
        perhaps = ((expected < limits.min - 0.5 + bound) | (expected > limits.max + 0.5 - bound)).sum()
        assert sure <= counted <= perhaps


def mixed_on_host(
    folder,
    stack,
    matrix,
    axis,
    *,
    target=None,
    white=None,
    clip=False,
    kernel="auto",
    tuning=None,
    offset=0,
    limits=None,
):
    """What `pointwise_on_device` does, without a device; (result, values clipped). Outputs are poisoned beforehand."""
    axis %= stack.ndim
    matrix = np.asarray(matrix, np.float64)
    target = np.dtype(target or stack.dtype)
    sizes = [int(np.prod(part, dtype=int)) for part in (stack.shape[:axis], stack.shape[axis + 1 :])]
    count = target.kind != "f"
    types = {"image_type": stack.dtype.name, "result_type": target.name}
    problem = PointwiseProblem(
        sizes[0], matrix.shape[1], matrix.shape[0], sizes[1], density=white is not None, clip=clip, count=count, **types
    )
    images = off_by(stack, offset)
    shape = (*stack.shape[:axis], len(matrix), *stack.shape[axis + 1 :])
    results = off_by(np.full(shape, np.nan if target.kind == "f" else 99, target), offset)
    counters = guarded(np.zeros(COUNTERS, np.uint64))
    addresses = images.ctypes.data | results.ctypes.data | 16
    launch = pointwise_launch(problem, kernel, alignment=addresses & -addresses, limits=limits or H200, tuning=tuning)
    if launch.entry == "mix":
        argument = mixing_argument(matrix, problem, launch, white or 1.0)
        run_kernel(folder, launch, (images, results, counters, argument), ())
    else:
        values = guarded(stored_matrix(matrix, np, density=problem.density))
        argument = pointwise_argument(problem, white or 1.0)
        run_kernel(folder, launch, (images, results, counters, values, argument), launch.extra)
    assert surroundings_are_whole(results)
    assert guards_are_whole(counters)
    return results, int(counters.sum())


def off_by(array, elements):
    """Guarded copy of an array that begins on a 16-byte boundary, or so many elements behind one."""
    room = 16 // array.itemsize
    buffer = guarded(np.concatenate([np.zeros(2 * room, array.dtype), array.ravel()]))
    first = next(i for i in range(room) if (buffer.ctypes.data + i * array.itemsize) % 16 == 0) + elements
    buffer[:first] = buffer[first + array.size :] = np.nan if array.dtype.kind == "f" else 77
    view = buffer[first : first + array.size]
    view[:] = array.ravel()
    return view.reshape(array.shape)


def surroundings_are_whole(array):
    """Whether nothing was written around an output that `off_by` made, up to its very edges."""
    buffer = array.base
    while buffer.base is not None:
        buffer = buffer.base
    first = (array.ctypes.data - buffer.ctypes.data) // array.itemsize
    rims = np.concatenate([buffer[:first], buffer[first + array.size :]])
    return bool((np.isnan(rims) if rims.dtype.kind == "f" else rims == 77).all())


def is_exact(stack, matrix, target, white=None):
    """Whether integer results are those of the exact sums."""
    shape = np.asarray(matrix).shape
    types = {"image_type": stack.dtype.name, "result_type": np.dtype(target).name}
    return sums_in_double(PointwiseProblem(1, shape[1], shape[0], 1, density=white is not None, **types))


def check_on_host(
    folder, shape, axis, filters, dtype="float32", *, counts_exactly=False, white=None, clip=False, **how
):
    """Mix a random stack on the host, and compare; sums of the streaming kernel may be exact."""
    stack, matrix = random_stack(shape, dtype), random_matrix(filters, shape[axis])
    result, counted = mixed_on_host(folder, stack, matrix, axis, white=white, clip=clip, **how)
    exact = counts_exactly and is_exact(stack, matrix, result.dtype, white)
    assert_mixed(result, stack, matrix, axis, white=white, clip=clip, exact=exact, counted=counted)
