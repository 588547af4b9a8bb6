"""Which kernel of the device runs taps, and whether float32 sums are exact enough for its result: pure rules."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.engines.choice import EngineName
from xcorr_app.filtering.engines.task import SINGLE_RANGE
from xcorr_app.filtering.request import Request
from xcorr_app.filtering.taps import MOST_TERMS, Filter, Kernel
from xcorr_app.gpu.stencil.problem import LARGEST_FILTER

DeviceEngine: TypeAlias = Literal["reuse", "separable", "sliding", "fft"]

DENSE_AREA = 49
"""Up to so many taps the copy of the image takes as long as the products, and the dense kernel is the simpler one."""
SLIDING_SIGMA = {1: 5.5, 2: 7.25, 4: 8.5}
"""Mean of both axes, in pixels, from which on a Gaussian by sliding sums takes no longer than its taps, by the bytes of
a result: one pass takes in proportion to the taps, as measured at 6, 7 and 8 pixels."""
SMALLEST_SLIDING_SIGMA = 2.0
"""Of the other axis: its taps must reach eight pixels."""
SINGLE_ROUNDING = 2.0**-24
"""Rounding of a float32 addition, as a fraction of the sum."""
LARGEST_ROUNDING = 5e-3
"""Largest rounding of one addition on the way to an integer; a result that is off by more than 1e-2 would show."""
MOST_CANCELLATION = 3.0
"""How much larger the terms may be than their sum before float32 loses too much of it."""
_EXACT_FRACTION = 16
"""Taps that are multiples of 1/16 make exact sums below ``2**24 / 16``."""


def device_engine(kernel: Kernel, engine: EngineName) -> DeviceEngine:
    """Say what computes on the device."""
    has_terms, fits = 0 < len(kernel.terms) <= MOST_TERMS, max(kernel.shape) <= LARGEST_FILTER
    if engine in ("opencv", "scipy"):
        raise ArgumentError(f"engine {engine!r} runs on the CPU: use 'auto', or images in host memory (cupy.asnumpy)")
    if engine == "separable" and not has_terms:
        raise ArgumentError("engine 'separable' needs taps of rank 1 or 2; these have more: use engine 'auto'")
    if engine == "reuse" and not fits:
        raise ArgumentError(
            f"engine 'reuse' takes up to {LARGEST_FILTER} x {LARGEST_FILTER} taps, not {kernel.shape}: use 'auto'"
        )
    if engine in ("separable", "reuse", "fft"):
        return engine
    if has_terms and (not fits or is_cheaper_apart(kernel.shape, len(kernel.terms))):
        return "separable"
    return "reuse" if fits else "fft"


def slides(taps: npt.ArrayLike | Filter, request: Request, image_type: np.dtype[Any]) -> bool:
    """Whether sliding sums are made for these taps and exact enough.

    An axis adds an error of at most 4e-6 of the largest magnitude, and of 6e-8 where results are integers of 16 bits.
    """
    if not isinstance(taps, Filter) or taps.sigmas is None or request.mode == "valid":
        return False
    if image_type == np.float64 or request.target == np.float64:
        return False
    if request.target.kind != "f":
        limits, outside = np.iinfo(request.target), request.cval if request.mode == "constant" else 0
        if not limits.min <= outside <= limits.max:
            return False
    centred = request.kernel.centre == (taps.shape[0] // 2, taps.shape[1] // 2)
    least = SLIDING_SIGMA[request.target.itemsize]
    return centred and sum(taps.sigmas) >= 2 * least and min(taps.sigmas) >= SMALLEST_SLIDING_SIGMA


def is_cheaper_apart(shape: tuple[int, int], rank: int) -> bool:
    """Whether passes along either axis cost less than all taps: products a pixel, where the copy does not hide them."""
    height, width = shape
    return height * width > DENSE_AREA and rank * (height + width) < height * width


def needs_double(request: Request, image_type: np.dtype[Any], engine: DeviceEngine) -> bool:
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
        if terms > MOST_CANCELLATION * of_taps:
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
