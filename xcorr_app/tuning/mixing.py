"""Domain of channel mixing: a matrix times the channels of planes, or of interleaved pixels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.filtering.array_choice import decide_mixing
from xcorr_app.filtering.mixing import mix
from xcorr_app.gpu.pointwise.kernels import KERNELS, MixingTask
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.run import pointwise_on_device
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.tuning.domain import ANY_SIZE, Run, Sizes, drawn
from xcorr_app.tuning.filters import worth_timing

__all__ = ["Mixing", "MixingCase"]

_MAX_BYTES, _MAX_PRODUCTS = 1.2e9, 2e11


@dataclass(frozen=True)
class MixingCase:
    """Images, channels in and out, pixels of a plane (1: interleaved, images are pixels), and types."""

    outer: int
    channels: int
    filters: int
    inner: int
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.outer} x {self.channels} -> {self.filters} x {self.inner} {self.source} to {self.target}"

    @property
    def problem(self) -> PointwiseProblem:
        """As the kernels take it."""
        return PointwiseProblem(self.outer, self.channels, self.filters, self.inner, self.source, self.target)


class Mixing:
    """2 to 512 channels; integers of at most 32."""

    name = "mixing"

    def __init__(self, limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> None:
        self._limits, self._sizes = limits, sizes

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[MixingCase]:
        """Draw sizes, each evenly on a logarithmic scale; a tenth are interleaved."""

        def draw() -> MixingCase | None:
            most = 5.0 if rng.random() < 0.6 else 9.0
            channels, filters = (round(2 ** rng.uniform(1, most)) for _ in range(2))
            outer = round(2 ** rng.uniform(0, 6))
            inner = math.prod(self._sizes.draw(rng, lambda: (round(2 ** rng.uniform(6, 22)), 1)))
            inner = inner // 4 * 4 if rng.random() < 0.7 and not self._sizes.asked else inner
            if rng.random() < 0.1:
                outer, inner = outer * inner, 1
            source = str(rng.choice(["float32", "uint16", "uint8"])) if max(channels, filters) <= 32 else "float32"
            target = source if rng.random() < 0.7 else "float32"
            case = MixingCase(outer, channels, filters, inner, source, target)
            pixels = outer * inner
            if 4 * pixels * (channels + filters) > _MAX_BYTES or pixels * channels * filters > _MAX_PRODUCTS:
                return None
            return case

        return drawn(draw, count)

    def candidates(self, problem: MixingCase) -> Mapping[str, Run]:
        """Every kernel that takes the problem and is not expected to be far behind, and the library."""
        cupy = importlib.import_module("cupy")
        rng, p = cupy.random.default_rng(1), problem
        stack = (200 * rng.random((p.outer, p.channels, p.inner), dtype="float32")).astype(p.source)
        matrix = np.random.default_rng(2).random((p.filters, p.channels)) / p.channels
        out, target = cupy.empty((p.outer, p.filters, p.inner), p.target), np.dtype(p.target)
        found: dict[str, Run] = {}
        for name in worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "pointwise":
                found[name] = partial(pointwise_on_device, stack, matrix, 1, target=target, kernel=kernel, out=out)
            else:
                found[name] = partial(mix, stack, matrix, 1, target, _converted, clip=False)
        return found

    def decision(self, problem: MixingCase) -> Decision:
        """Ask the product."""
        p, types = problem, (np.dtype(problem.source), np.dtype(problem.target))
        return decide_mixing(*types, (p.filters, p.channels), p.outer, p.inner, self._limits)

    def launches(self, problem: MixingCase) -> Iterable[Launch]:
        """List each candidate's kernel."""
        for name in worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "pointwise":
                yield KERNELS[kernel].launch(MixingTask(problem.problem), self._limits)


def _converted(stack: Any, dtype: np.dtype) -> Any:
    return stack.astype(dtype)
