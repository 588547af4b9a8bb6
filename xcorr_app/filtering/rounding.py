"""From sums in floating point to the pixels of a result: scaling, rounding, clipping, counting."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

ResultType: TypeAlias = Literal["same", "float32"]
RESULT_TYPES: tuple[ResultType, ...] = get_args(ResultType)


def result_type(images: np.dtype[Any], wanted: ResultType) -> np.dtype[Any]:
    """Return the type of a result for images of a type."""
    if wanted not in RESULT_TYPES:
        raise ArgumentError(f"dtype {wanted!r} is unknown: take one of {', '.join(RESULT_TYPES)}")
    return images if wanted == "same" else np.dtype(np.float32)


def store(sums: Array, exponent: int, out: Array) -> int:
    """Write ``sums * 2**exponent`` as pixels: integers rounded half to even, then clipped.

    Examples
    --------
    >>> pixels = np.empty((1, 4), np.uint8)
    >>> store(np.array([[0.5, 1.5, 255.6, -0.4]]), 0, pixels), pixels.tolist()
    (1, [[0, 2, 255, 0]])
    """
    xp = array_namespace(sums)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if exponent:
            xp.ldexp(sums, exponent, out=sums)
        if out.dtype.kind == "f":
            out[...] = sums
            return 0
    limits = np.iinfo(out.dtype)
    xp.rint(sums, out=sums)
    clipped = int(xp.count_nonzero((sums < limits.min) | (sums > limits.max)))
    if clipped:
        xp.clip(sums, limits.min, limits.max, out=sums)
    out[...] = sums
    return clipped
