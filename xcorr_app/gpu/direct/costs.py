"""How long the FFT and the kernels take for a problem: the choice of ``auto``, from a table of measurements.

The table (``correlation_costs.json``, made by ``benchmarks/engine_choice.py`` on one device) holds measured times on a
grid of problems and a few constants. Time is modelled from counted work and the constants; what the model misses at
the measured problems is interpolated between them. So the times of measured problems are the measured ones, nearly.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.direct.kernel_work import KERNEL_WORK
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.variants import computes
from xcorr_app.gpu.direct.work import FFTWork, KernelWork, fft_work
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = ["CostTable", "candidates", "cheapest", "costs", "fastest_variant", "shipped_table"]

Constants = Mapping[str, float]

_CYCLES = 1755.0
"""A microsecond, and four warps issue in each."""

_NEAR, _FAR = 0.2, 1.5
"""Distances in the work's coordinates: nearer than the first measurements count alike, beyond the second little."""

_FEW_SHIFTS = 100_000


def candidates(problem: Problem, device: DeviceLimits) -> tuple[str, ...]:
    """Name what can be the fastest on a problem.

    Parameters
    ----------
    problem : Problem
        Any.
    device : DeviceLimits
        Where it is to be computed.

    Returns
    -------
    tuple of str
        ``"fft"`` and variants; ``row-product``, which computes full planes, only where at least half of one is asked,
        and ``row-per-warp`` only for few shifts.
    """
    full = math.prod(left + right - 1 for left, right in zip(problem.left_shape, problem.right_shape, strict=True))
    kernels = [name for name in KERNEL_WORK if computes(name, problem, device=device)]
    if 2 * math.prod(problem.plane_shape) < full:
        kernels.remove("row-product")
    if problem.pairs * math.prod(problem.plane_shape) > _FEW_SHIFTS:
        kernels.remove("row-per-warp")
    return "fft", *kernels


def work_of(name: str, problem: Problem, device: DeviceLimits) -> FFTWork | KernelWork:
    """Count the work of a candidate."""
    return fft_work(problem) if name == "fft" else KERNEL_WORK[name](problem, device)


def modelled(work: FFTWork | KernelWork, constants: Constants, multiprocessors: int) -> float:
    """Time of counted work in microseconds, before the correction by what was measured nearby.

    Parameters
    ----------
    work : FFTWork or KernelWork
        From `work_of`.
    constants : mapping
        Of this candidate, from the table.
    multiprocessors : int
        Of the device.

    Returns
    -------
    float
        Microseconds.
    """
    if isinstance(work, FFTWork):
        return _fft_time(work, constants)
    return _kernel_time(work, constants, multiprocessors)


def _kernel_time(work: KernelWork, c: Constants, multiprocessors: int) -> float:
    copies = (work.staged + c["scattered"] * work.scattered) / 32 * c["stage"]  # instructions of a block
    results = work.sums * c["result"] + c["end"]  # of a warp
    waiting = work.chunks * c["chunk"] + 4 * copies / work.warps + 4 * results  # cycles of a warp
    products = work.all_products / work.blocks  # of an average block
    # Blocks that share a multiprocessor: each waits by itself, and all issue by turns.
    together = min(max(1.0, work.blocks / multiprocessors), work.blocks / (work.waves * multiprocessors))
    issued = together * (products * c["issue"] + copies + work.warps * results) / 4
    block = math.hypot(products / work.warps * c["latency"] + waiting, issued)
    waves = max(1.0, work.waves + c["last_wave"] * (math.ceil(work.waves) - work.waves))
    longest = work.longest_products * c["latency"] + waiting
    cycles = math.hypot(waves * block, work.launches * longest) + work.launches * work.code * c["fetch"]
    memory = work.writes / c["writes"] + work.passes * c["pass"] + work.passed_bytes / c["bytes"]
    return work.launches * c["start"] + cycles / _CYCLES + memory


