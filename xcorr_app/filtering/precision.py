"""Whether float32 sums are exact enough for the result that is asked for: pure rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xcorr_app.filtering.engines.task import SINGLE_RANGE
from xcorr_app.filtering.request import Request
from xcorr_app.filtering.taps import Kernel

SINGLE_ROUNDING = 2.0**-24
"""Rounding of a float32 addition, as a fraction of the sum."""
LARGEST_ROUNDING = 5e-3
"""Largest rounding of one addition on the way to an integer; a result that is off by more than 1e-2 would show."""
MAX_CANCELLATION = 3.0
"""How much larger the terms may be than their sum before float32 loses too much of it."""
_EXACT_FRACTION = 16
"""Taps that are multiples of 1/16 make exact sums below ``2**24 / 16``."""


def needs_double(request: Request, image_type: np.dtype[Any], engine: str) -> bool:
    """Whether float32 sums are not exact enough for the result that is asked for."""
    kernel = request.kernel
    if image_type == np.float64:
        return False
    weight, terms = _scaled(kernel.weight, kernel.exponent), _scaled(_weight_of_terms(kernel), kernel.exponent)
    if not SINGLE_RANGE[0] <= weight <= SINGLE_RANGE[1]:
        return weight > 0
    if engine == "sliding":
        return False
    if engine == "separable" and len(kernel.terms) > 1:
        # Of taps that are terms only, the kernel's weight is that of the terms.
        of_taps = weight if kernel.dense is not None else float(np.abs(kernel.unscaled_taps).sum())
        if terms > MAX_CANCELLATION * of_taps:
            return True
    if request.target.kind == "f":
        return False
    limits = np.iinfo(request.target)
    largest = float(max(limits.max, -limits.min))
    if request.mode == "constant":
        largest = max(largest, abs(request.cval))
    if engine == "reuse" and _is_exact(kernel, largest * weight) and float(request.cval).is_integer():
        return False
    return SINGLE_ROUNDING * largest * (terms if engine == "separable" else weight) > LARGEST_ROUNDING


def _is_exact(kernel: Kernel, largest_sum: float) -> bool:
    """Whether no sum of products with whole numbers rounds at all."""
    if _EXACT_FRACTION * largest_sum >= 1 / SINGLE_ROUNDING:
        return False
    parts = kernel.unscaled_taps * _EXACT_FRACTION
    return bool((parts == np.rint(parts)).all())


def _weight_of_terms(kernel: Kernel) -> float:
    return sum(float(np.abs(column).sum() * np.abs(row).sum()) for column, row in kernel.terms)


def _scaled(weight: float, exponent: int) -> float:
    return math.ldexp(weight, min(exponent, 900)) if weight else 0.0
