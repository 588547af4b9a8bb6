"""Domain of single filters: Gaussians, boxes, dense taps and taps of rank 2 over stacks of images."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.filtering import named
from xcorr_app.filtering.choice import decide_filter, filter_task
from xcorr_app.filtering.device_runs import made_run
from xcorr_app.filtering.request import Request, checked_request
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.kernels import KERNELS
from xcorr_app.gpu.stencil.problem import stays_in_range
from xcorr_app.gpu.stencil.separable import ONLY_MARKED
from xcorr_app.tuning.domain import ANY_SIZE, Run, Sizes, drawn

__all__ = ["FilterCase", "Filters", "worth_timing"]

_MAX_BYTES = 1e9
_MAX_PRODUCTS = 3e11
_SLOW = 4.0
"""Candidates that are expected to take so many times the least of all are not timed."""
_TRANSFORMED = 1000
"""Taps from which the transform, which has no model, is timed."""
_MODES = ("reflect", "mirror", "nearest", "constant", "valid")


@dataclass(frozen=True)
class FilterCase:
    """One filter over a stack: a Gaussian of two sigmas, or taps of a shape and rank from a seed (0: full rank)."""

    shape: tuple[int, int, int]
    dtype: str
    mode: str
    sigmas: tuple[float, float] | None = None
    taps_shape: tuple[int, int] = (1, 1)
    rank: int = 1
    seed: int = 0

    def __str__(self) -> str:
        count, height, width = self.shape
        taps = f"gaussian {self.sigmas}" if self.sigmas else f"taps {self.taps_shape} of rank {self.rank or 'full'}"
        return f"{count} x {height} x {width} {self.dtype} {self.mode}, {taps}"

    @cached_property
    def taps(self) -> Any:
        """Taps that sum up to one in magnitude, or a named Gaussian."""
        if self.sigmas:
            return named.gaussian(self.sigmas)
        rng = np.random.default_rng(self.seed)
        if self.rank == 0:
            taps = rng.random(self.taps_shape)
        else:
            columns, rows = (rng.random((self.rank, side)) for side in self.taps_shape)
            taps = columns.T @ rows
        return taps / np.abs(taps).sum()

    @cached_property
    def request(self) -> Request:
        """What the public call would ask for."""
        how: Any = {"cval": 0.0, "origin": 0, "dtype": "same", "engine": "auto", "flip": False}
        return checked_request(self.shape, np.dtype(self.dtype), self.taps, self.mode, **how)  # type: ignore[arg-type]


class Filters:
    """Stacks of any sizes and types, taps of any kind."""

    name = "filters"

    def __init__(self, limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> None:
        self._limits, self._sizes = limits, sizes

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[FilterCase]:
        """Draw sizes and taps, each evenly on a logarithmic scale; a third are Gaussians."""
        numbers = itertools.count()  # of those that fit: the seeds of their taps
        number = next(numbers)

        def any_size() -> tuple[int, int]:
            height = round(2 ** rng.uniform(6, 12))
            return height, height if rng.random() < 0.5 else round(2 ** rng.uniform(6, 12))

        def draw() -> FilterCase | None:
            nonlocal number
            height, width = self._sizes.draw(rng, any_size)
            shape = (round(2 ** rng.uniform(0, 7)), height, width)
            dtype = str(rng.choice(["float32", "uint16", "uint8"], p=[0.6, 0.25, 0.15]))
            case = FilterCase(shape, dtype, str(rng.choice(_MODES)), **_taps(rng, number))
            if not _fits(case):
                return None
            number = next(numbers)
            return case

        return drawn(draw, count)

    def candidates(self, problem: FilterCase) -> Mapping[str, Run]:
        """Every kernel that takes the taps and is not expected to be far behind, into a result that is there."""
        cupy = importlib.import_module("cupy")
        request, images = problem.request, _images(problem)
        out = cupy.empty(request.shape, request.target)
        found: dict[str, Run] = {}
        for name in worth_timing(self.decision(problem), taps=math.prod(request.kernel.shape)):
            engine, _, kernel = name.partition(":")
            run = made_run(Decision(engine, kernel), request, problem.taps, images.shape, images.dtype)
            found[name] = partial(run, images, out, None)
        return found

    def decision(self, problem: FilterCase) -> Decision:
        """Ask the product."""
        dtype = np.dtype(problem.dtype)
        return decide_filter(problem.request, problem.taps, problem.shape, dtype, self._limits)

    def launches(self, problem: FilterCase) -> Iterable[Launch]:
        """List the kernels of one pass; those of sliding sums are few, and compiled where they run."""
        request, limits = problem.request, self._limits
        taps = request.kernel.unscaled_taps
        in_range = stays_in_range(float(taps.min()), float(taps.sum()), problem.dtype, request.target.name)
        for name in worth_timing(self.decision(problem), taps=taps.size):
            engine, _, kernel = name.partition(":")
            if kernel not in KERNELS or kernel == "sliding":
                continue
            task = filter_task(request, problem.taps, problem.shape, np.dtype(problem.dtype), engine)
            if kernel == "banded":
                yield KERNELS[kernel].launch(task, limits)
                marked = KERNELS["separable"].launch(task, limits)
                yield replace(marked, defines={**marked.defines, "CLIPS": 0, ONLY_MARKED: 1})
                continue
            launch = KERNELS[kernel].launch(task, limits)
            yield replace(launch, defines={**launch.defines, "CLIPS": int(not in_range)})


def worth_timing(decision: Decision, taps: int = 0) -> list[str]:
    """Names of the candidates that could be the best, the chosen one among them."""
    least = min((c.microseconds for c in decision.candidates if c.microseconds is not None), default=math.inf)
    found = {decision.name: None}
    for c in decision.candidates:
        is_modelled = c.microseconds is not None and c.microseconds <= _SLOW * least
        if is_modelled or (c.microseconds is None and (c.engine != "fft" or taps >= _TRANSFORMED)):
            found[c.name] = None
    return list(found)


def _taps(rng: np.random.Generator, number: int) -> dict[str, Any]:
    kind = rng.integers(3)
    if kind == 0:
        sigma = float(np.round(2 ** rng.uniform(-0.5, 6), 2))
        other = sigma if rng.random() < 0.7 else float(np.round(2 ** rng.uniform(-0.5, 6), 2))
        return {"sigmas": (sigma, other)}
    side = round(2 ** rng.uniform(1, 6))
    shape = (side, side if rng.random() < 0.6 else round(2 ** rng.uniform(1, 6)))
    rank = 0 if kind == 1 else int(rng.integers(1, 3))
    return {"taps_shape": shape, "rank": rank, "seed": number}


def _fits(case: FilterCase) -> bool:
    shape = case.taps.shape
    pixels, area = math.prod(case.shape), math.prod(shape)
    if case.mode == "valid" and any(taps > size for taps, size in zip(shape, case.shape[1:], strict=True)):
        return False
    products = pixels * (area if case.rank == 0 else min(area, 2 * sum(shape)))
    return 12 * pixels <= _MAX_BYTES and products <= _MAX_PRODUCTS


def _images(problem: FilterCase) -> Any:
    cupy = importlib.import_module("cupy")
    values = cupy.random.default_rng(1).random(problem.shape, dtype="float32")
    return values if problem.dtype == "float32" else (values * np.iinfo(problem.dtype).max).astype(problem.dtype)
