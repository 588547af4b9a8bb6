"""A device that is none: its arrays are NumPy's, its kernels run on the host."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernels.binding import forget, numpy_as_device
from xcorr_app.filtering import device
from xcorr_app.filtering.engines import choice
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.limits import H200


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, host_builds: Any) -> Iterator[list[Any]]:
    """A device whose arrays are NumPy's; names of the kernels that were started."""
    monkeypatch.setattr(device, "current_device", lambda: 0)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(device, "device_limits", lambda _: H200)
    device._plan.cache_clear()
    yield numpy_as_device(monkeypatch, host_builds)
    device._plan.cache_clear()
    forget()


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's engine of this name, whatever would be chosen; or ``"auto"``."""
    if request.param != "auto":
        monkeypatch.setattr(choice, "chosen_engine", lambda *_, **__: request.param)
