"""Windows of shifts of uint8 matrices on the device's tensor cores: plain sums, exact."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.tensor.hankel_bytes import hankel_bytes_launch

__all__ = ["exact_sums"]


def exact_sums(problem: Problem, lefts: Any, rights: Any) -> Any:
    """Sum products over a window of shifts in whole numbers."""
    cupy = importlib.import_module("cupy")
    launch = _launch(problem, device_limits(current_device()))
    planes = cupy.zeros((problem.pairs, *problem.plane_shape), cupy.int64)
    start(launch, (lefts, rights, planes), (*problem.arguments(), *launch.extra))
    return planes


@functools.lru_cache(maxsize=256)
def _launch(problem: Problem, device: DeviceLimits) -> Launch:
    return hankel_bytes_launch(problem, device=device)
