"""What the filter kernels are expected to take: the time to fill the device, and the work at its rate.

The constants are fitted to times of one H200 (`benchmarks/results/filter_bench.json`, `kernel_trials.json`); another
device has them by its share of the multiprocessors.
"""

from __future__ import annotations

import math

import numpy as np

from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits
from xcorr_app.gpu.stencil.problem import FilterProblem

__all__ = ["banded_cost", "reuse_cost", "separable_cost", "sliding_cost"]

_COPY = 3.985e6
"""Bytes that the device reads and writes in a microsecond."""
_FMA = 32.3e6
"""Multiply-adds of float32 in a microsecond; half as many of float64."""
_LAUNCH = 2.5
_SIDES = (1, 3, 5, 7, 9, 11, 15, 21, 31, 63)
_OF_FLOOR = (1.10, 1.11, 1.25, 1.20, 1.37, 1.30, 1.46, 1.43, 1.34, 1.42)
"""Measured time over the floor, by the side of a square filter of as many taps."""
_BANDED_FIXED, _BANDED_STEP = 1.2e-6, 0.76e-6
"""Microseconds for a result: whatever the taps, and for each product of 16."""

_SLIDING = {1: (8.5, 0.001), 2: (6.6, 0.0025), 4: (3.55, 0.0005), 8: (7.0, 0.001)}
"""Copies that both passes take, and what each tap adds, by the bytes of a result."""
_SLIDING_ROW = {1: 0.15, 2: 0.85, 4: 0.15, 8: 0.85}
"""What a warp waits for a row, by the bytes of a result: those of 16 bits, and float64, have sums in float64. Of ten
stacks in `auto_fit.json`, nine take within a quarter of what is expected so, and the tenth a third more."""
_SEGMENT = 32
"""Rows that a warp walks at least, after those of the first sums, four of which take as long as one."""


def reuse_cost(
    problem: FilterProblem, image_type: str, result_type: str, *, is_double: bool, limits: DeviceLimits
) -> float:
    """Microseconds of all taps at once: the copy or the products, whichever takes longer."""
    rows, columns = problem.filter_shape
    products = _results(problem) * rows * columns * (2 if is_double else 1) / _FMA
    factor = float(np.interp(math.sqrt(rows * columns), _SIDES, _OF_FLOOR))
    floor = max(_copied(problem, image_type, result_type), products)
    waiting = 0.15 * rows + 0.017 * rows * columns  # of a warp alone, for eight rows of results
    return _LAUNCH + max(waiting, factor * floor * _share(limits))


def separable_cost(
    problem: FilterProblem, image_type: str, result_type: str, *, terms: int, limits: DeviceLimits
) -> float:
    """Microseconds of the fused pass: warps wait for a row for each tap of a column, then work at the device's rate."""
    rows, columns = problem.filter_shape
    weight = terms * (2 if image_type == "float64" else 1)
    copied = _copied(problem, image_type, result_type)
    products = _results(problem) * weight * (rows + columns) / _FMA
    work = max(1.31 * copied, 0.73 * copied + 1.13 * products) * (1 if image_type.startswith("float") else 1.25)
    return 2 * _LAUNCH + 0.33 * rows + work * _share(limits)


def banded_cost(problem: FilterProblem, limits: DeviceLimits) -> float:
    """Microseconds on tensor cores, whose products take taps by 16."""
    steps = ceil_div(15 + max(problem.filter_shape), 16)
    return 1.1 + 2.7 * steps + _results(problem) * (_BANDED_FIXED + _BANDED_STEP * steps) * _share(limits)


def sliding_cost(problem: FilterProblem, image_type: str, result_type: str, limits: DeviceLimits) -> float:
    """Microseconds of two passes of sliding sums: the rate is that of any length, each segment begins with a window."""
    size = np.dtype(result_type).itemsize
    copies, of_tap = _SLIDING[size]
    work = _copied(problem, image_type, result_type) * (copies + of_tap * sum(problem.filter_shape) / 2)
    sizes = zip(problem.image_shape, problem.filter_shape, strict=True)
    rows = sum(_SEGMENT + min(pixels, taps + 1) / 4 for pixels, taps in sizes)
    return 2 * _LAUNCH + _SLIDING_ROW[size] * rows + work * _share(limits)


def _results(problem: FilterProblem) -> float:
    return float(problem.count) * math.prod(problem.result_shape)


def _copied(problem: FilterProblem, image_type: str, result_type: str) -> float:
    """Microseconds of one read and one write."""
    read = problem.count * math.prod(problem.image_shape) * np.dtype(image_type).itemsize
    return (read + _results(problem) * np.dtype(result_type).itemsize) / _COPY


def _share(limits: DeviceLimits) -> float:
    return KNOWN_DEVICES["h200"].multiprocessors / limits.multiprocessors
