"""Banks of filters on the device, without one: padding and product run on the host; parts, bands, little memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.im2win_definition import start_on_host
from xcorr_app.errors import ShapeError
from xcorr_app.filtering.boundary import padded
from xcorr_app.gpu.im2win.bank import BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.bank_run import bank_on_device
from xcorr_app.gpu.runtime import memory
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
