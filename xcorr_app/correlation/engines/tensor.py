"""Engine ``tensor``: windows of shifts on the tensor cores of a CUDA device.

How values are multiplied is what :class:`xcorr_app.gpu.direct.options.KernelOptions` asks for. By default they stand in
split fp16, so planes are nearly of single precision (their error is below 1e-6 of the product of both matrices' norms).
Registration searches peaks among fp16 sums, which is several times as fast, and recomputes what lies around each peak:
:mod:`xcorr_app.registration.measuring.device_matcher`. See ``docs/tensor_cores.md``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xcorr_app.correlation.choice import decide_planes
from xcorr_app.correlation.engines.base import ConvertsOnLoad, Engine, needs_device
from xcorr_app.correlation.problem import problem_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.kernels import max_pairs
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.planes import plain_sums

_READ = frozenset(map(np.dtype, INPUT_TYPES))
_TABLE_BYTES = 256 << 20
"""Summed-area tables made at a time."""


def tensor_engine(options: KernelOptions | None = None) -> Engine:
    """Return the engine of products of fp16, whose kernels convert what they load."""
    bind = functools.partial(TensorCorrelator, options or KernelOptions())
    return Engine("tensor", bind, lambda xp: needs_device(xp) or _limits().why_no_tensor_cores, _READ)


class TensorCorrelator(ConvertsOnLoad):
    """The kernels for fixed shapes, a fixed window and a precision."""

    def __init__(
        self,
        options: KernelOptions,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        _xp: object,
    ) -> None:
        super().__init__(_READ, "engine 'tensor' reads integers of at most 16 bits and float32")
        self._shapes, self._window, self._options = (left_shape, right_shape), window, options
        self._split = 1 if options.precision == "fp16" else 2
        self._tables = tables_for(self._problem(1, 1, 1))

    def sums(self, left: Array, right: Array) -> Array:
        """Plain sums of every pair, shape ``(N, M, ny, nx)``, float32."""
        xp = array_namespace(left)
        lefts, rights = (xp.ascontiguousarray(side).reshape(-1, *side.shape[-2:]) for side in (left, right))
        sets, per_left = right.shape[:2]
        problem = self._problem(lefts.shape[0], sets * per_left, per_left)
        planes = xp.empty((problem.pairs, *self._window.shape), np.float32)
        at_once = max(1, _TABLE_BYTES // (16 * sum(self._tables.cells)))
        for part in problem.parts(min(at_once, max_pairs("combined", problem))):
            these = lefts[part.left : part.left + part.problem.lefts]
            those = rights[part.right : part.right + part.problem.rights]
            into = planes[part.plane : part.plane + part.problem.pairs]
            asked: Any = {"dtypes": (these.dtype.name, those.dtype.name), "engine": "tensor", "options": self._options}
            kernel = decide_planes(part.problem, **asked, limits=_limits()).kernel
            plain_sums(part.problem, these, those, self._tables, kernel, split=self._split, out=into)
        return planes.reshape(lefts.shape[0], per_left, *self._window.shape)

    def _problem(self, lefts: int, rights: int, per_left: int) -> Problem:
        return problem_of(*self._shapes, self._window, lefts, rights, per_left)


def _limits() -> DeviceLimits:
    return device_limits(current_device())
