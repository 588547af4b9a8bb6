"""Filters of device arrays, with NumPy in CuPy's place: values, counts, plans, layouts, memory that runs out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xcorr_app as xc
from tests.filtering.conftest import OutOfMemoryError
from tests.filtering.oracle import (
    BOUNDARIES,
    TYPES,
    assert_same_pixels,
    convolved,
    correlated,
    largest_sum,
    random_image,
)
from xcorr_app.errors import ArgumentError, DataTypeError, DeviceError, DeviceMemoryError, ShapeError
from xcorr_app.filtering import convolve as convolve_module
from xcorr_app.filtering import device, device_runs, transfer
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.gpu.runtime import memory

CVAL = 3.0
ASYMMETRIC = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.25]]) / 4.75


def filtered(images: Any, taps: Any, mode: Any = "reflect", **options: Any) -> tuple[Any, int]:
    """`filter_frames` as it treats arrays of a device."""
    asked = {"cval": CVAL, "origin": 0, "dtype": "same", "engine": "auto", "flip": True, **options}
    return device.filter_device_frames(images, taps, mode, **asked)


def full_rank(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    taps = rng.standard_normal(shape)
    return taps / np.abs(taps).sum()


@pytest.mark.share(6)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("shape", [(2, 3), (9, 8), (70, 65)])
@pytest.mark.usefixtures("stand_in")
def test_modes_and_types(number: int, shape: tuple[int, int], rng: np.random.Generator) -> None:
    """Small and large dense taps, convolved and correlated."""
    mode: Any = BOUNDARIES[number]
    dtype = TYPES[(number + shape[0]) % 5]
    images, taps = random_image(rng, (2, 9, 37), dtype), full_rank(rng, shape)
    unit = largest_sum(images, taps, mode, CVAL)
    exact = convolved(images, taps, mode, CVAL)
    result, clipped = filtered(images, taps, mode)
    assert result.dtype == images.dtype
    assert_same_pixels(result, exact, unit)
    if result.dtype.kind != "f":
        limits = np.iinfo(dtype)
        expected = np.count_nonzero((np.rint(exact) < limits.min) | (np.rint(exact) > limits.max))
        assert abs(clipped - expected) <= 2
    single, clipped = filtered(images, taps, mode, flip=False, dtype="float32")
    assert (single.dtype, clipped) == (np.float32, 0)
    assert_same_pixels(single, correlated(images, taps, mode, CVAL), unit)


@pytest.mark.parametrize("made", [xc.filters.gaussian(2), xc.filters.dog(1, 3), xc.filters.unsharp(1.5, 4.0)])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("mode", ["mirror", "constant", "valid"])
@pytest.mark.usefixtures("stand_in")
def test_low_rank_taps_go_to_the_separable_kernel(mode: Any, made: Any, dtype: str, rng: np.random.Generator) -> None:
    images = random_image(rng, (2, 40, 31), dtype)
    expected, count = filter_frames(images, made, mode, cval=CVAL, engine="scipy")
    result, clipped = filtered(images, made, mode)
    assert device.planned(images, made, mode, cval=CVAL).engine == "separable"
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 if dtype == "float32" else 1)
    assert abs(clipped - count) <= 2


@pytest.mark.parametrize("origin", [(0, 1), (-1, -1), (0, -1)])
@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.usefixtures("stand_in")
def test_every_origin(origin: tuple[int, int], flip: bool, rng: np.random.Generator) -> None:
    if flip:
        origin = (-origin[0] - 1, origin[1]) if origin[0] else origin
    images = random_image(rng, (15, 40), "float64")
    exact = (convolved if flip else correlated)(images, ASYMMETRIC, "wrap", origin=origin)
    result, _ = filtered(images, ASYMMETRIC, "wrap", origin=origin, flip=flip)
    np.testing.assert_allclose(result, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (70, 64)])
@pytest.mark.usefixtures("stand_in")
def test_nan_stays_local(shape: tuple[int, int], rng: np.random.Generator) -> None:
    """Also where a transform would have spread it."""
    images, taps = random_image(rng, (2, 90, 100), "float32"), full_rank(rng, shape)
    images[1, 5, 90] = np.nan
    result, _ = filtered(images, taps, flip=False)
    expected = filter_frames(images, taps, engine="scipy", flip=False)[0]
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    assert 0 < np.isnan(result[1]).sum() < 70 * 64 + 1
    unit = largest_sum(np.nan_to_num(images), taps)
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6 * unit)


@pytest.mark.usefixtures("stand_in")
def test_large_sums_of_sixteen_bits_are_rounded_as_in_float64(rng: np.random.Generator) -> None:
    images, taps = rng.integers(30000, 32000, (1, 40, 140)).astype("uint16"), 3 * rng.standard_normal((5, 5))
    taps += 0.04 - taps.mean()  # the sum is 1, the way there goes through some sixty times as much
    assert_same_pixels(filtered(images, taps)[0], convolved(images, taps), 1.0)


@pytest.mark.parametrize("taps", [ASYMMETRIC, np.eye(65)])
@pytest.mark.usefixtures("stand_in")
def test_layouts_and_given_results(taps: Any, rng: np.random.Generator) -> None:
    whole = random_image(rng, (2, 40, 60), "float32")
    for view in (whole[:, ::-1, ::-1], whole[:, ::2, 1::3], whole.transpose(0, 2, 1), whole[None, 1:]):
        expected = filter_frames(view, taps, cval=CVAL)[0]
        np.testing.assert_allclose(filtered(view, taps)[0], expected, rtol=0, atol=1e-5)
        for out in (np.full(view.shape, np.nan, "f4"), np.full((*view.shape, 2), np.nan, "f4")[..., 0]):
            assert filtered(view, taps, out=out)[0] is out
            np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)


def test_a_plan_is_made_once(stand_in: list[Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    images, made = random_image(rng, (9, 40), "float32"), []
    prepare = device_runs.prepare_filter
    monkeypatch.setattr(device_runs, "prepare_filter", lambda *a, **k: made.append(1) or prepare(*a, **k))
    for _ in range(3):
        filtered(images, ASYMMETRIC)
        filtered(images, ASYMMETRIC.tolist(), origin=[0, 0])
        filtered(images + 1, ASYMMETRIC.copy(), origin=(0, 0))
    assert len(made) == 2  # origin 0 and origin (0, 0)
    filtered(images, 2 * ASYMMETRIC)
    filtered(images, ASYMMETRIC, "mirror")
    filtered(images[:5], ASYMMETRIC)
    assert len(made) == 5
    assert len(stand_in) == 12


@pytest.mark.usefixtures("stand_in")
def test_what_makes_no_sense_is_refused_as_on_the_cpu(rng: np.random.Generator) -> None:
    images = random_image(rng, (2, 9, 40), "float32")
    with pytest.raises(ArgumentError, match="mode 'edge' is unknown"):
        filtered(images, ASYMMETRIC, "edge")
    with pytest.raises(ArgumentError, match="engine 'opencv' runs on the CPU"):
        filtered(images, ASYMMETRIC, engine="opencv")
    with pytest.raises(DataTypeError, match="images of uint32 cannot be filtered"):
        filtered(images.astype("uint32"), ASYMMETRIC)
    with pytest.raises(ShapeError, match="not empty"):
        filtered(images[:0], ASYMMETRIC)
    with pytest.raises(DataTypeError, match="taps must be real"):
        filtered(images, [[1j]])
    with pytest.raises(ShapeError, match="taps must be a matrix"):
        filtered(images, [1.0])
    with pytest.raises(ShapeError, match="out must be float32"):
        filtered(images, ASYMMETRIC, out=np.empty((9, 40), "f4"))
    with pytest.raises(ArgumentError, match="overlap"):
        filtered(images, ASYMMETRIC, out=images)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Lets runs over more than two images fail after they have written and counted; the shapes that were tried."""
    tried: list[tuple[int, ...]] = []
    real = device._ran

    def ran(run: Any, images: Any, out: Any, clipped: Any) -> bool:
        tried.append(images.shape)
        if images.size > 2 * 9 * 40:
            out.fill(77)
            if clipped is not None:
                clipped += np.uint64(1000)
            raise OutOfMemoryError
        return real(run, images, out, clipped)

    monkeypatch.setattr(device, "_ran", ran)
    return tried


