"""`convolve` and what is built on it with arrays in device memory, against ``scipy.ndimage`` in float64."""

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.batch.filter_runs import NAMED, assert_rounded, expected, result
from tests.batch.movies import record, xcorr
from tests.device import NEEDS_DEVICE
from tests.filtering.oracle import (
    BOUNDARIES,
    TYPES,
    assert_same_pixels,
    convolved,
    correlated,
    largest_sum,
    random_image,
)
from tests.gpu.test_memory import Allocator, allocations
from tests.io.samples import noise, write_plain
from xcorr_app.correlation.engines import limits_of
from xcorr_app.errors import DeviceError, DeviceMemoryError
from xcorr_app.filtering.choice import decide_filter
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.request import checked_request
from xcorr_app.registration.stack import passes
from xcorr_app.registration.stack.prefilter import Prefilter

pytestmark = NEEDS_DEVICE

CVAL = 3.0
SHAPES = [(1, 1), (3, 3), (4, 2), (6, 11), (12, 12)]


def taps_of(rng, shape):
    taps = rng.standard_normal(shape)
    return taps / np.abs(taps).sum()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", BOUNDARIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_mode_and_type(cupy, rng, mode, dtype, shape):
    images, taps = random_image(rng, (2, 41, 167), dtype), taps_of(rng, shape)
    on_device, unit = cupy.asarray(images), largest_sum(images, taps, mode, CVAL)
    filtered = xc.convolve(on_device, taps, mode, cval=CVAL)
    assert isinstance(filtered, cupy.ndarray)
    assert filtered.dtype == images.dtype
    assert_same_pixels(filtered.get(), convolved(images, taps, mode, CVAL), unit)
    single = xc.filter_taps(on_device, taps, mode, cval=CVAL, dtype="float32")
    assert single.dtype == np.float32
    assert_same_pixels(single.get(), correlated(images, taps, mode, CVAL), unit)
    np.testing.assert_array_equal(on_device.get(), images)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("mode", [*BOUNDARIES, "valid"])
@pytest.mark.parametrize("shape", [(12, 15), (33, 65)])
def test_low_rank_taps(cupy, rng, mode, rank, dtype, shape):
    images = random_image(rng, (2, 83, 158), dtype)
    taps = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    taps /= np.abs(taps).sum()
    on_device = cupy.asarray(images)
    how = on_device.shape, on_device.dtype
    request = checked_request(*how, taps, mode, cval=CVAL, origin=0, dtype="same", flip=True)
    assert decide_filter(request, taps, *how, limits_of(cupy)).engine == "separable"
    exact = xc.convolve(images.astype(np.float64), taps, mode, cval=CVAL)
    unit = largest_sum(images, taps, "constant" if mode == "valid" else mode, CVAL)
    assert_same_pixels(xc.convolve(on_device, taps, mode, cval=CVAL).get(), exact, unit)


@pytest.mark.parametrize("sigma", [0.3, 1, 2, 4, 8, 15, 40, 100, 250])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_gaussians_of_any_width(cupy, rng, sigma, dtype):
    image = random_image(rng, (200, 300), dtype)
    smooth = xc.convolve(cupy.asarray(image), xc.filters.gaussian(sigma), dtype="float32").get()
    exact = ndimage.gaussian_filter(image.astype(np.float64), sigma)
    np.testing.assert_allclose(smooth, exact, rtol=0, atol=1e-5 * np.abs(image.astype(float)).max())
    same = xc.convolve(cupy.asarray(image), xc.filters.gaussian(sigma)).get()
    if same.dtype.kind != "f":
        assert_same_pixels(same, exact, 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 2), (5, 3)])
@pytest.mark.parametrize("mode", BOUNDARIES)
def test_images_smaller_than_the_filter(cupy, rng, shape, mode):
    image = random_image(rng, shape, "float64")
    for taps in (taps_of(rng, (31, 30)), xc.filters.gaussian(4), taps_of(rng, (66, 3))):
        dense = getattr(taps, "taps", taps)
        filtered = xc.convolve(cupy.asarray(image), taps, mode, cval=CVAL).get()
        np.testing.assert_allclose(filtered, convolved(image, dense, mode, CVAL), atol=1e-12)


