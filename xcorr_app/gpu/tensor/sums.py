"""Sums of centred products on the device's tensor cores: in fp16, or in split fp16 where planes are wanted."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.tensor.hankel import HankelLaunch, moving_is_left
from xcorr_app.gpu.tensor.hankel_frames import frames_launch
from xcorr_app.gpu.tensor.kernels import KERNELS

FP16_ERROR = 1e-3
"""Error of a normalised score from fp16 sums, at most, where overlaps vary about as much as the whole matrices: each
factor rounds by 2^-11 of itself at most. What `FrameSums` cut off, up to 3e-4, comes on top; only images of two grey
levels that round the worst way come near the sum of both."""


def prepared_sums(
    problem: Problem, left_type: Any, right_type: Any, cells: tuple[int, int], kernel: str, *, split: int = 1
) -> CentredSums | FrameSums:
    """Prepare the sums by a kernel of `KERNELS` on the current device, or take what was prepared before.

    They are called with lefts, rights, their summed-area tables (of so many `cells`) and the planes to write,
    ``sum (left - cL) (right - cR)`` over each overlap; the centres follow from the tables: ``scaling.cuh``. A value
    stands as the sum of `split` fp16 numbers: products of 11 bits, or 22.
    """
    return _prepared(current_device(), problem, left_type, right_type, cells, kernel, split)


@functools.lru_cache(maxsize=256)
def _prepared(
    device: int, problem: Problem, left_type: Any, right_type: Any, cells: tuple[int, int], kernel: str, split: int
) -> CentredSums | FrameSums:
    types, limits = (left_type.name, right_type.name), device_limits(device)
    if kernel == "hankel-frames":
        return FrameSums(problem, types, cells, limits)
    how = {"split": split} if kernel == "hankel" else {}
    chosen: Any = KERNELS[kernel].launch(problem, left_type=types[0], right_type=types[1], device=limits, **how)
    return CentredSums(problem, chosen, cells)


class CentredSums:
    """The launches of one problem on the current device."""

    def __init__(self, problem: Problem, chosen: HankelLaunch, cells: tuple[int, int]) -> None:
        self._scratch = Scratch((chosen.fp16_words, "uint32"), (chosen.workspace, "float32"), counters=chosen.counters)
        self._start = BoundLaunch.of(chosen.launch, (*problem.arguments(), *cells, *chosen.launch.extra))
        self._fixed = 1 if moving_is_left(problem) else 0
        self._convert = None
        if chosen.convert is not None:
            shape = problem.right_shape if self._fixed else problem.left_shape
            self._convert = BoundLaunch.of(chosen.convert, (*shape, cells[self._fixed], *chosen.convert.extra))

    def __call__(self, lefts: Any, rights: Any, tables: tuple[Any, Any], planes: Any) -> None:
        """Write the planes."""
        fp16, workspace, arrived = self._scratch()
        if self._convert is None:
            self._start(lefts, rights, planes, workspace, arrived, *tables)
            return
        self._convert((lefts, rights)[self._fixed], tables[self._fixed], fp16)
        self._start(lefts, rights, fp16, planes, workspace, arrived, *tables)


class FrameSums:
    """As `CentredSums`, where many frames share one reference: its Hankel matrix, products, sums of pieces."""

    def __init__(
        self,
        problem: Problem,
        types: tuple[str, str],
        cells: tuple[int, int],
        device: DeviceLimits,
        tuning: Mapping[str, int] | None = None,
    ) -> None:
        left_type, right_type = types
        chosen = frames_launch(problem, left_type=left_type, right_type=right_type, device=device, tuning=tuning)
        self._reference = 1 if moving_is_left(problem) else 0
        shape = problem.right_shape if self._reference else problem.left_shape
        self._scratch = Scratch((chosen.hankel_words, "uint32"), (chosen.workspace, "float32"))
        self._expand = BoundLaunch.of(chosen.expand, (*shape, cells[self._reference], *chosen.expand.extra))
        self._products, self._sums = (
            BoundLaunch.of(launch, (*problem.arguments(), *cells, *launch.extra))
            for launch in (chosen.products, chosen.sums)
        )

    def __call__(self, lefts: Any, rights: Any, tables: tuple[Any, Any], planes: Any) -> None:
        """Write the planes."""
        hankel, workspace, _ = self._scratch()
        self._expand((lefts, rights)[self._reference], tables[self._reference], hankel)
        self._products(lefts, rights, hankel, workspace, *tables)
        self._sums(workspace, planes, *tables)
