"""Device memory that runs out, at any allocation or for real: the same answer in smaller pieces or on the CPU."""

import numpy as np
import pytest

from tests.correlation import plain
from tests.registration.scenes import drifting
from xcorr_app import cross_correlate, estimate_shifts
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.registration.estimate import ON_HOST as NOTE
from xcorr_app.registration.stack import passes

pytestmark = pytest.mark.gpu


class Allocator:
    """Takes memory from CuPy's pool, but for the calls whose number `fails` picks."""

    def __init__(self, cupy, fails=lambda call: False):
        self.cupy, self.fails, self.calls = cupy, fails, 0

    def __call__(self, size):
        self.calls += 1
        if self.fails(self.calls):
            raise self.cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return self.cupy.get_default_memory_pool().malloc(size)


def allocations(cupy, job):
    """How often a job allocates once everything that is kept from call to call is there."""
    job()
    allocator = Allocator(cupy)
    with cupy.cuda.using_allocator(allocator):
        job()
    assert allocator.calls > 1
    return allocator.calls


CASES = [("fft", "none"), ("fft", "zncc"), ("fft", "phase"), ("direct", "none"), ("direct", "zncc")]


@pytest.mark.parametrize(("engine", "normalization"), CASES)
@pytest.mark.parametrize("form", ["one-to-one", "n-to-m", "n-to-mn"])
def test_planes_where_the_nth_allocation_fails(cupy, rng, form, engine, normalization):
    make = lambda shape: cupy.asarray(rng.normal(size=shape).astype(np.float32))  # noqa: E731
    left, right = plain.operands(form, (20, 18), (20, 18), make)
    options = {"normalization": normalization, "engine": engine}

    def planes():
        return cross_correlate(left, right, form, 6, **options).get()

    expected, count = planes(), allocations(cupy, planes)
    for n in range(1, count + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            np.testing.assert_allclose(planes(), expected, rtol=1e-5, atol=1e-4, err_msg=f"allocation {n} of {count}")
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free.*--device cpu"),
    ):
        planes()


def same(result, expected):
    np.testing.assert_allclose(result.shifts, expected.shifts, atol=2e-3)
    np.testing.assert_allclose(result.score, expected.score, atol=1e-3)
    assert result.flags == expected.flags


@pytest.mark.parametrize("engine", ["fft", "direct"])
@pytest.mark.parametrize("reference", ["first", "previous", "mean"])
def test_shifts_where_the_nth_allocation_fails(cupy, monkeypatch, reference, engine):
    drift = np.random.default_rng(5).uniform(-4, 4, (7, 2))
    stack = cupy.asarray(drifting(drift, shape=(40, 44)).astype(np.float32))
    monkeypatch.setattr(passes, "_HELD_PIXELS", 4 * 40 * 44)

    def shifts():
        return estimate_shifts(stack, reference, 8, engine=engine, verify=2)

    expected, count = shifts(), allocations(cupy, shifts)
    on_cpu, numbers = 0, range(1, count + 1, max(1, count // 20))
    for n in numbers:
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            result = shifts()
        same(result, expected)
        on_cpu += NOTE in result.notes
    print(f"{on_cpu} of {len(numbers)} on the CPU")
    assert on_cpu < len(numbers)  # what fails within a chunk is done again on the device
    for n in (1, count // 2, count):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call >= n)):
            result = shifts()
        same(result, expected)
        assert NOTE in result.notes


def test_a_batch_larger_than_the_memory(cupy, rng, little_memory):
    left, right = (cupy.asarray(rng.normal(size=(n, 128, 128)).astype(np.float32)) for n in (16, 8))
    expected = cross_correlate(left, right, "n-to-m", engine="fft").get()
    megabytes = expected.nbytes >> 20
    little_memory((2 * megabytes) << 20)  # twice the result; the work on the whole takes far more
    planes = cross_correlate(left, right, "n-to-m", engine="fft")
    np.testing.assert_allclose(planes.get(), expected, atol=1e-5)
    del planes
    little_memory(expected.nbytes // 2)
    with pytest.raises(DeviceMemoryError, match=r"planes of 128 pairs over 255 x 255 shifts take 0\.03 GB"):
        cross_correlate(left, right, "n-to-m", engine="fft")


def test_a_stack_larger_than_the_memory(cupy, little_memory):
    stack = cupy.asarray(drifting(np.linspace((0, 0), (6, -5), 24), shape=(256, 256)).astype(np.float32))
    expected = estimate_shifts(stack, max_shift=12, verify="all")
    for frames, falls_back in ((8, False), (0.02, True)):  # of the latter, less than one frame in float32
        little_memory(int(frames * 256 * 256 * 128))
        result = estimate_shifts(stack, max_shift=12, verify="all")
        same(result, expected)
        assert (NOTE in result.notes) == falls_back