@pytest.mark.parametrize("made", [np.ones((3, 3)), np.eye(20), np.eye(66), xc.filters.gaussian(2), xc.filters.box(21)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_within_its_footprint(cupy, rng, made, value):
    images = random_image(rng, (2, 90, 150), "float32")
    images[1, 40, 70] = value
    filtered = xc.convolve(cupy.asarray(images), made).get()
    clean = xc.convolve(cupy.asarray(np.where(np.isfinite(images), images, 0)), made).get()
    dense = getattr(made, "taps", made)
    footprint = convolved(~np.isfinite(images), np.ones(dense.shape), "constant") > 0.5
    assert np.isfinite(filtered[~footprint]).all()
    assert not np.isfinite(filtered[1, 40, 70])
    np.testing.assert_allclose(filtered[~footprint], clean[~footprint], rtol=0, atol=2e-6 * largest_sum(clean, dense))


@pytest.mark.parametrize("gain", [0.9, 1.2, 3.0, 40.0])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_clipped_pixels_are_counted(cupy, rng, gain, dtype):
    images, limits = random_image(rng, (3, 70, 133), dtype), np.iinfo(dtype)
    for taps in (taps_of(rng, (3, 5)), np.outer(taps_of(rng, (1, 9)), taps_of(rng, (1, 9))), taps_of(rng, (65, 3))):
        exact = np.rint(convolved(images, gain * taps))
        filtered, clipped = filter_frames(cupy.asarray(images), gain * taps)
        assert_same_pixels(filtered.get(), convolved(images, gain * taps), 1.0)
        assert abs(clipped - np.count_nonzero((exact < limits.min) | (exact > limits.max))) <= 20


def test_the_arrays_device_does_the_work(cupy, rng):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is only one device")
    image = random_image(rng, (40, 50), "float32")
    for taps in (taps_of(rng, (3, 3)), xc.filters.gaussian(2), taps_of(rng, (65, 3))):
        here = xc.convolve(cupy.asarray(image), taps)
        with cupy.cuda.Device(1):
            there = cupy.asarray(image)
        filtered = xc.convolve(there, taps)
        assert filtered.device.id == 1
        assert cupy.cuda.Device().id == 0
        with cupy.cuda.Device(1):
            np.testing.assert_array_equal(filtered.get(), here.get())
        with pytest.raises(DeviceError):
            filter_frames(there, taps, out=cupy.empty((40, 50), "float32"))


@pytest.mark.parametrize("made", [np.ones((3, 3)) / 2, np.eye(65), xc.filters.gaussian(2), xc.filters.gaussian(30)])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_where_the_nth_allocation_fails(cupy, rng, made, dtype):
    stack = cupy.asarray(random_image(rng, (5, 66, 70), dtype))[:, ::-1]

    def filtered():
        return filter_frames(stack, made)

    wanted, clipped = filtered()
    wanted = wanted.get()
    count, atol = allocations(cupy, filtered), 1 if dtype == "uint16" else 1e-5
    for n in range(1, count + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            again, number = filtered()
            found, what = again.get().astype(float), f"allocation {n} of {count}"
            np.testing.assert_allclose(found, wanted, rtol=0, atol=atol, err_msg=what)
        assert number == clipped, what
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free.*NumPy arrays"),
    ):
        filtered()


def test_a_stack_whose_work_does_not_fit(cupy, rng, little_memory):
    """The copy of a view and the transforms of large taps take room besides the result."""
    stack = cupy.asarray(random_image(rng, (16, 512, 512), "float32"))[:, ::-1]
    for made, extra in ((np.eye(3), stack.nbytes * 4 // 3), (np.eye(65), stack.nbytes + (40 << 20))):
        wanted = xc.convolve(stack, made).get()
        little_memory(extra, new_blocks=True)
        np.testing.assert_allclose(xc.convolve(stack, made).get(), wanted, rtol=1e-6)
        cupy.get_default_memory_pool().set_limit(size=0)


@pytest.mark.parametrize("dtype", ["uint8", ">u2", "float32"])
def test_host_arrays_go_to_the_device_and_back(rng, little_memory, dtype):
    images = random_image(rng, (24, 300, 310), dtype.replace(">u2", "uint16")).astype(dtype)[::-1]
    taps = taps_of(rng, (5, 5))
    exact = convolved(images[:3], taps)
    for extra in (1 << 30, 1 << 22, 1 << 10):  # whole, in parts, and on the CPU
        little_memory(extra)
        filtered, _ = filter_frames(images, taps, kernel="reuse")
        assert isinstance(filtered, np.ndarray)
        assert filtered.dtype == images.dtype
        native = filtered[:3].astype(filtered.dtype.newbyteorder("="))
        assert_same_pixels(native, exact, largest_sum(images[:3], taps))


PREFILTERS = ["gaussian:1.5", "highpass:3", "dog:1,3", "log:2", "sobel", "box:5", "laplacian", "unsharp:2,0.7"]


@pytest.mark.parametrize("text", PREFILTERS)
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64", "int32"])
def test_prefilters_are_those_of_the_cpu(cupy, rng, text, dtype):
    frames = (1000 * rng.random((3, 60, 70))).astype(dtype)
    filtered = Prefilter.parse(text)(cupy.asarray(frames))
    assert isinstance(filtered, cupy.ndarray)
    np.testing.assert_allclose(filtered.get(), Prefilter.parse(text)(frames), rtol=0, atol=2e-6 * 1000 * 16)


@pytest.mark.parametrize("chosen", NAMED, ids=" ".join)
def test_the_command_on_the_device(tmp_path, chosen):
    frames = noise((3, 31, 33), "uint8", seed=3)
    write_plain(tmp_path / "m.tif", frames)
    run = xcorr("filter", tmp_path / "m.tif", "-o", tmp_path / "out", "--device", "cuda", "--dtype", "same", *chosen)
    assert run.code == 0, run
    clipped = assert_rounded(result(tmp_path / "out"), expected(frames, NAMED[chosen]))
    found = record(tmp_path / "out")
    assert found["stacks"]["m"]["clipped_pixels"] == pytest.approx(clipped, abs=5)
    assert found["stacks"]["m"]["engine"] in ("reuse", "separable", "sliding")
    assert "cuda:0" in found["device"]


@pytest.fixture
def only_memory(cupy):
    """Limits what all arrays made from now on take, whatever earlier ones have left free in their blocks."""
    before = cupy.cuda.get_allocator()
    pools = []

    def limit(most):
        pools.append(cupy.cuda.MemoryPool())
        pools[-1].set_limit(size=most)
        cupy.cuda.set_allocator(pools[-1].malloc)

    yield limit
    cupy.cuda.set_allocator(before)


def test_the_command_where_memory_runs_out(tmp_path, monkeypatch, only_memory):
    frames = noise((6, 300, 310), "uint16", seed=3)
    write_plain(tmp_path / "m.tif", frames)
    monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
    exact = expected(frames, lambda frame: ndimage.sobel(frame, 0))
    # All planes are brought ahead; two and what becomes of them lie beside them.
    enough = (len(frames) + 2 * 2) * frames[0].nbytes + (1 << 20)
    for most, falls_back in ((enough, False), (frames[0].nbytes // 2, True)):
        only_memory(most)
        out = tmp_path / f"out{falls_back}"
        run = xcorr("filter", tmp_path / "m.tif", "-o", out, "--device", "cuda", "--dtype", "same", "--sobel", "y")
        assert run.code == 0, run
        assert_rounded(result(out), exact)
        notes = " ".join(record(out)["stacks"]["m"]["notes"])  # of clipped pixels, and where it was filtered
        assert ("the CPU filtered it from plane 0 on" in notes) == falls_back
        assert run.stdout.count("the CPU filtered it from plane 0 on") == falls_back
