"""Banks of filters on the device, without one: padding and product run on the host; parts, bands, little memory."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.im2win_definition import start_on_host
from xcorr_app.errors import ArgumentError, DataTypeError, DeviceMemoryError, ShapeError
from xcorr_app.filtering.boundary import padded
from xcorr_app.gpu.im2win import bank_run
from xcorr_app.gpu.im2win.bank import BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.bank_run import bank_on_device
from xcorr_app.gpu.im2win.problem import MAX_ELEMENTS
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.problem import BOUNDARIES


@pytest.fixture
def started(host_builds, monkeypatch):
    """Names of the kernels that were started, in order."""
    names = []
    start_on_host(host_builds, monkeypatch, names)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    return names


def small_integers(shape, seed=5):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def padded_by_definition(images, problem, outside=0.0):
    """Every plane in float64, by the padding that the CPU takes."""
    first, size = problem.first, (problem.filter_height, problem.filter_width)
    rows, columns = ((before, taps - 1 - before) for before, taps in zip(first, size, strict=True))
    planes = images.reshape(-1, *images.shape[-2:])
    result = np.stack([padded(plane, rows, columns, problem.boundary, outside, np.float64) for plane in planes])
    return result.reshape(*images.shape[:2], *result.shape[1:])


def by_definition(images, filters, problem, outside=0.0):
    windows = np.lib.stride_tricks.sliding_window_view(
        padded_by_definition(images, problem, outside), filters.shape[2:], (2, 3)
    )
    return np.einsum("iryxuv,jruv->ijyx", windows, filters.astype(np.float64))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 1, 1, 1), (3, 1, 2, 31), (1, 2, 13, 4)])
@pytest.mark.parametrize("size", [(1, 1), (4, 3), (9, 12)])
def test_padding_equals_the_cpus(host_builds, boundary, shape, size):
    if boundary == "valid" and (size[0] > shape[2] or size[1] > shape[3]):
        with pytest.raises(ShapeError, match="filters that fit"):
            BankProblem(*shape, 1, *size, boundary)
        return
    problem = BankProblem(*shape, 1, *size, boundary)
    images = small_integers(shape).astype(np.float32)
    expected = padded_by_definition(images, problem, 2.5)
    rows = problem.result_shape[0]
    for first in range(rows):
        for part in {BankPart(0, shape[0], first, rows - first), BankPart(0, shape[0], first, 1)}:
            band = guarded(np.full((shape[0], *problem.padded_shape(part.rows)), -777, np.float32))
            launch = pad_launch(problem, part, image_type="float32", outside=2.5)
            run_kernel(host_builds, launch, (guarded(images), band), launch.extra)
            assert guards_are_whole(band)
            np.testing.assert_array_equal(band, expected[:, :, first : first + band.shape[2]])
        if first > 2:
            break


@pytest.mark.parametrize("image_type", INPUT_TYPES)
def test_padding_converts_every_type(host_builds, image_type):
    problem = BankProblem(1, 2, 5, 7, 1, 3, 3, "mirror")
    rng = np.random.default_rng(3)
    images = small_integers((1, 2, 5, 7)).astype(image_type)
    if image_type != "float32":
        limits = np.iinfo(image_type)
        images = rng.integers(limits.min, limits.max, images.shape, image_type, endpoint=True)
    band = guarded(np.full((1, *problem.padded_shape(5)), np.nan, np.float32))
    launch = pad_launch(problem, BankPart(0, 1, 0, 5), image_type=image_type)
    run_kernel(host_builds, launch, (guarded(images), band), launch.extra)
    np.testing.assert_array_equal(band, padded_by_definition(images, problem))


def test_what_is_not_finite_becomes_nan(host_builds):
    problem = BankProblem(1, 1, 2, 4, 1, 1, 1)
    images = np.array([[[[1, np.inf, -np.inf, np.nan], [-0.0, 3e38, -3e38, 1e-40]]]], np.float32)
    band = np.zeros((1, 1, 2, 4), np.float32)
    launch = pad_launch(problem, BankPart(0, 1, 0, 2), image_type="float32")
    run_kernel(host_builds, launch, (images, band), launch.extra)
    np.testing.assert_array_equal(band, np.where(np.isfinite(images), images, np.nan))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("elements", [10**6, 300, 150, 1])
def test_parts_and_bands_make_the_whole(started, boundary, elements):
    images = small_integers((3, 2, 11, 10)).astype(np.uint8)
    filters = small_integers((5, 2, 4, 3), seed=6)
    problem = BankProblem(*images.shape, 5, 4, 3, boundary)
    out = guarded(np.full((3, 5, *problem.result_shape), np.nan, np.float32))
    bank_on_device(images, filters, out, boundary=boundary, outside=7, padded_bytes=4 * elements)
    assert guards_are_whole(out)
    np.testing.assert_array_equal(out, by_definition(images, filters, problem, 7))
    parts = list(problem.parts(elements))
    assert started.count("im2win_pad") == started.count("im2win_convolve") == len(parts)
    assert (len(parts) == 1) == (elements == 10**6)


@pytest.mark.parametrize("elements", [1, 77, 200, 500, 1000, 10**9])
def test_parts_cover_every_row_once_and_keep_the_limit(elements):
    problem = BankProblem(5, 2, 9, 8, 3, 3, 4)
    seen = np.zeros((5, 9), int)
    for part in problem.parts(elements):
        seen[part.first_image : part.first_image + part.images, part.first_row : part.first_row + part.rows] += 1
        assert part.rows == 9 or part.images == 1
        assert problem.padded_elements(part.rows) * part.images <= max(elements, problem.padded_elements(1))
    assert (seen == 1).all()


def test_one_image_beyond_a_launch_is_cut_into_bands():
    problem = BankProblem(2, 1, 60000, 60000, 3, 31, 31)
    parts = list(problem.parts(2**40))
    assert {part.images for part in parts} == {1}
    assert sum(part.rows for part in parts) == 2 * 60000
    assert all(problem.padded_elements(part.rows) <= MAX_ELEMENTS for part in parts)
    for part in parts:
        problem.convolution(part)  # which no limit refuses


class Memory:
    """NumPy in CuPy's place, with memory for arrays up to a size, but for the calls whose number `fails` picks."""

    def __init__(self, most=10**9, fails=lambda call: False):
        self.most, self.fails, self.calls = most, fails, 0

    def take(self, make, *arguments):
        self.calls += 1
        array = make(*arguments)
        if array.size > self.most or self.fails(self.calls):
            raise DeviceMemoryError("none left")
        return array

    def module(self):
        return SimpleNamespace(
            empty=lambda *a: self.take(np.empty, *a),
            asarray=lambda *a: self.take(np.asarray, *a),
            ascontiguousarray=np.ascontiguousarray,
        )


