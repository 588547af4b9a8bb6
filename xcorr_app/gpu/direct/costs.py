"""How long the FFT and the kernels take for a problem, by a model of counted work and a table of measurements.

The table (``costs.json``, made by ``benchmarks/engine_choice.py`` on one device) holds measured times on a grid of
problems and the constants of the model. What the model misses at the measured problems is interpolated between them;
it is derived once and kept in ``costs.npz``, as deriving it takes a third of a second.
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

from xcorr_app.gpu.direct.kernel_work import KERNEL_WORK, competes
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.work import FFTWork, KernelWork, fft_work
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = [
    "CostTable",
    "fft_cost",
    "host_cost",
    "kernel_cost",
    "modelled",
    "shipped_table",
    "unflattened",
    "work_of",
]

Constants = Mapping[str, float]

_CYCLES = 1755.0
"""A microsecond, and four warps issue in each."""

_NEAR, _FAR = 0.4, 1.5
"""Distances in the work's coordinates: nearer than the first, measurements count alike; beyond the second, little."""


_HOST, _HOST_OF_LAUNCH, _HOST_OF_PASS = 14.0, 6.0, 12.0
"""Microseconds of the host: to start a kernel, one launch more, and a further pass over planes with its memory.

The first: 9 to 21 measured, median 15.
"""


def work_of(name: str, problem: Problem, device: DeviceLimits) -> FFTWork | KernelWork:
    """Count the work of ``"fft"`` or of a kernel."""
    return fft_work(problem) if name == "fft" else _kernel_work(name, problem, device)


@functools.lru_cache(maxsize=64)
def _kernel_work(name: str, problem: Problem, device: DeviceLimits) -> KernelWork:
    return KERNEL_WORK[name](problem, device)


def modelled(work: FFTWork | KernelWork, constants: Constants, multiprocessors: int) -> float:
    """Microseconds of counted work, before the correction by what was measured nearby."""
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
class Misses:
    """Where the measured problems lie, and by how much (natural logarithm) the model misses their times."""

    coordinates: NDArray[np.float32]
    missed: NDArray[np.float32]

    def correction(self, point: tuple[float, ...]) -> float:
        """Interpolate what the model misses at a point; nothing far from all measurements."""
        squares = ((self.coordinates - np.asarray(point)) ** 2).sum(axis=1)
        weights = 1 / (squares + _NEAR**2) ** 2
        return float(weights @ self.missed / (weights.sum() + _FAR**-4))


class CostTable:
    """Measurements and constants of one device.

    `table` holds ``constants`` by name, ``device`` (the limits of the device measured), ``problems`` (rows of
    `Problem`'s fields, flat) and ``microseconds`` by name (one a problem, None where not measured); `misses` what was
    derived from it before.
    """

    def __init__(self, table: Mapping[str, Any], misses: Mapping[str, Misses] | None = None) -> None:
        self.constants: Mapping[str, Constants] = table["constants"]
        self.device = DeviceLimits(**table["device"])
        self.measured_on: Mapping[str, Any] = table.get("measured_on", {})
        self.rows: list[list[int]] = table["problems"]
        self.microseconds: Mapping[str, list[float | None]] = table["microseconds"]
        self.misses = misses or {name: self.derived(name) for name in self.constants}

    def cost(self, name: str, problem: Problem, device: DeviceLimits | None = None) -> float:
        """Expected microseconds of the whole batch; infinite where the table says nothing of such problems."""
        device = device or self.device
        if name not in self.constants or not competes(name, problem, device):
            return math.inf
        work = work_of(name, problem, device)
        time = modelled(work, self.constants[name], device.multiprocessors)
        if name == "fft":  # memory bounds it, whose rate goes roughly with the multiprocessors
            time *= self.device.multiprocessors / device.multiprocessors
        return time * math.exp(self.misses[name].correction(work.coordinates()))

    def derived(self, name: str) -> Misses:
        """Work out what the model misses at the measured problems."""
        points, missed = [], []
        for row, time in zip(self.rows, self.microseconds[name], strict=True):
            problem = unflattened(row)
            if time is not None and competes(name, problem, self.device):
                work = work_of(name, problem, self.device)
                points.append(work.coordinates())
                missed.append(math.log(time / modelled(work, self.constants[name], self.device.multiprocessors)))
        return Misses(np.array(points, np.float32), np.array(missed, np.float32))


def unflattened(row: list[int]) -> Problem:
    """Problem of a row of the table: its shapes, first shift and plane, then the numbers of matrices."""
    left, right, first, plane = ((row[i], row[i + 1]) for i in range(0, 8, 2))
    lefts, rights, per_left = row[8:]
    return Problem(left, right, first, plane, lefts, rights, per_left)


@functools.cache
def shipped_table() -> CostTable:
    """Return the table that comes with the package."""
    folder = resources.files("xcorr_app.gpu.direct")
    table = json.loads(folder.joinpath("costs.json").read_text(encoding="utf-8"))
    with folder.joinpath("costs.npz").open("rb") as file, np.load(file) as arrays:
        misses = {name: Misses(arrays[f"{name}.coordinates"], arrays[f"{name}.missed"]) for name in table["constants"]}
    return CostTable(table, misses)


def fft_cost(problem: Problem, device: DeviceLimits) -> float:
    """Expected microseconds of planes by engine ``fft``, on the device alone."""
    return shipped_table().cost("fft", problem, device)


def kernel_cost(name: str, problem: Problem, device: DeviceLimits) -> float:
    """Expected microseconds of planes by a kernel; infinite where nothing is known or it cannot win."""
    return shipped_table().cost(name, problem, device)


def host_cost(name: str, problem: Problem, device: DeviceLimits) -> float:
    """Microseconds that the host takes to start a kernel and what belongs to it."""
    work = _kernel_work(name, problem, device)
    return _HOST + _HOST_OF_LAUNCH * (work.launches - 1) + _HOST_OF_PASS * work.passes
