"""Normalisation of the plain sums, the same for every engine.

Zero-mean normalised cross-correlation over the true overlap of each shift (Lewis 1995; Padfield 2012,
doi 10.1109/TIP.2011.2181402, without masks)::

    (Sfg - Sf*Sg/n) / sqrt((Sff - Sf**2/n) * (Sgg - Sg**2/n))

from the plain sum ``Sfg`` and the overlap sums of f, f**2, g, g**2 and the number n of pairs.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.common_overlap import on_common_overlap
from xcorr_app.correlation.overlap import overlap_counts, overlap_sums
from xcorr_app.correlation.peaks import neighbourhoods_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.common_overlap import common_overlap
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import name_of

Overlaps: TypeAlias = Any
"""Sums and centred sums of squares over the overlap at every shift, a pair of (..., ny, nx); on a device also what they
are taken from."""

# Variance left in an overlap, relative to that of the whole image, below which rounding would decide the score.
_RELATIVE_VARIANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}
_MANY = 1 << 16
"""Images for which a device adds up tables, however few there are: in one order."""


def min_overlap_pixels(left_shape: tuple[int, int], right_shape: tuple[int, int], min_overlap: float) -> int:
    """Fewest overlapping pairs at which a shift scores: a fraction of the largest possible overlap, at least one."""
    largest = min(left_shape[0], right_shape[0]) * min(left_shape[1], right_shape[1])
    return max(1, math.ceil(min_overlap * largest))


class ZNCC:
    """Turns plain sums into zero-mean normalised cross-correlation for fixed shapes and a fixed window.

    The matrices given to it are float32 or float64 and should have zero mean (the result does not change, the rounding
    does).

    Parameters
    ----------
    left_shape, right_shape : tuple of int
    window : ShiftWindow
    min_overlap : float
        Shifts whose overlap is a smaller fraction of the largest possible overlap score NaN.
    xp : module
        numpy or cupy.
    """

    def __init__(
        self,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        min_overlap: float,
        xp: Any,
    ) -> None:
        self._xp, self._problem = xp, (left_shape, right_shape, window)
        self._least = min_overlap_pixels(left_shape, right_shape, min_overlap)

    @cached_property
    def too_small(self) -> Array:
        """Whether too little overlaps at a shift."""
        return constants(self._xp, lambda: self._xp.asarray(overlap_counts(*self._problem) < self._least))

    @cached_property
    def _counts(self) -> Array:
        return constants(self._xp, lambda: self._xp.asarray(np.maximum(overlap_counts(*self._problem), 1.0)))

    @cached_property
    def _largest(self) -> tuple[int, tuple[int, int]]:
        """Elements of the largest overlap, and row and column of its shift in a plane."""
        counts = overlap_counts(*self._problem)
        row, column = divmod(int(counts.argmax()), counts.shape[1])
        return int(counts[row, column]), (row, column)

    def left(self, matrices: Array) -> Overlaps:
        """Return overlap sums and centred sums of squares of left matrices (..., H, W), to be reused."""
        return self._centred(matrices, *overlap_sums(matrices, *self._problem, of_right=False))

    def right(self, matrices: Array) -> Overlaps:
        """Return overlap sums and centred sums of squares of right matrices (..., H', W')."""
        return self._centred(matrices, *overlap_sums(matrices, *self._problem, of_right=True))

    def __call__(self, sums: Array, left: Overlaps, right: Overlaps) -> Array:
        """Return scores in [-1, 1] as float64, shape of `sums`; NaN where the overlap is too small or constant."""
        (left_sum, left_variance), (right_sum, right_variance) = left, right
        product = left_variance * right_variance
        invalid = self.too_small | (product <= 0)
        # In place, since of large windows new arrays take longer than what is done to them.
        product[np.broadcast_to(invalid, product.shape)] = 1.0
        np.sqrt(product, out=product)
        score = left_sum * right_sum
        score /= self._counts
        np.subtract(sums, score, out=score)
        score /= product
        np.clip(score, -1.0, 1.0, out=score)
        score[np.broadcast_to(invalid, score.shape)] = np.nan
        return score

    def on_common_overlap(
        self,
        around: Array,
        images: tuple[Array, Array],
        overlaps: tuple[Overlaps, Overlaps],
        peak: NDArray[np.intp],
        element: tuple[Array, Array],
    ) -> Array:
        """Return scores around peaks over one overlap, that of the peak.

        See :func:`xcorr_app.correlation.common_overlap.on_common_overlap`.

        Parameters
        ----------
        around : ndarray, shape (n, 2 r + 1, 2 r + 1)
            Scores, each over its own overlap.
        images, overlaps : (left, right)
            Matrices (1 or n, h, w) of one shape and what :meth:`left` and :meth:`right` return of them.
        peak : ndarray of int, shape (n, 2)
            Shifts in the middle of `around`, on the host.
        element : (rows, columns)
            Indices (n,) of the peaks in planes over the window.
        """
        moments = neighbourhoods_of([*overlaps[0], *overlaps[1]], *element, around.shape[1] // 2)
        return on_common_overlap(around, *images, peak, moments[:2], moments[2:])

    def _centred(self, matrices: Array, sums: Array, squares: Array) -> Overlaps:
        variance = sums * sums
        variance /= self._counts
        np.subtract(squares, variance, out=variance)
        if self._largest[0] == matrices.shape[-2] * matrices.shape[-1]:
            # At some shift all of the matrix overlaps.
            whole = squares[..., *self._largest[1]][..., None, None]
        else:
            rows = (matrices[..., None, :] @ matrices[..., None])[..., 0, 0]
            whole = rows.sum(axis=-1, dtype=np.float64)[..., None, None]
        variance[variance <= _RELATIVE_VARIANCE[matrices.dtype] * whole] = 0.0
        return sums, variance


@dataclass(frozen=True)
class _Tables:
    """Summed-area tables in the place of overlaps."""

    tables: Array
    dtype: str
    """Of the matrices."""


class DeviceZNCC(ZNCC):
    """The same on a device, by kernels: overlaps are summed-area tables."""

    def __init__(
        self,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        min_overlap: float,
        xp: Any,
    ) -> None:
        super().__init__(left_shape, right_shape, window, min_overlap, xp)
        self._one = Problem(left_shape, right_shape, (window.dy_min, window.dx_min), window.shape)
        self._tables = tables_for(self._one)

    def left(self, matrices: Array) -> Overlaps:
        """Return tables of left matrices (..., H, W), to be reused."""
        images = self._images(matrices)
        return _Tables(self._tables.left(images, canonical_batch=_MANY), name_of(images.dtype))

    def right(self, matrices: Array) -> Overlaps:
        """Return tables of right matrices (..., H', W')."""
        images = self._images(matrices)
        return _Tables(self._tables.right(images, canonical_batch=_MANY), name_of(images.dtype))

    def __call__(self, sums: Array, left: Overlaps, right: Overlaps) -> Array:
        """Return scores as `ZNCC` does."""
        scores = self._xp.empty(sums.shape)
        self._start(self._xp.ascontiguousarray(sums), (left, right), scores)
        return scores

    def on_common_overlap(
        self,
        around: Array,
        images: tuple[Array, Array],
        overlaps: tuple[Overlaps, Overlaps],
        peak: NDArray[np.intp],
        element: tuple[Array, Array],
    ) -> Array:
        """Return what `ZNCC.on_common_overlap` does."""
        count, lefts = around.shape[0], images[0].shape[0]
        problem = replace(self._one, lefts=lefts, rights=count, rights_per_left=count // lefts)
        left, right = (each.tables for each in overlaps)
        return common_overlap(around, *images, peak, problem, (self._tables, left, right))

    def _start(self, sums: Array, overlaps: tuple[_Tables, _Tables], out: Array) -> None:
        left, right = overlaps
        pairs = sums.size // math.prod(self._one.plane_shape)
        lefts, rights = left.tables.shape[0], right.tables.shape[0]
        problem = replace(self._one, lefts=lefts, rights=rights, rights_per_left=pairs // lefts)
        launch = zncc_planes_launch(problem, name_of(sums.dtype), left.dtype)
        tables = left.tables, right.tables, self._tables.rows, self._tables.columns
        numbers = (*problem.arguments(), *launch.extra, *self._tables.sizes, self._least)
        start(launch, (sums, *tables, out), numbers)

    def _images(self, matrices: Array) -> Array:
        return self._xp.ascontiguousarray(matrices).reshape(-1, *matrices.shape[-2:])


def zncc_for(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, min_overlap: float, xp: Any
) -> ZNCC:
    """Return what normalises arrays of numpy or cupy."""
    if xp is np:
        return ZNCC(left_shape, right_shape, window, min_overlap, xp)
    return _on_device(current_device(), left_shape, right_shape, window, min_overlap)


@functools.lru_cache(maxsize=8)
def _on_device(
    _device: int, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, min_overlap: float
) -> DeviceZNCC:
    """Made once, since preparing takes longer than normalising."""
    return DeviceZNCC(left_shape, right_shape, window, min_overlap, importlib.import_module("cupy"))
