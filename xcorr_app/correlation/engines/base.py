"""The contract of an engine: it returns the plain sums ``C[dy, dx]`` for a form and a shift window.

Normalisation, peaks, sub-pixel positions and quality are computed above the engines, once, and give the same
answer whichever engine ran. An engine is right when it equals :mod:`xcorr_app.correlation.engines.definition`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.runtime.arrays import Array


class Correlator(Protocol):
    """An engine bound to matrix shapes, a window and a dtype; holds what does not depend on the data.

    What it prepares has the leading axes ``(N, M)`` of :mod:`xcorr_app.correlation.forms`, then what the engine needs.
    """

    def left(self, matrices: Array) -> Array:
        """Prepare left matrices ``(N, 1, H, W)`` or ``(1, 1, H, W)``, to be used any number of times."""
        ...

    def right(self, matrices: Array) -> Array:
        """Prepare right matrices ``(N, M, H', W')`` or ``(1, M, H', W')``."""
        ...

    def sums(self, left: Array, right: Array) -> Array:
        """Plain sums of every pair that broadcasting makes, shape ``(N, M, ny, nx)``."""
        ...


class AsTheyAre:
    """Base of correlators that prepare nothing."""

    def left(self, matrices: Array) -> Array:
        """Return left matrices ``(..., H, W)``."""
        return matrices

    def right(self, matrices: Array) -> Array:
        """Return right matrices ``(..., H', W')``."""
        return matrices


class ConvertsOnLoad:
    """Base of correlators whose kernels take matrices as they are, of the types that they `read`."""

    def __init__(self, read: frozenset[np.dtype[Any]], refusal: str) -> None:
        self._read, self._refusal = read, refusal

    def left(self, matrices: Array) -> Array:
        """Return matrices as they are, unless the kernels do not read their type."""
        if matrices.dtype not in self._read:
            raise DataTypeError(
                f"{self._refusal}, the matrices are {matrices.dtype}: convert them to float32, or use engine 'fft'"
            )
        return matrices

    right = left


_SINGLE = frozenset({np.dtype(np.float32)})


def _runs(_: Any) -> str | None:
    return None


def needs_device(xp: Any) -> str | None:
    """Why an engine of CUDA kernels cannot run on arrays of a module; None if it can."""
    return "it runs on a CUDA device, with CuPy arrays" if xp is np else None


@dataclass(frozen=True)
class Engine:
    """A way to compute plain sums.

    Attributes
    ----------
    name : str
        By which it is asked for.
    bind : callable
        Takes the shapes of left and right matrices, a window and the array module; returns a correlator.
    unavailable : callable
        Says why the engine cannot run on arrays of a module; None if it can.
    reads : frozenset of dtype
        Types of matrices that can be handed over as they are, where the planes are float32.
    """

    name: str
    bind: Callable[[tuple[int, int], tuple[int, int], ShiftWindow, Any], Correlator]
    unavailable: Callable[[Any], str | None] = _runs
    reads: frozenset[np.dtype[Any]] = _SINGLE