@pytest.mark.usefixtures("stand_in")
def test_a_stack_is_halved_where_memory_runs_out(little_memory: list[Any], rng: np.random.Generator) -> None:
    images = random_image(rng, (5, 1, 9, 40), "uint8")
    exact = convolved(images, 3 * ASYMMETRIC)
    result, clipped = filtered(images, 3 * ASYMMETRIC)
    assert_same_pixels(result, exact, 1.0)
    assert abs(clipped - np.count_nonzero((np.rint(exact) < 0) | (np.rint(exact) > 255))) <= 2
    assert [shape[0] for shape in little_memory] == [5, 2, 2, 1]


@pytest.mark.parametrize("shape", [(4, 9, 40), (9, 40)])
@pytest.mark.usefixtures("stand_in")
def test_of_a_try_that_fails_at_its_end_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, shape: tuple[int, ...]
) -> None:
    images, real, tried = random_image(rng, shape, "uint8"), device._ran, []
    _, expected = filtered(images, 3 * ASYMMETRIC)

    def ran(*arguments: Any) -> None:
        real(*arguments)
        tried.append(1)
        if len(tried) == 1:
            raise OutOfMemoryError

    monkeypatch.setattr(device, "_ran", ran)
    assert filtered(images, 3 * ASYMMETRIC)[1] == expected > 0
    assert len(tried) > 1


