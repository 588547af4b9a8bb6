"""Banks, mixing, and kernels by name on a device, against their definitions in float64."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import record, xcorr
from tests.device import NEEDS_DEVICE
from tests.filtering.oracle import assert_same_pixels, convolved, largest_sum, random_image
from tests.filtering.test_filter_bank import by_definition
from tests.gpu.test_memory import Allocator, allocations
from tests.io.samples import noise as planes
from tests.io.samples import write_ome, write_shaped
from tests.kernels.pointwise_definition import assert_mixed, random_matrix, random_stack
from tests.pixels import pixels as noise
from xcorr_app import filter_bank, read_stack, unmix
from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.filtering import bank_device
from xcorr_app.filtering.boundary import MODES
from xcorr_app.filtering.unmix import unmix_counted
from xcorr_app.pipeline.planes import NOTE

pytestmark = NEEDS_DEVICE


def keeps_the_bound(found, images, bank, mode, cval=0.0):
    """Float32 sums of n products: an error of at most n * 2^-24 of the sum of their sizes, and a few roundings."""
    found = found.get()
    expected = by_definition(images, bank, mode, cval)
    sizes = by_definition(np.abs(images.astype(float)), np.abs(bank), mode, abs(cval))
    assert found.shape == expected.shape
    bound = 1e-12 if found.dtype == np.float64 else (bank[0].size + 4) * 2.0**-24
    assert (np.abs(found - expected) <= bound * sizes).all()


@pytest.fixture(params=["im2win", "filters"])
def bank_engine(request, monkeypatch):
    """All filters at once, as small images are, or one after the other, as only large ones would be."""
    bank_device._kept.cache_clear()
    if request.param == "filters":
        monkeypatch.setattr(bank_device, "decide_bank", lambda *_: Decision("filters"))
    yield request.param
    bank_device._kept.cache_clear()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 5), (7, 4), (16, 9)])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_and_size_of_a_bank(cupy, rng, mode, size, channels):
    images, bank = noise(rng, (2, channels, 19, 23), "float32"), rng.normal(size=(21, channels, *size))
    keeps_the_bound(filter_bank(cupy.asarray(images), bank, mode=mode, cval=7), images, bank, mode, 7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.usefixtures("bank_engine")
@pytest.mark.parametrize("channels", [1, 2])
def test_every_type(cupy, rng, dtype, channels):
    images, bank = noise(rng, (2, channels, 33, 41), dtype), rng.normal(size=(5, channels, 5, 6))
    found = filter_bank(cupy.asarray(images), bank)
    assert isinstance(found, cupy.ndarray)
    assert found.dtype == (np.float64 if dtype in ("int32", "uint32", "float64") else np.float32)
    keeps_the_bound(found, images, bank, "reflect")


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 2, 31), (1, 5, 1)])
def test_images_smaller_than_the_filters(cupy, rng, size):
    images, bank = noise(rng, size, "float32"), rng.normal(size=(15, 13, 12))
    for mode in ("reflect", "mirror", "wrap", "nearest", "constant"):
        keeps_the_bound(filter_bank(cupy.asarray(images), bank, mode=mode), images[:, None], bank[:, None], mode)


@pytest.mark.usefixtures("bank_engine")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_stays_in_its_footprint(cupy, rng, bad):
    images, bank = noise(rng, (2, 25, 30), "float32"), rng.normal(size=(4, 3, 4))
    bank[1, 1, 2] = 0
    images[1, 20, 3] = bad
    found = filter_bank(cupy.asarray(images), bank).get()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(filter_bank(images, bank)))


def test_a_large_image_with_large_filters(cupy, rng):
    """4096^2 with 31 x 31: rows of the result here and there, against the definition."""
    image, bank = noise(rng, (4096, 4096), "uint8"), rng.normal(size=(32, 31, 31))
    found = filter_bank(cupy.asarray(image), bank)
    for row in (0, 7, 1234, 4095):
        first = min(max(row - 15, 0), 4096 - 46)
        part = image[None, None, first : first + 46, :200].astype(float)  # what the row's first 184 pixels are made of
        expected = by_definition(part, bank[:, None], "reflect")[0, :, row - first, :184]
        sizes = by_definition(part, np.abs(bank[:, None]), "reflect")[0, :, row - first, :184]
        assert (np.abs(found[:, row, :184].get() - expected) <= 961 * 2.0**-24 * sizes).all()


@pytest.mark.parametrize(("filters", "channels"), [(16, 2), (3, 1)])
def test_where_the_nth_allocation_fails(cupy, rng, filters, channels):
    images, bank = noise(rng, (5, channels, 40, 44), "float32"), rng.normal(size=(filters, channels, 5, 5))
    device = cupy.asarray(images)

    def maps():
        return filter_bank(device, bank)

    expected, count = maps(), allocations(cupy, maps)
    for n in range(1, count + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            found = maps()
        np.testing.assert_allclose(found.get(), expected.get(), rtol=0, atol=1e-2, err_msg=f"{n} of {count}")
    for n in range(2, count + 1):  # the result fits, little else does: the host computes
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call >= n)):
            found = maps()
        keeps_the_bound(found, images, bank, "reflect")
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free.*--device cpu"),
    ):
        maps()


METHODS = [
    *("auto", "im2win", "im2win-basic", "implicit", "implicit-basic"),
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


@pytest.mark.parametrize("shape", [(2, 37, 45, 33), (3, 20, 67, 11)])
@pytest.mark.parametrize("kernel", ["auto", "blocking", *BLOCKINGS], ids=str)
def test_mixing_many_channels(cupy, kernel, shape):
    stack, matrix = random_stack(shape, "float32"), random_matrix(61, shape[1])
    assert_mixed(xc.unmix(cupy.asarray(stack), matrix, channel_axis=1, kernel=kernel).get(), stack, matrix, 1)
    assert_mixed(xc.unmix(stack, matrix, channel_axis=1, kernel=kernel), stack, matrix, 1)


@pytest.mark.parametrize("kernel", ["mix", *BLOCKINGS], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_mixing_few_channels(cupy, kernel, dtype):
    stack, matrix = random_stack((2, 12, 33, 47), dtype), random_matrix(10, 12)
    assert_mixed(xc.unmix(cupy.asarray(stack), matrix, channel_axis=1, kernel=kernel).get(), stack, matrix, 1)


def test_the_commands(cupy, tmp_path):
    write_shaped(tmp_path / "m.tif", planes((3, 40, 51), "uint8"), "TYX")
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

    write_shaped(tmp_path / "c.tif", planes((4, 40, 51), "uint8"), "CYX")
    np.savetxt(tmp_path / "m.csv", random_matrix(3, 4), delimiter=",")
    words = ("--matrix", tmp_path / "m.csv", "--dtype", "float32")
    asked = ("--kernel", "blocking", "--kernel-option", "staging=registers")
    assert xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "there", *words, *asked).code == 0
    assert xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "here", *words, "--device", "cpu").code == 0
    found, expected = (xc.read_stack(tmp_path / out / "c" / "c_unmixed.tif").data for out in ("there", "here"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def same(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=4e-6 * max(1, np.abs(expected).max()))
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"clip": True}, {"from_log": True}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((2, 4, 33, 64), -3), ((33, 35, 4), -1)])
def test_the_answer_is_that_of_the_cpu(cupy, dtype, options, shape, axis):
    """Up to eight channels exactly: sums that are rounded are float64 in both."""
    stack, matrix = random_stack(shape, dtype), random_matrix(3, 4)
    expected, number = unmix_counted(stack, matrix, channel_axis=axis, **options)
    found, counted = unmix_counted(cupy.asarray(stack), matrix, channel_axis=axis, **options)
    assert isinstance(found, cupy.ndarray)
    same(found.get(), expected)
    assert counted == number
    same(unmix(cupy.asarray(stack), matrix, channel_axis=axis, **options).get(), expected)


def test_views(cupy):
    stack, matrix = random_stack((6, 40, 60), "uint16"), random_matrix(2, 3)
    there = cupy.asarray(stack)
    for cut in (np.s_[::2, ::-1, 1::3], np.s_[:3], np.s_[3:, 1:, 3:]):
        same(unmix(there[cut], matrix).get(), unmix(stack[cut], matrix))
    moved = unmix(cupy.moveaxis(there[..., :3], -1, 0), matrix)
    same(moved.get(), unmix(np.moveaxis(stack[..., :3], -1, 0), matrix))


def test_mixing_where_the_nth_allocation_fails(cupy):
    stack, matrix = cupy.asarray(random_stack((3, 64, 64), "uint16")), random_matrix(3, 3)
    expected = unmix(stack, matrix).get()
    with cupy.cuda.using_allocator(Allocator(cupy, lambda call: call == 1)):
        same(unmix(stack, matrix).get(), expected)
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free"),
    ):
        unmix(stack, matrix)


def test_the_command_gives_the_file_of_the_cpu_even_where_memory_runs_out(cupy, tmp_path):
    write_ome(tmp_path / "in.ome.tif", planes((3, 4, 50, 60), "uint16"), "TCYX")
    np.save(tmp_path / "m.npy", random_matrix(3, 4))
    options = ("--matrix", tmp_path / "m.npy")
    for name, device in (("cpu", "cpu"), ("gpu", "cuda")):
        words = (tmp_path / "in.ome.tif", "-o", tmp_path / name, *options, "--device", device)
        explained = xcorr("unmix", *words, "--explain")
        assert (explained.code, explained.stderr) == (0, "")
        assert "Plan of dynamic blocking" in explained.stdout
        run = xcorr("unmix", *words)
        assert (run.code, run.stderr) == (0, "")

    def small_only(size):
        """Room for the check that the device works, not for an image."""
        if size > 4096:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return cupy.get_default_memory_pool().malloc(size)

    with cupy.cuda.using_allocator(small_only):
        run = xcorr("unmix", tmp_path / "in.ome.tif", "-o", tmp_path / "full", *options, "--device", "cuda")
    assert run.code == 0
    assert record(tmp_path / "full")["stacks"]["in"]["notes"] == [NOTE.format("mixed", 0)]
    expected = read_stack(tmp_path / "cpu" / "in" / "in_unmixed.tif").data
    for name in ("gpu", "full"):
        np.testing.assert_array_equal(read_stack(tmp_path / name / "in" / "in_unmixed.tif").data, expected)
