"""Domains of correlation: planes of plain sums, and the peaks that registration looks for."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.correlation.engines import ENGINES
from xcorr_app.correlation.normalize import ZNCC
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.peaks import find_peaks
from xcorr_app.correlation.problem import window_of
from xcorr_app.correlation.standardize import standardize
from xcorr_app.decision import Decision
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.peaks.search import finds_peaks
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.planes import plain_sums
from xcorr_app.tuning.correlation_launches import launches_of_peaks, launches_of_planes
from xcorr_app.tuning.domain import ANY_SIZE, Run, Sizes, drawn

__all__ = ["Peaks", "Planes"]

_MAX_BYTES = 1.5e9
_MAX_PRODUCTS = 2e11
"""Multiply-adds by the definition: some milliseconds of kernels in float32."""
_SLOW = 4.0
"""Candidates that are expected to take so many times the least of all are not timed."""


class Planes:
    """Planes of float32 matrices of any sizes, windows and forms."""

    name = "planes"

    def __init__(self, limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> None:
        self._limits, self._sizes = limits, sizes

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[Problem]:
        """Draw sizes, windows and numbers of pairs, each evenly on a logarithmic scale."""

        def size() -> tuple[int, int]:
            return self._sizes.draw(rng, lambda: (_side(rng), _side(rng)))

        def draw() -> Problem | None:
            left = size()
            right = left if rng.random() < 0.6 else size()
            problem = _windowed(rng, left, right, _batch(rng, round(2 ** rng.uniform(0, 12))))
            return problem if _fits(problem) else None

        return drawn(draw, count)

    def candidates(self, problem: Problem) -> Mapping[str, Run]:
        """The FFT engine, and the kernels of both families that are not expected to be far behind."""
        lefts, rights = _matrices(problem)
        planes = _empty((problem.pairs, *problem.plane_shape))
        found: dict[str, Run] = {}
        for name in _worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "fft":
                found[name] = _fft_sums(problem, lefts, rights)
            elif engine == "direct":
                found[name] = partial(correlate_on_device, lefts, rights, problem, kernel, out=planes)
            else:
                tables = SummedAreaTables(problem)
                found[name] = partial(plain_sums, problem, lefts, rights, tables, kernel, out=planes)
        return found

    def decision(self, problem: Problem) -> Decision:
        """Ask the product."""
        return decide_planes(problem, limits=self._limits)

    def launches(self, problem: Problem) -> Iterable[Launch]:
        """List what all candidates compile."""
        for name in _worth_timing(self.decision(problem)):
            yield from launches_of_planes(problem, name, self._limits)


class Peaks:
    """Frames of one size against one reference, as registration compares them: scores over a window, and their peak."""

    name = "registration"

    def __init__(self, limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> None:
        self._limits, self._sizes = limits, sizes

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[Problem]:
        """Draw sizes of frames, reach and number of frames, each evenly on a logarithmic scale."""

        def any_size() -> tuple[int, int]:
            height = round(2 ** rng.uniform(5.5, 11))
            return height, height if rng.random() < 0.5 else round(2 ** rng.uniform(5.5, 11))

        def draw() -> Problem | None:
            shape = self._sizes.draw(rng, any_size)
            reach = min(round(2 ** rng.uniform(1.5, 6)), min(shape) // 2)
            frames = round(2 ** rng.uniform(0, 10))
            window = (-reach, -reach), (2 * reach + 1, 2 * reach + 1)
            problem = Problem(shape, shape, *window, rights=frames, rights_per_left=frames)
            return problem if _fits(problem) and finds_peaks(problem.plane_shape, self._limits) else None

        return drawn(draw, count)

    def candidates(self, problem: Problem) -> Mapping[str, Run]:
        """The FFT engine with array operations, and the kernels of both families."""
        lefts, rights = _matrices(problem)
        found: dict[str, Run] = {}
        for name in _worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "fft":
                found[name] = _fft_peaks(problem, lefts, rights)
                continue
            finder = PeakFinder(problem, engine=engine, kernel=kernel)
            tables = finder.left_tables(lefts)
            found[name] = partial(finder.find, lefts, rights, problem.rights_per_left, tables)
        return found

    def decision(self, problem: Problem) -> Decision:
        """Ask the product."""
        return decide_peaks(problem, limits=self._limits)

    def launches(self, problem: Problem) -> Iterable[Launch]:
        """List what all candidates compile: for 60 problems some 160 kernels, of a second each."""
        for name in _worth_timing(self.decision(problem)):
            yield from launches_of_peaks(problem, name, self._limits)


def _worth_timing(decision: Decision) -> list[str]:
    least = min((c.microseconds for c in decision.candidates if c.microseconds is not None), default=0.0)
    return [c.name for c in decision.candidates if c.microseconds is not None and c.microseconds <= _SLOW * least]


def _side(rng: np.random.Generator) -> int:
    return round(2 ** rng.uniform(4, 9.5))


def _batch(rng: np.random.Generator, pairs: int) -> dict[str, int]:
    form, side = rng.integers(3), math.isqrt(pairs)
    if form == 0:
        return {"lefts": pairs, "rights": pairs}
    if form == 1:
        return {"rights": pairs, "rights_per_left": pairs}
    return {"lefts": side, "rights": side, "rights_per_left": side}


def _windowed(
    rng: np.random.Generator, left: tuple[int, int], right: tuple[int, int], batch: dict[str, Any]
) -> Problem:
    """Full plane, symmetric window or one to a side."""
    kind = rng.integers(3)
    if kind == 0:
        return Problem.full_plane(left, right, **batch)
    reach = [round(2 ** rng.uniform(1.5, 6.2)) for _ in range(2)]
    first = [-r if kind == 1 else -int(rng.integers(0, 2 * r + 1)) for r in reach]
    return Problem(left, right, (first[0], first[1]), (2 * reach[0] + 1, 2 * reach[1] + 1), **batch)


def _fits(problem: Problem) -> bool:
    padded = math.prod(left + right for left, right in zip(problem.left_shape, problem.right_shape, strict=True))
    elements = padded * (problem.lefts + problem.rights + 2 * problem.pairs)
    return 4 * elements <= _MAX_BYTES and 1e4 < problem.products <= _MAX_PRODUCTS


def _matrices(problem: Problem) -> tuple[Any, Any]:
    cupy = importlib.import_module("cupy")
    rng = cupy.random.default_rng(1)
    shapes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    lefts, rights = (rng.random(shape, dtype="float32") - np.float32(0.5) for shape in shapes)
    return lefts, rights


def _empty(shape: tuple[int, ...]) -> Any:
    return importlib.import_module("cupy").empty(shape, np.float32)


def _fft_sums(problem: Problem, lefts: Any, rights: Any) -> Run:
    cupy = importlib.import_module("cupy")
    correlator = ENGINES["fft"].bind(problem.left_shape, problem.right_shape, window_of(problem), cupy)
    sets = 1 if problem.shared_rights else problem.lefts
    grouped = rights.reshape(sets, problem.rights_per_left, *problem.right_shape)
    return lambda: correlator.sums(correlator.left(lefts[:, None]), correlator.right(grouped))


def _fft_peaks(problem: Problem, lefts: Any, rights: Any) -> Run:
    """As registration does it where the FFT is its engine."""
    cupy = importlib.import_module("cupy")
    window = window_of(problem)
    zncc = ZNCC(problem.left_shape, problem.right_shape, window, 0.25, cupy)
    reference, whole = zncc.left(lefts), (slice(None), slice(None))
    correlator = ENGINES["fft"].bind(problem.left_shape, problem.right_shape, window, cupy)
    of_left = correlator.left(lefts[:, None])

    def run() -> Any:
        frames = standardize(rights, np.float32).values
        sums = correlator.sums(of_left, correlator.right(frames[None])).reshape(-1, *window.shape)
        return find_peaks(zncc(sums, reference, zncc.right(frames)), whole)

    return run
