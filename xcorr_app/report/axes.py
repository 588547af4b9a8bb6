"""Axes of a chart: where a value lies along one, and which values are written beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = (1, 2, 5, 10)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """Values from `low` at one end of a chart to `high` at the other, low < high.

    Attributes
    ----------
    is_log : bool
        By their logarithm; both ends are above zero.
    whole : bool
        Only whole numbers are written beside it.
    """

    low: float
    high: float
    label: str
    is_log: bool = False
    whole: bool = False

    def share(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far along the axis values are, 0 to 1."""
        if self.is_log:
            with np.errstate(divide="ignore", invalid="ignore"):
                return (np.log10(values) - math.log10(self.low)) / math.log10(self.high / self.low)
        return (values - self.low) / (self.high - self.low)

    def ticks(self, number: int = 7) -> list[tuple[float, str]]:
        """At most so many round values, or some more, and how they are written."""
        if self.is_log:
            return self._decades(number)
        step = round_step((self.high - self.low) / number)
        if self.whole:
            step = max(1.0, step)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        if last - first > 4 * number:
            # Values so large that their distance is lost in rounding.
            return []
        return [(k * step, written(k * step, step)) for k in range(first, last + 1)]

    def _decades(self, number: int) -> list[tuple[float, str]]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, -(-(last - first) // number))
        return [(10.0**k, _power(k)) for k in range(first, last + 1, every)]

    def in_units(self, size: float, label: str) -> Axis:
        """The same axis in other units, of which one step of this one has `size`."""
        return Axis(self.low * size, self.high * size, label)


def round_step(least: float) -> float:
    """Smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    decade = 10.0 ** math.floor(math.log10(least))
    return next(step * decade for step in _STEPS if step * decade >= least * (1 - 1e-9))


def written(value: float, step: float) -> str:
    """A value to as many places as `step` needs."""
    if not 1e-3 <= step < 1e5 or abs(value) >= 1e6:
        return f"{value:.6g}"
    return f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}".replace("-", "−")


def _power(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 < exponent < 5 else "10" + str(exponent).translate(_SUPERSCRIPTS)
