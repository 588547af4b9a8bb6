"""Banks of filters over device arrays, with NumPy in CuPy's place: rules, types, values, memory that runs out."""

import sys
from typing import Any

import numpy as np
import pytest

from tests.filtering.test_filter_bank import agree, by_definition, noise
from tests.kernels.im2win_definition import start_on_host
from xcorr_app import filter_bank
from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.filtering import bank_device
from xcorr_app.filtering.boundary import MODES
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
