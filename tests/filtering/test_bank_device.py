"""Banks of filters over device arrays, with NumPy in CuPy's place: rules, types, values, memory that runs out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tests.filtering.conftest import OutOfMemoryError
from tests.filtering.test_filter_bank import agree, by_definition, noise
from tests.kernels.im2win_definition import start_on_host
from xcorr_app import filter_bank
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, DeviceMemoryError, ShapeError
from xcorr_app.filtering import bank_device
from xcorr_app.filtering.array_choice import decide_bank
from xcorr_app.filtering.boundary import MODES
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"]


class DeviceArray(np.ndarray[Any, Any]):
    """A NumPy array that can be fetched and set as a CuPy array is."""

    def get(self) -> Any:
        return np.array(self)

    def set(self, values: Any) -> None:
        self[...] = values


@pytest.fixture
def kernels(stand_in: list[Any], device_builds: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were started; NumPy arrays pass for those of a device."""
    names: list[str] = []
    start_on_host(device_builds, monkeypatch, names)
    bank_device._kept.cache_clear()
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(bank_device, "current_device", lambda: 0)
    monkeypatch.setattr(bank_device, "device_limits", lambda _: KNOWN_DEVICES["h200"])
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


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_with_channels(rng: Any, kernels: list[str], dtype: str) -> None:
    images, bank = noise(rng, (2, 2, 9, 12), dtype), rng.normal(size=(3, 2, 3, 5))
    found = filter_bank(images, bank, mode="mirror")
    wide = dtype in ("int32", "uint32", "float64")
    assert found.dtype == (np.float64 if wide else np.float32)
    agree(found, images, bank, "mirror")
    assert ("im2win_pad" in kernels) != wide


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_stays_in_its_footprint(rng: Any, bad: float) -> None:
    images, bank = noise(rng, (1, 12, 15), "float32"), rng.normal(size=(4, 3, 3))
    bank[0, 1, 1] = 0  # times infinity
    images[0, 7, 4] = bad
    found = filter_bank(images, bank)
    reached = np.zeros(found.shape, bool)
    reached[..., 6:9, 3:6] = True
    np.testing.assert_array_equal(np.isnan(found), reached)
    images[0, 7, 4] = 0
    np.testing.assert_allclose(found[~reached], filter_bank(images, bank)[~reached], atol=1e-3)


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


def test_memory_that_is_short_once(rng: Any, kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    images, bank = noise(rng, (3, 2, 9, 8), "uint16"), rng.normal(size=(4, 2, 3, 3))
    taken, at_once = [], bank_device.at_once

    def short_once(kernel: str, source: Any, *rest: Any) -> None:
        taken.append(len(source))
        if len(source) > 1:
            raise OutOfMemoryError
        at_once(kernel, source, *rest)

    monkeypatch.setattr(bank_device, "at_once", short_once)
    agree(filter_bank(images, bank), images, bank, "reflect")
    assert taken == [3, 1, 1, 1]


def decided(dtype: str, bank_shape: tuple[int, int, int, int], size: int = 200, images: int = 2) -> str:
    shape = (images, bank_shape[1], size, size)
    return decide_bank(shape, np.dtype(dtype), bank_shape, KNOWN_DEVICES["h200"]).name


def test_what_runs_at_once() -> None:
    """Nearly all; few filters of one channel are left to the kernel of one filter where images are large."""
    for count in (1, 2, 12):
        assert decided("uint16", (count, 1, 9, 9)) == "im2win:implicit"
    assert decided("uint16", (2, 3, 9, 9)) == "im2win:implicit"
    assert decided("float64", (64, 3, 9, 9)) == "filters"
    for count, name in ((1, "filters"), (2, "filters"), (16, "im2win:implicit")):
        assert decided("uint8", (count, 1, 9, 9), 2048, 16) == name


def test_few_products_stay_in_registers() -> None:
    assert decided("uint16", (2, 1, 5, 5)) == decided("float32", (64, 3, 3, 3)) == "im2win:shallow"
    assert decided("uint16", (1, 1, 5, 5)) == "im2win:shallow"
    assert decided("float32", (4, 1, 5, 5), 2**15) == "im2win:implicit"  # in bands, which the kernel does not write


def test_the_cpu_sums_small_filters_and_transforms_large_ones() -> None:
    for side, engine in ((10, "opencv"), (11, "fft")):
        assert decide_bank((1, 1, 99, 99), np.dtype("float32"), (4, 1, side, side), None).name == engine


@pytest.mark.parametrize("count", [2, 9])
def test_few_products_give_the_sums_of_the_definition(rng: Any, kernels: list[str], count: int) -> None:
    images, bank = noise(rng, (2, 33, 26), "float32"), rng.normal(size=(count, 5, 4))
    agree(filter_bank(images, bank, mode="wrap"), images[:, None], bank[:, None], "wrap")
    assert kernels == ["im2win_pad", "shallow"]


@pytest.mark.usefixtures("kernels")
def test_what_is_refused_is_refused_here_too() -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        filter_bank(np.ones((8, 8)), np.ones((1, 9, 3)), mode="valid")
    with pytest.raises(ArgumentError, match="take one of reflect"):
        filter_bank(np.ones((8, 8)), np.ones((1, 3, 3)), mode="edge")  # type: ignore[arg-type]


METHODS = {
    "im2win": ["im2win_pad", "im2win_transform", "im2win_convolve"],
    "im2win-basic": ["im2win_pad", "im2win_transform", "im2win_basic"],
    "implicit": ["im2win_pad", "im2win_convolve"],
    "shallow": ["im2win_pad", "shallow"],
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


@pytest.mark.usefixtures("kernels")
def test_a_filter_after_the_other_takes_a_stride(rng: Any, engine: str) -> None:
    images, bank = noise(rng, (2, 12, 17), "float64"), rng.normal(size=(3, 4, 3))
    expected = by_definition(images[:, None], bank[:, None], "mirror")[..., ::3, ::3]
    np.testing.assert_allclose(filter_bank(images, bank, mode="mirror", stride=3), expected, atol=1e-10)
    assert engine


@pytest.mark.usefixtures("kernels")
def test_what_a_method_does_not_compute_is_refused() -> None:
    with pytest.raises(ArgumentError, match="sums in float32, images of float64"):
        filter_bank(np.ones((8, 8)), np.ones((1, 3, 3)), method="im2win")
    with pytest.raises(ArgumentError, match="use 'auto'"):
        filter_bank(np.ones((64, 8, 8), np.float32), np.ones((1, 64, 3, 3)), method="shallow")


def test_a_bank_that_was_changed_in_place_is_another(rng: Any, kernels: list[str]) -> None:
    images, bank = noise(rng, (2, 11, 13), "float32"), rng.normal(size=(3, 9, 8))
    for _ in range(2):
        agree(filter_bank(images, bank), images[:, None], bank[:, None], "reflect")
        bank[1, 2, 3] += 1
    assert len(bank_device._kept()) == 0  # what is not asked for has no plan
    assert bank_device._kept.cache_info().currsize == 3


def test_a_call_of_the_same_bank_prepares_nothing(rng: Any, kernels: list[str], monkeypatch: Any) -> None:
    images, bank = noise(rng, (2, 11, 13), "float32"), rng.normal(size=(3, 9, 8))
    first = filter_bank(images, bank)
    monkeypatch.setattr(bank_device, "checked_bank", None)
    monkeypatch.setattr(bank_device, "decide_bank", None)
    np.testing.assert_array_equal(filter_bank(images, bank), first)
