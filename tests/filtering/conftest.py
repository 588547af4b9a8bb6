"""A device that is none: its arrays are NumPy's, its kernels run on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.filter_host import forget, numpy_as_device
from xcorr_app.filtering import device, device_runs
from xcorr_app.filtering.boundary import padded
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES


def separable_by_definition(
    problem: Any, terms: Any, *, image_type: str, result_type: str, outside: float, kernel: str
) -> Any:
    """What ``prepare_separable`` returns, in float64."""
    taps = sum(np.outer(column, row) for column, row in terms)
    first = problem.first
    margins = [(before, size - 1 - before) for before, size in zip(first, taps.shape, strict=True)]

    def filtered(frame: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(
            padded(frame, margins[0], margins[1], problem.boundary, outside, np.float64), taps.shape
        )
        return np.einsum("yxfe,fe->yx", windows, taps)

    def run(images: Any, out: Any, clipped: Any) -> None:
        assert (images.dtype.name, out.dtype.name) == (image_type, result_type)
        flat = images.reshape(-1, *images.shape[-2:])
        sums = np.stack([filtered(frame) for frame in flat]).reshape(out.shape)
        if out.dtype.kind != "f":
            limits = np.iinfo(out.dtype)
            rounded = np.rint(sums)
            sums = np.clip(rounded, limits.min, limits.max)
            if clipped is not None:
                clipped += np.uint64(np.count_nonzero(sums != rounded))
        out[...] = sums

    return run


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, host_builds: Any) -> Iterator[list[Any]]:
    """A device whose arrays are NumPy's; names of the dense kernels that were started."""
    monkeypatch.setattr(device_runs, "prepare_separable", separable_by_definition)
    monkeypatch.setattr(device, "current_device", lambda: 0)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(device, "device_limits", lambda _: KNOWN_DEVICES["h200"])
    device._plan.cache_clear()
    yield numpy_as_device(monkeypatch, host_builds)
    device._plan.cache_clear()
    forget()