@pytest.mark.usefixtures("stand_in")
def test_an_image_that_does_not_fit_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise OutOfMemoryError

    info = type("Device", (), {"mem_info": (1e9, 2e9)})
    monkeypatch.setattr(np, "cuda", type("cuda", (), {"Device": info}), raising=False)
    monkeypatch.setattr(device_runs, "prepare_filter", lambda *_, **__: SimpleNamespace(run=never))
    with pytest.raises(DeviceMemoryError, match=r"work on one image of \(9, 40\).*NumPy arrays"):
        filtered(random_image(rng, (3, 9, 40), "uint8"), ASYMMETRIC)


def through(monkeypatch: pytest.MonkeyPatch, free: int = 1 << 34) -> None:
    """A GPU for arrays in host memory."""
    monkeypatch.setattr(transfer, "require_cuda", lambda: None)
    monkeypatch.setattr(transfer, "bytes_within_limit", lambda: free)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(np, "asnumpy", np.asarray, raising=False)


@pytest.mark.parametrize("dtype", ["uint8", ">u2", "float32"])
def test_host_arrays_go_to_the_device_and_back(
    monkeypatch: pytest.MonkeyPatch, stand_in: list[Any], dtype: str, rng: np.random.Generator
) -> None:
    through(monkeypatch, free=48 * 3 * 360)
    images = random_image(rng, (2, 4, 9, 40), dtype[-2:].replace("u2", "uint16") if dtype[0] == ">" else dtype)
    images = images.astype(dtype)[:, ::-1]
    result, clipped = filter_frames(images, 3 * ASYMMETRIC, "wrap", engine="reuse")
    expected, count = filter_frames(images, 3 * ASYMMETRIC, "wrap", engine="scipy")
    assert result.dtype == images.dtype
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 if dtype == "float32" else 1)
    assert abs(clipped - count) <= 2
    assert len(stand_in) == 3  # of three, three and two images


@pytest.mark.usefixtures("stand_in")
def test_host_arrays_stay_on_the_cpu_where_the_device_has_no_room(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    through(monkeypatch)
    done: list[int] = []
    real = transfer.filter_device_frames

    def filter_device_frames(images: Any, *rest: Any, **options: Any) -> Any:
        if done or len(images) > 1:
            raise OutOfMemoryError
        done.append(len(images))
        return real(images, *rest, **options)

    monkeypatch.setattr(transfer, "filter_device_frames", filter_device_frames)
    images = random_image(rng, (4, 9, 40), "uint8")
    result, clipped = filter_frames(images, 3 * ASYMMETRIC, engine="reuse")
    expected, count = filter_frames(images, 3 * ASYMMETRIC)
    assert done == [1]
    assert np.abs(result.astype(int) - expected).max() <= 1
    assert abs(clipped - count) <= 2


def test_reuse_without_a_gpu_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise DeviceError("no usable CUDA device: the driver lists none; without one, use the CPU (--device cpu)")

    monkeypatch.setattr(transfer, "require_cuda", none)
    with pytest.raises(DeviceError, match="no usable CUDA device"):
        xc.convolve(np.ones((4, 4)), np.ones((3, 3)), engine="reuse")


def test_out_of_memory_is_what_cupy_raises() -> None:
    assert memory.is_out_of_memory(OutOfMemoryError())
    assert memory.is_out_of_memory(MemoryError("std::bad_alloc"))
    assert not memory.is_out_of_memory(MemoryError())
    assert convolve_module.filter_device_frames is device.filter_device_frames


@pytest.mark.parametrize("kernel", ["reuse", "exchange", xc.ExchangeOptions(rows=5, column_reuse=False), "separable"])
@pytest.mark.parametrize("mode", ["mirror", "constant", "valid"])
def test_kernels_by_name(stand_in: list[Any], kernel: Any, mode: Any, rng: np.random.Generator) -> None:
    images, taps = random_image(rng, (2, 19, 47), "float32"), np.outer(rng.random(4), rng.random(7))
    taps /= taps.sum()
    expected = filter_frames(images, taps, mode, cval=CVAL, engine="scipy")[0]
    result, _ = filtered(images, taps, mode, kernel=kernel)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)
    name = kernel if isinstance(kernel, str) else "exchange"
    found = device.planned(images, taps, mode, cval=CVAL, kernel=kernel)
    assert (found.kernel, found.reason) == (name, "it was asked for")
    # Those of dense taps are listed.
    assert [launch.entry for launch in stand_in] == ([] if name == "separable" else [name])
    if not isinstance(kernel, str):
        assert stand_in[0].defines["COLUMN_REUSE"] == 0


def test_host_arrays_go_to_a_kernel_by_name(
    monkeypatch: pytest.MonkeyPatch, stand_in: list[Any], rng: np.random.Generator
) -> None:
    through(monkeypatch)
    monkeypatch.setattr(convolve_module, "require_gpu", lambda _: None)
    images = random_image(rng, (3, 9, 40), "uint8")
    result = xc.convolve(images, 3 * ASYMMETRIC, kernel=xc.ExchangeOptions(rows=4))
    assert_same_pixels(result, convolved(images, 3 * ASYMMETRIC), largest_sum(images, 3 * ASYMMETRIC))
    assert {launch.entry for launch in stand_in} == {"exchange"}
