"""Kernels of filters, banks and mixing by name on the device, against their definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import record, xcorr
from tests.filtering.oracle import assert_same_pixels, convolved, largest_sum, random_image
from tests.filtering.test_filter_bank import by_definition, convolution, noise
from tests.io.samples import noise as pixels
from tests.io.samples import write_shaped
from tests.kernels.pointwise_definition import assert_mixed, random_matrix, random_stack

pytestmark = pytest.mark.gpu

METHODS = [
    *("auto", "im2win", "im2win-basic", "implicit", "implicit-basic", "shallow"),
    xc.Im2winOptions(micro_kernel=False, double_buffer=False),
    xc.Im2winOptions(vector_loads=False, prefetch=False, tile_filters=32),
    xc.Im2winOptions(window_tensor=False, prefetch_registers=False, tile_depth=16),
]
EXCHANGES = [
    xc.ExchangeOptions(),
    xc.ExchangeOptions(rows=1, warps=8),
    xc.ExchangeOptions(column_reuse=False, shared_taps=False),
    xc.ExchangeOptions(row_reuse=False, share_last=False),
    xc.ExchangeOptions(edges_apart=False, share_last=False, rows=100),
]
BLOCKINGS = [
    xc.BlockingOptions(),
    xc.BlockingOptions(staging="registers"),
    xc.BlockingOptions(warps=1),
    xc.BlockingOptions(warps=2, staging="registers", rounds=2),
    xc.BlockingOptions(warps=8, blocks=1, channel_count=8),
    xc.BlockingOptions(registers=40000, shared_bytes=32768, filters_for_l1=8),
    xc.BlockingOptions(halved_from_l1=64, halved_from_l2=4),
]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("mode", ["reflect", "constant", "wrap"])
@pytest.mark.parametrize("kernel", ["reuse", "separable", *EXCHANGES], ids=str)
def test_filters(cupy, rng, kernel, mode, dtype):
    images, taps = random_image(rng, (2, 67, 131), dtype), np.outer(rng.random(6), rng.random(11))
    taps /= taps.sum()
    exact, unit = convolved(images, taps, mode, 3.0), largest_sum(images, taps, mode, 3.0)
    assert_same_pixels(xc.convolve(cupy.asarray(images), taps, mode, cval=3.0, kernel=kernel).get(), exact, unit)
    assert_same_pixels(xc.convolve(images, taps, mode, cval=3.0, kernel=kernel), exact, unit)


@pytest.mark.parametrize("kernel", ["sliding", "separable", "reuse", "exchange"])
def test_a_gaussian(cupy, rng, kernel):
    image, taps = random_image(rng, (150, 203), "float32"), xc.filters.gaussian(3.0)
    exact = xc.convolve(image.astype(np.float64), taps)
    found = xc.convolve(cupy.asarray(image), taps, kernel=kernel).get()
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * np.abs(image).max())


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("mode", ["reflect", "valid"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_banks(cupy, rng, method, mode, stride):
    images, bank = noise(rng, (3, 3, 47, 61), "uint16"), rng.normal(size=(13, 3, 3, 4))
    expected = by_definition(images, bank, mode)[..., ::stride, ::stride]
    atol = 2e-6 * np.abs(bank).sum(axis=(1, 2, 3)).max() * 65535
    found = xc.filter_bank(cupy.asarray(images), bank, mode=mode, stride=stride, method=method)
    np.testing.assert_allclose(found.get(), expected, rtol=0, atol=atol)
    again = xc.filter_bank(cupy.asarray(images), bank, mode=mode, stride=stride, method=method)
    np.testing.assert_array_equal(again.get(), found.get())
    if method != "auto":
        there_and_back = xc.filter_bank(images, bank, mode=mode, stride=stride, method=method)
        np.testing.assert_array_equal(there_and_back, found.get())


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_conv2d(cupy, rng, method, dtype, stride):
    if dtype == "float64" and method != "auto":
        pytest.skip("sums of float64 images have no such kernel")
    images, filters = noise(rng, (4, 3, 31, 29), dtype), rng.normal(size=(10, 3, 5, 4))
    expected = convolution(images, filters, stride)
    atol = 3e-6 * np.abs(filters).sum(axis=(1, 2, 3)).max() * np.abs(images.astype(float)).max()
    found = xc.conv2d(cupy.asarray(images), filters, stride, method=method)
    np.testing.assert_allclose(found.get(), expected, rtol=0, atol=atol)
    last = xc.conv2d(cupy.asarray(images.transpose(0, 2, 3, 1)), filters, stride, "NHWC", method=method)
    np.testing.assert_array_equal(last.get(), found.get().transpose(0, 2, 3, 1))


@pytest.mark.parametrize("shape", [(2, 37, 45, 33), (3, 20, 67, 11)])
@pytest.mark.parametrize("kernel", ["auto", "blocking", *BLOCKINGS], ids=str)
def test_mixing_many_channels(cupy, kernel, shape):
    stack, matrix = random_stack(shape, "float32"), random_matrix(61, shape[1])
    assert_mixed(xc.unmix(cupy.asarray(stack), matrix, channel_axis=1, kernel=kernel).get(), stack, matrix, 1)
    assert_mixed(xc.unmix(stack, matrix, channel_axis=1, kernel=kernel), stack, matrix, 1)


@pytest.mark.parametrize("kernel", ["mix", "blocking", "shallow"])
def test_mixing_few_channels(cupy, kernel):
    stack, matrix = random_stack((2, 9, 32, 48), "float32"), random_matrix(11, 9)
    assert_mixed(xc.unmix(cupy.asarray(stack), matrix, channel_axis=1, kernel=kernel).get(), stack, matrix, 1)


@pytest.mark.parametrize("kernel", ["mix", *BLOCKINGS], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_mixing_integers(cupy, kernel, dtype):
    stack, matrix = random_stack((2, 12, 33, 47), dtype), random_matrix(10, 12)
    assert_mixed(xc.unmix(cupy.asarray(stack), matrix, channel_axis=1, kernel=kernel).get(), stack, matrix, 1)


def test_the_commands(cupy, tmp_path):
    write_shaped(tmp_path / "m.tif", pixels((3, 40, 51), "uint8"), "TYX")
    words = ("--box", "5", "--kernel", "exchange", "--kernel-option", "rows=9", "--kernel-option", "row-reuse=no")
    explained = xcorr("filter", tmp_path / "m.tif", "-o", tmp_path / "out", *words, "--explain")
    assert "m: reuse:exchange: it was asked for" in explained.stdout
    run = xcorr("filter", tmp_path / "m.tif", "-o", tmp_path / "out", *words)
    assert (run.code, run.stderr) == (0, "")
    facts = record(tmp_path / "out")
    assert facts["parameters"]["kernel_options"] == ["rows=9", "row-reuse=no"]
    assert facts["stacks"]["m"]["engine"] == "exchange"
    assert xcorr("filter", tmp_path / "m.tif", "-o", tmp_path / "cpu", "--box", "5", "--device", "cpu").code == 0
    names = [tmp_path / folder / "m" / "m_filtered.tif" for folder in ("out", "cpu")]
    np.testing.assert_array_equal(*(xc.read_stack(path).data for path in names))

    write_shaped(tmp_path / "c.tif", pixels((4, 40, 51), "uint8"), "CYX")
    np.savetxt(tmp_path / "m.csv", random_matrix(3, 4), delimiter=",")
    words = ("--matrix", tmp_path / "m.csv", "--dtype", "float32")
    asked = ("--kernel", "blocking", "--kernel-option", "staging=registers")
    assert xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "there", *words, *asked).code == 0
    assert xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "here", *words, "--device", "cpu").code == 0
    found, expected = (xc.read_stack(tmp_path / out / "c" / "c_unmixed.tif").data for out in ("there", "here"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
