"""From measured times to the table that ``auto`` chooses by: the constants of the model, fitted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from xcorr_app.gpu.direct.costs import CostTable, modelled, unflattened, work_of
from xcorr_app.gpu.direct.kernel_work import competes
from xcorr_app.gpu.runtime.limits import DeviceLimits

KERNEL = {
    "start": 2.0,  # microseconds of a launch
    "issue": 1.2,  # slots an instruction takes
    "latency": 2.0,  # cycles an instruction takes in a warp alone
    "stage": 2.0,  # instructions for 32 elements
    "scattered": 1.7,  # the same where they are not aligned, in aligned ones
    "chunk": 500.0,  # cycles of a barrier and of waiting for memory
    "result": 5.0,  # instructions for a result of a thread
    "end": 100.0,  # instructions of a warp besides
    "fetch": 40.0,  # cycles to fetch an instruction
    "writes": 3e5,  # a microsecond
    "pass": 2.0,  # microseconds
    "bytes": 3.5e6,  # a microsecond
    "last_wave": 0.5,  # share of the time that blocks of the last wave leave others idle
}
FFT = {"start": 2.0, "copies": 3e6, "transforms": 3e6, "products": 3e6, "sharpness": 1.5}
STARTING_VALUES: Mapping[str, Mapping[str, float]] = {
    "fft": FFT,
    "combined": {**KERNEL, "fetch": 5.0},
    "row-product": {**KERNEL, "fetch": 15.0},
    "band-product": KERNEL,
    "row-per-warp": {**KERNEL, "fetch": 5.0},
}


def closeness(times: Mapping[str, float]) -> float:
    """Weight of a problem in the fit: the closer the race, the more it matters."""
    best, second = sorted(times.values())[:2] if len(times) > 1 else (1.0, 10.0)
    return 1 / math.hypot(1, math.log(second / best))


def fitted(rows: list[dict[str, Any]], name: str, device: DeviceLimits) -> dict[str, float]:
    """Constants of one candidate that fit its measured times best."""
    timed = [row for row in rows if name in row["us"] and competes(name, unflattened(row["problem"]), device)]
    works = [work_of(name, unflattened(row["problem"]), device) for row in timed]
    times = np.log([row["us"][name] for row in timed])
    weights = np.array([closeness(row["us"]) for row in timed])
    start = STARTING_VALUES[name]

    def misses(logarithms: np.ndarray) -> np.ndarray:
        constants = dict(zip(start, np.exp(logarithms), strict=True))
        return (np.log([modelled(work, constants, device.multiprocessors) for work in works]) - times) * weights

    first = np.log(list(start.values()))
    found = least_squares(misses, first, bounds=(first - 1.6, first + 1.6), loss="soft_l1", f_scale=0.1)
    return {key: float(f"{value:.4g}") for key, value in zip(start, np.exp(found.x), strict=True)}


def table_of(rows: list[dict[str, Any]], device: DeviceLimits, measured_on: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of the problems on the grid, as `CostTable` takes it."""
    grid = [row for row in rows if row["on_grid"]]
    names = [name for name in STARTING_VALUES if any(name in row["us"] for row in grid)]
    return {
        "measured_on": dict(measured_on),
        "device": {"multiprocessors": device.multiprocessors, "shared_bytes": device.shared_bytes},
        "constants": {name: fitted(grid, name, device) for name in names},
        "problems": [row["problem"] for row in grid],
        "microseconds": {name: [row["us"].get(name) for row in grid] for name in names},
    }


def behind_best(rows: list[dict[str, Any]], table: CostTable) -> list[tuple[float, str, dict[str, Any]]]:
    """How far the choice is from the best measured: (ratio, choice, row), the worst first."""
    found = []
    for row in rows:
        problem = unflattened(row["problem"])
        expected = {name: table.cost(name, problem) for name in row["us"]}
        times = {name: time for name, time in row["us"].items() if expected[name] != math.inf}
        choice = min(times, key=expected.__getitem__)
        found.append((times[choice] / min(row["us"].values()), choice, row))
    return sorted(found, key=lambda item: -item[0])
