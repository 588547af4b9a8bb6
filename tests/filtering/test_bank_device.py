"""Filters and banks over device arrays, with NumPy in CuPy's place: values, counts, plans, memory that runs out."""

import sys
from typing import Any

import numpy as np
import pytest

from tests.device import OutOfMemoryError
from tests.filtering.oracle import assert_same_pixels, convolved, largest_sum, random_image
from tests.filtering.test_filter_bank import agree, by_definition
from tests.kernels.im2win_definition import start_on_host
from tests.pixels import pixels as noise
from xcorr_app import filter_bank
from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.filtering import bank_device, convolve, device, device_runs, transfer
from xcorr_app.filtering.boundary import MODES
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.limits import H200


class DeviceArray(np.ndarray[Any, Any]):
    """A NumPy array that can be fetched and set as a CuPy array is."""

    def get(self) -> Any:
        return np.array(self)

    def set(self, values: Any) -> None:
        self[...] = values


@pytest.fixture
def kernels(stand_in: list[Any], host_builds: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were started; NumPy arrays pass for those of a device."""
    names: list[str] = []
    start_on_host(host_builds, monkeypatch, names)
    bank_device._kept.cache_clear()
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(bank_device, "current_device", lambda: 0)
    monkeypatch.setattr(bank_device, "device_limits", lambda _: H200)
    monkeypatch.setattr(sys.modules["xcorr_app.filtering.filter_bank"], "is_device_array", lambda x: True)
    return names


@pytest.fixture(params=["im2win", "filters"])
def engine(request: pytest.FixtureRequest, kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """All filters at once, as small images are, or one after the other, as only large ones would be."""
    if request.param == "filters":
        monkeypatch.setattr(bank_device, "decide_bank", lambda *_: Decision("filters"))
    return str(request.param)


@pytest.mark.parametrize("mode", MODES)
def test_modes_by_either_engine(rng: Any, kernels: list[str], engine: str, mode: Any) -> None:
    images, bank = noise(rng, (2, 11, 13), "float32"), rng.normal(size=(3, 9, 8))
    found = filter_bank(images, bank, mode=mode, cval=7)
    agree(found, images[:, None], bank[:, None], mode, 7)
    assert kernels == (["im2win_pad", "im2win_convolve"] if engine == "im2win" else ["reuse"] * 3)


def test_the_host_computes_what_does_not_fit(rng: Any, kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    images, bank = noise(rng, (3, 2, 9, 8), "uint16"), rng.normal(size=(4, 2, 3, 3))
    on_device = filter_bank(images, bank)
    calls: list[int] = []

    def no_room(_: str, source: Any, *__: Any) -> None:
        calls.append(len(source))
        raise DeviceMemoryError("none")

    monkeypatch.setattr(bank_device, "at_once", no_room)
    monkeypatch.setattr(bank_device, "with_second_try", lambda make, *a, what: make(*a).view(DeviceArray))
    found = filter_bank(images.view(DeviceArray), bank)
    agree(found, images, bank, "reflect")
    np.testing.assert_allclose(found, on_device, atol=0.05)
    assert calls == [3, 1, 1, 1]


METHODS = {
    "im2win": ["im2win_pad", "im2win_transform", "im2win_convolve"],
    "im2win-basic": ["im2win_pad", "im2win_transform", "im2win_basic"],
    "implicit": ["im2win_pad", "im2win_convolve"],
    "implicit-basic": ["im2win_pad", "im2win_basic"],
}


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "constant", "valid"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_by_name(rng: Any, kernels: list[str], method: Any, mode: Any, stride: int) -> None:
    images, bank = noise(rng, (2, 3, 19, 22), "uint16"), rng.normal(size=(5, 3, 4, 3))
    found = filter_bank(images, bank, mode=mode, cval=7, stride=stride, method=method)
    assert kernels == METHODS[method]
    expected = by_definition(images, bank, mode, 7)[..., ::stride, ::stride]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(bank).sum(axis=(1, 2, 3)).max() * 65535)


CVAL = 3.0
ASYMMETRIC = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.25]]) / 4.75


def filtered(images: Any, taps: Any, mode: Any = "reflect", **options: Any) -> tuple[Any, int]:
    """`filter_frames` as it treats arrays of a device."""
    asked = {"cval": CVAL, "origin": 0, "dtype": "same", "flip": True, **options}
    return device.filter_device_frames(images, taps, mode, **asked)


def full_rank(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    taps = rng.standard_normal(shape)
    return taps / np.abs(taps).sum()


@pytest.mark.parametrize("shape", [(3, 3), (70, 64)])
@pytest.mark.usefixtures("stand_in")
def test_nan_stays_local(shape: tuple[int, int], rng: np.random.Generator) -> None:
    """Also where a transform would have spread it."""
    images, taps = random_image(rng, (2, 90, 100), "float32"), full_rank(rng, shape)
    images[1, 5, 90] = np.nan
    result, _ = filtered(images, taps, flip=False)
    expected = filter_frames(images, taps, flip=False)[0]
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    assert 0 < np.isnan(result[1]).sum() < 70 * 64 + 1
    unit = largest_sum(np.nan_to_num(images), taps)
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6 * unit)


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


@pytest.mark.usefixtures("stand_in")
def test_an_image_that_does_not_fit_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise OutOfMemoryError

    info = type("Device", (), {"mem_info": (1e9, 2e9)})
    monkeypatch.setattr(np, "cuda", type("cuda", (), {"Device": info}), raising=False)
    monkeypatch.setattr(device_runs, "prepare_filter", lambda *_, **__: never)
    with pytest.raises(DeviceMemoryError, match=r"work on one image of \(9, 40\).*NumPy arrays"):
        filtered(random_image(rng, (3, 9, 40), "uint8"), ASYMMETRIC)


def through(monkeypatch: pytest.MonkeyPatch, free: int = 1 << 34) -> None:
    """A GPU for arrays in host memory."""
    monkeypatch.setattr(convolve, "require_gpu", lambda _: None)
    monkeypatch.setattr(transfer, "bytes_within_limit", lambda: free)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(np, "asnumpy", np.asarray, raising=False)


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
    result, clipped = filter_frames(images, 3 * ASYMMETRIC, kernel="reuse")
    expected, count = filter_frames(images, 3 * ASYMMETRIC)
    assert done == [1]
    assert np.abs(result.astype(int) - expected).max() <= 1
    assert abs(clipped - count) <= 2
