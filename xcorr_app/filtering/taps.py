"""The taps of a filter: checked, turned into correlation form, and split into separable terms.

A separable term is a column of taps and a row of taps whose outer product it stands for; a sum of one or two of
them costs ``F_H + F_W`` products a pixel each, where dense taps cost ``F_H * F_W``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import is_device_array

Matrix: TypeAlias = npt.NDArray[np.float64]
Term: TypeAlias = tuple[Matrix, Matrix]
Origin: TypeAlias = int | Sequence[int]

MAX_TERMS = 2
"""Taps of a higher rank run dense."""
DENSE_LIMIT = 63 * 63
"""Taps made of terms are multiplied out up to this area."""


@dataclass(frozen=True, eq=False)
class Filter:
    """A named filter: what a single bright pixel becomes, held as a sum of separable terms.

    Attributes
    ----------
    name : str
        What it is, with its parameters, as in ``"gaussian(2.0)"``.
    terms : tuple of (column, row)
        One-dimensional float64 arrays, copied and read-only; the filter is the sum of their outer products. All
        columns are of one length, and all rows.
    sigmas : pair of float or None
        Standard deviations (rows, columns) of a plain Gaussian, which can be computed in constant time a pixel.

    Raises
    ------
    ArgumentError
        There is no term, or the terms do not belong together or are not finite.

    Examples
    --------
    >>> Filter("edge", ((np.array([1.0]), np.array([1.0, -1.0])),)).taps
    array([[ 1., -1.]])
    """

    name: str
    terms: tuple[Term, ...]
    sigmas: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        copies = tuple((_vector(column), _vector(row)) for column, row in self.terms)
        if not copies or not all(vector.size for term in copies for vector in term):
            raise ArgumentError("a filter needs at least one term, of at least one tap along each axis")
        if len({(len(column), len(row)) for column, row in copies}) > 1:
            raise ArgumentError("the terms of a filter must have columns of one length, and rows of one length")
        object.__setattr__(self, "terms", copies)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the taps."""
        column, row = self.terms[0]
        return len(column), len(row)

    @property
    def taps(self) -> Matrix:
        """The dense taps, ``(F_H, F_W)`` float64, multiplied out at every access."""
        return multiplied_out(self.terms)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Taps in correlation form, scaled by a power of two so that their size never meets a limit of a type.

    ``out[y, x] = 2**exponent * sum of taps[u, v] * image[y + u - centre[0], x + v - centre[1]]``.
    """

    shape: tuple[int, int]
    centre: tuple[int, int]
    exponent: int
    dense: Matrix | None
    """None where there are terms only: a Gaussian of 250 px would have four million taps."""
    terms: tuple[Term, ...]
    """Empty where the rank is above `MAX_TERMS`."""
    weight: float
    """Sum of the magnitudes of the scaled taps, or a bound of it."""

    @property
    def margins(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows above and below, columns left and right of a pixel that its footprint covers."""
        (height, width), (top, left) = self.shape, self.centre
        return (top, height - 1 - top), (left, width - 1 - left)

    @property
    def unscaled_taps(self) -> Matrix:
        """The dense taps with their power of two, multiplied out where there are terms only."""
        return np.asarray(np.ldexp(multiplied_out(self.terms) if self.dense is None else self.dense, self.exponent))

    @property
    def unscaled_terms(self) -> tuple[Term, ...]:
        """The terms with the power of two in their columns."""
        return tuple((np.asarray(np.ldexp(column, self.exponent)), row) for column, row in self.terms)


def multiplied_out(terms: tuple[Term, ...]) -> Matrix:
    """Return the sum of the outer products of terms, ``(F_H, F_W)`` float64."""
    return np.asarray(np.sum([np.outer(column, row) for column, row in terms], axis=0))


