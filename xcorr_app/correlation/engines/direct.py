"""Engine ``direct``: the project's CUDA kernels, correlation by its definition on the device.

Which kernel runs is what :class:`xcorr_app.gpu.direct.options.KernelOptions` asks for, or else the one of the least
expected time (:mod:`xcorr_app.correlation.choice`); the sums are float32. See
``kernels/README.md`` for the algorithms and what they reach.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xcorr_app.correlation.choice import decide_planes
from xcorr_app.correlation.engines.base import ConvertsOnLoad, Engine, needs_device
from xcorr_app.correlation.problem import problem_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.plan import Plan, plan_of
from xcorr_app.gpu.direct.run import run_plan
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES

_READ = frozenset(map(np.dtype, INPUT_TYPES))


def direct_engine(options: KernelOptions | None = None) -> Engine:
    """Return the engine of the CUDA kernels, which convert what they load."""
    return Engine("direct", functools.partial(DirectCorrelator, options or KernelOptions()), needs_device, _READ)


class DirectCorrelator(ConvertsOnLoad):
    """The kernels for fixed shapes and a fixed window."""

    def __init__(
        self,
        options: KernelOptions,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        _xp: Any,
    ) -> None:
        super().__init__(_READ, "engine 'direct' sums in float32")
        self._shapes, self._window, self._options = (left_shape, right_shape), window, options
        # A stack's last chunk is smaller than the others: two plans at a time, rarely more.
        self._plan = functools.lru_cache(maxsize=8)(self._make_plan)

    def sums(self, left: Array, right: Array) -> Array:
        """Plain sums of every pair, shape ``(N, M, ny, nx)``, float32."""
        batch = left.shape[0], right.shape[0], right.shape[1]
        plan = self._plan(current_device(), *batch, left.dtype, right.dtype)
        return run_plan(plan, left, right, (batch[0], batch[2], *self._window.shape))

    def _make_plan(
        self, device: int, lefts: int, sets: int, per_left: int, left_type: np.dtype[Any], right_type: np.dtype[Any]
    ) -> Plan:
        problem = problem_of(*self._shapes, self._window, lefts, sets * per_left, per_left)
        names = left_type.name, right_type.name
        limits = device_limits(device)
        chosen = decide_planes(problem, dtypes=names, engine="direct", options=self._options, limits=limits)
        tuning = self._options.tuning()
        return plan_of(problem, chosen.kernel, left_type=names[0], right_type=names[1], tuning=tuning)
