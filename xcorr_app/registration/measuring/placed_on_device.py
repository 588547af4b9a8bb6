"""What frames add to a mean of frames on a device, and the mean without each of them: one pass over them.

Array operations take six, and twenty, some of twice as many bytes; the values are the same bits.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_VALUE = """
R value = frame * R(0.5);
value -= offset;
value /= gain;
value *= R(row);
value *= R(column);
"""
"""As array operations compute it, each rounded: products with 0.5 and with `column`, 0 or 1, are exact."""
_OF_FRAME = "R frame, R offset, R gain, float64 row, float64 column"


class Level(NamedTuple):
    """What frames lose, and what they are divided by, to be at a common level; both (n,)."""

    offset: NDArray[np.float64]
    gain: NDArray[np.float64]


def entered(there: Array, level: Level, rows: Array, columns: Array) -> Array:
    """Moved float frames (n, h, w) at a common level, times `rows` (n, h), which hold weights, and `columns` (n, w)."""
    return _entered()(there, *_of_frames(there, level, rows, columns))


def means_without_each(
    there: Array, level: Level, rows: Array, columns: Array, sums: tuple[Array, Array], least: float
) -> tuple[Array, Array]:
    """Means (n, h, w) without each of such frames, zero where no weight above `least` is left; and where there is one.

    `sums` (h, w) are those over all frames, and those of their weights.
    """
    mean, known = _mean()(there, *_of_frames(there, level, rows, columns), *sums, least)
    return mean, known


def _of_frames(there: Array, level: Level, rows: Array, columns: Array) -> tuple[Array, ...]:
    xp, kind = array_namespace(there), there.dtype.type
    offset, gain = (xp.asarray((side / 2).astype(kind))[:, None, None] for side in level)
    return offset, gain, rows[:, :, None], columns[:, None, :]


@functools.cache
def _entered() -> Any:
    code = _VALUE + "out = value;"
    return importlib.import_module("cupy").ElementwiseKernel(_OF_FRAME, "R out", code, "xcorr_entered")


@functools.cache
def _mean() -> Any:
    code = f"""{_VALUE}
const double rest = weight - row * column;
known = rest > least;
mean = known ? (total - double(value)) / rest : 0.0;
"""
    parameters = f"{_OF_FRAME}, float64 total, float64 weight, float64 least"
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel(parameters, "float64 mean, bool known", code, "xcorr_means_without_each")