def low_rank(taps: Matrix, tolerance: float) -> tuple[Term, ...]:
    """Split dense taps into at most `MAX_TERMS` separable terms by singular value decomposition.

    Treitel and Shanks 1971, IEEE Transactions on Geoscience Electronics 9(1).

    Examples
    --------
    >>> len(low_rank(np.outer([1.0, 2.0, 1.0], [1.0, 0.0, -1.0]), 1e-12))
    1
    >>> low_rank(np.eye(3), 1e-12)
    ()
    """
    left, values, right = np.linalg.svd(taps, full_matrices=False)
    allowed = tolerance * np.abs(taps).sum()
    terms: tuple[Term, ...] = ()
    for k in range(min(MAX_TERMS, len(values))):
        share = math.sqrt(values[k])
        terms = (*terms, (left[:, k] * share, right[k] * share))
        if np.abs(taps - multiplied_out(terms)).sum() <= allowed:
            return terms
    return ()


@functools.lru_cache(maxsize=64)
def _split(taps: bytes, shape: tuple[int, int], tolerance: float) -> tuple[Term, ...]:
    """`low_rank` of the bytes of taps, kept: it takes as long as a small image is filtered."""
    return low_rank(np.frombuffer(taps).reshape(shape), tolerance)


def correlation_kernel(taps: npt.ArrayLike | Filter, origin: Origin, *, flip: bool, tolerance: float) -> Kernel:
    """Check taps and origin and bring them into correlation form."""
    if isinstance(taps, Filter):
        shape = taps.shape
        dense = taps.taps if math.prod(shape) <= DENSE_LIMIT else None
        terms = taps.terms
    else:
        dense, terms = _checked(taps), ()
        shape = dense.shape[0], dense.shape[1]
    sizes = (float(np.abs(column).max() * np.abs(row).max()) for column, row in terms)
    exponent = math.frexp(max(sizes) if dense is None else float(np.abs(dense).max()))[1]
    if dense is None:
        terms = tuple((np.ldexp(column, -exponent), row) for column, row in terms)
        weight = sum(float(np.abs(column).sum() * np.abs(row).sum()) for column, row in terms)
    else:
        dense = np.ldexp(dense, -exponent)
        terms = _split(dense.tobytes(), shape, tolerance)
        weight = float(np.abs(dense).sum())
    if flip:
        dense = None if dense is None else np.ascontiguousarray(dense[::-1, ::-1])
        terms = tuple((column[::-1].copy(), row[::-1].copy()) for column, row in terms)
    return Kernel(shape, _centre(shape, origin, flip=flip), exponent, dense, terms, weight)


def _vector(taps: Matrix) -> Matrix:
    copy = np.array(taps, dtype=np.float64)
    if copy.ndim != 1 or not np.isfinite(copy).all():
        raise ArgumentError("the taps of a term must be one-dimensional and finite")
    copy.setflags(write=False)
    return copy


def _checked(taps: npt.ArrayLike) -> Matrix:
    if is_device_array(taps):
        raise DataTypeError("taps are in device memory: pass taps.get(), they are few")
    values = np.asarray(taps)
    if values.dtype.kind not in "biuf":
        raise DataTypeError(f"taps must be real numbers, not {values.dtype}")
    if values.ndim != 2 or not values.size:
        raise ShapeError(f"taps must be a matrix of at least one row and column, not of shape {values.shape}")
    dense = values.astype(np.float64)
    if not np.isfinite(dense).all():
        raise ArgumentError("taps must be finite: one of them is NaN or infinite")
    return dense


def _centre(shape: tuple[int, int], origin: Origin, *, flip: bool) -> tuple[int, int]:
    try:
        pair = tuple(map(operator.index, origin)) if np.iterable(origin) else (operator.index(origin),) * 2
    except TypeError:
        raise ArgumentError(f"origin must be a whole number or a pair of them, not {origin!r}") from None
    if len(pair) != 2:
        raise ArgumentError(f"origin must be a whole number or a pair of them, not {origin!r}")
    rows, columns = (
        (size - 1) // 2 - shift if flip else size // 2 + shift for size, shift in zip(shape, pair, strict=True)
    )
    if not (0 <= rows < shape[0] and 0 <= columns < shape[1]):
        raise ArgumentError(f"origin {pair} moves the centre off taps of shape {shape}")
    return rows, columns
