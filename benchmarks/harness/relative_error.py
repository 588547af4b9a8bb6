"""How far an answer is from what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["relative_error"]


def relative_error(answer: Any, expected: NDArray[np.float64]) -> float:
    """Compare an answer with the right one.

    Parameters
    ----------
    answer : ndarray
        On the host.
    expected : ndarray of float64
        Of the same shape, not all zero.

    Returns
    -------
    float
        Norm of the difference over that of `expected`; infinite for another shape and for values that are not finite.
    """
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return float("inf")
    return float(np.linalg.norm(answer - expected) / np.linalg.norm(expected))