def test_parts_are_halved_until_they_fit(started, monkeypatch):
    images, filters = small_integers((2, 1, 40, 9)).astype(np.float32), small_integers((4, 1, 3, 3))
    problem = BankProblem(*images.shape, 4, 3, 3)
    expected = by_definition(images, filters, problem)
    for most in (500, 250, 170):
        monkeypatch.setitem(sys.modules, "cupy", Memory(most).module())
        out = np.full(expected.shape, np.nan, np.float32)
        bank_run._kept_parts.cache_clear()
        bank_on_device(images, filters, out)
        np.testing.assert_array_equal(out, expected)
    bank_run._kept_parts.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", Memory(30).module())
    with pytest.raises(DeviceMemoryError, match="no memory for"):
        bank_on_device(images, filters, np.empty(expected.shape, np.float32))


def test_any_allocation_may_fail_once(started, monkeypatch):
    images, filters = small_integers((4, 2, 9, 8)).astype(np.float32), small_integers((4, 2, 3, 3))
    expected = by_definition(images, filters, BankProblem(*images.shape, 4, 3, 3))
    counter = Memory()
    for n in range(20):
        memory = Memory(fails=lambda call, n=n: call == n)
        monkeypatch.setitem(sys.modules, "cupy", (counter if n == 0 else memory).module())
        out = np.full(expected.shape, np.nan, np.float32)
        bank_run._kept_parts.cache_clear()
        bank_on_device(images, filters, out)
        np.testing.assert_array_equal(out, expected)
        if n == counter.calls:
            break
    assert 2 <= n == counter.calls


def test_what_does_not_belong_together_is_refused(started):
    images, filters, out = np.ones((1, 2, 8, 8), "float32"), np.ones((3, 2, 3, 3)), np.empty((1, 3, 8, 8), "float32")
    with pytest.raises(ShapeError, match="as many channels"):
        bank_on_device(images, filters[:, :1], out)
    with pytest.raises(DataTypeError, match="must be of uint8"):
        bank_on_device(images.astype("float64"), filters, out)
    with pytest.raises(ShapeError, match="out must be"):
        bank_on_device(images, filters, out, boundary="valid")
    with pytest.raises(ArgumentError, match="unknown boundary"):
        bank_on_device(images, filters, out, boundary="edge")
    with pytest.raises(ArgumentError, match="banks read uint8"):
        pad_launch(BankProblem(1, 1, 3, 3, 1, 1, 1), BankPart(0, 1, 0, 3), image_type="int32")
    assert not started


@pytest.mark.parametrize("kernel", ["implicit", "im2win", "im2win-basic"])
@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("elements", [10**6, 300, 150])
def test_strides_and_window_tensors_in_parts_and_bands(started, kernel, stride, elements):
    images = small_integers((3, 2, 13, 10)).astype(np.uint8)
    filters = small_integers((5, 2, 4, 3), seed=6)
    for boundary in ("mirror", "valid"):
        problem = BankProblem(*images.shape, 5, 4, 3, boundary, stride)
        out = guarded(np.full((3, 5, *problem.result_shape), np.nan, np.float32))
        options = {"kernel": kernel, "boundary": boundary, "stride": stride, "padded_bytes": 4 * elements}
        bank_on_device(images, filters, out, **options)
        assert guards_are_whole(out)
        whole = BankProblem(*images.shape, 5, 4, 3, boundary)
        np.testing.assert_array_equal(out, by_definition(images, filters, whole)[..., ::stride, ::stride])
    product = "im2win_basic" if kernel == "im2win-basic" else "im2win_convolve"
    assert product in started
    assert ("im2win_transform" in started) == (kernel != "implicit")
    with pytest.raises(ArgumentError, match="at least one pixel"):
        BankProblem(*images.shape, 5, 4, 3, "mirror", 0)