def _fft_time(work: FFTWork, c: Constants) -> float:
    def kernels(count: int, floats: float, bandwidth: str) -> float:
        """Kernels that share this traffic: each takes as long as its bytes or as its start."""
        moved = 4 * floats / c[bandwidth] / count
        return float(count * (c["start"] ** c["sharpness"] + moved ** c["sharpness"]) ** (1 / c["sharpness"]))

    return (
        kernels(4, 2 * work.padded + work.matrices, "copies")
        + kernels(4, work.padded + 6 * work.spectra, "transforms")
        + kernels(1, 6 * work.products, "products")
        + kernels(2, 6 * work.products + work.planes, "transforms")
        + kernels(work.pieces, 2 * work.shifts, "copies")
    )


@dataclass(frozen=True)
class _Measured:
    """Where the measured problems lie, and by how much (natural logarithm) the model misses their times."""

    coordinates: NDArray[np.float64]
    missed: NDArray[np.float64]

    def correction(self, point: tuple[float, ...]) -> float:
        squares = ((self.coordinates - np.asarray(point)) ** 2).sum(axis=1)
        weights = 1 / (squares + _NEAR**2) ** 2
        return float(weights @ self.missed / (weights.sum() + _FAR**-4))


class CostTable:
    """Measurements and constants of one device.

    Parameters
    ----------
    table : mapping
        ``constants`` by candidate, ``device`` (the limits of the device measured), ``problems`` (rows of `Problem`'s
        fields, flat) and ``microseconds`` by candidate (one a problem, None where not measured).
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.constants: Mapping[str, Constants] = table["constants"]
        self.device = DeviceLimits(**table["device"])
        self.problems = tuple(unflattened(row) for row in table["problems"])
        self.microseconds: Mapping[str, list[float | None]] = table["microseconds"]
        self._measured = {name: self._misses(name) for name in self.constants}

    def costs(self, problem: Problem, device: DeviceLimits | None = None) -> dict[str, float]:
        """Expected time of every candidate.

        Parameters
        ----------
        problem : Problem
            Any.
        device : DeviceLimits, optional
            Where it is to be computed; by default the device measured.

        Returns
        -------
        dict
            Candidate -> microseconds of the whole batch.
        """
        device = device or self.device
        found = {}
        for name in candidates(problem, device):
            if name not in self.constants:
                continue
            work = work_of(name, problem, device)
            correction = self._measured[name].correction(work.coordinates())
            found[name] = modelled(work, self.constants[name], device.multiprocessors) * math.exp(correction)
        return found

    def _misses(self, name: str) -> _Measured:
        points, missed = [], []
        for problem, time in zip(self.problems, self.microseconds[name], strict=True):
            if time is not None and name in candidates(problem, self.device):
                work = work_of(name, problem, self.device)
                points.append(work.coordinates())
                missed.append(math.log(time / modelled(work, self.constants[name], self.device.multiprocessors)))
        return _Measured(np.array(points), np.array(missed))


def unflattened(row: list[int]) -> Problem:
    """Problem of a row of the table: its shapes, first shift and plane, then the numbers of matrices."""
    left, right, first, plane = ((row[i], row[i + 1]) for i in range(0, 8, 2))
    lefts, rights, per_left = row[8:]
    return Problem(left, right, first, plane, lefts, rights, per_left)


@functools.cache
def shipped_table() -> CostTable:
    """Return the table that comes with the package.

    Returns
    -------
    CostTable
        Read once and kept.
    """
    text = resources.files("xcorr_app.gpu.direct").joinpath("costs.json").read_text(encoding="utf-8")
    return CostTable(json.loads(text))


def costs(problem: Problem, device: DeviceLimits | None = None) -> dict[str, float]:
    """Expected microseconds of every candidate by the shipped table, see `CostTable.costs`."""
    return shipped_table().costs(problem, device)


def cheapest(problem: Problem, device: DeviceLimits | None = None) -> str:
    """Name the engine or variant with the least expected time: ``"fft"`` or a variant of the kernels."""
    expected = costs(problem, device)
    return min(expected, key=expected.__getitem__)


def fastest_variant(problem: Problem, device: DeviceLimits | None = None) -> str:
    """Name the kernel variant with the least expected time."""
    expected = costs(problem, device)
    del expected["fft"]
    return min(expected, key=expected.__getitem__)
