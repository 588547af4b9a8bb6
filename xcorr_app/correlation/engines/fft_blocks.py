"""The correlation theorem block by block: for large matrices on the host and windows that are smaller than they are.

Only a window of the plane is wanted. The right matrix is cut into blocks; over the window, a block of B elements along
an axis meets B + span elements of the left matrix, so that transforms of this length are free of wrap-around. Products
of spectra are summed over all blocks, and one inverse of the size of a block gives the window (overlap-save: Stockham
1966, doi 10.1145/1464182.1464209). The blocks overlap in the left matrix, which costs a little; but they stay in the
cache, and hardly anything is left of the inverse.

Blocks of rows go in pairs, one of them as the real part of a complex matrix and the other one as the imaginary part:
the real part of ``l conj(r)`` is ``l_0 r_0 + l_1 r_1``, the very sum over blocks that is wanted.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.engines.base import AsTheyAre
from xcorr_app.correlation.engines.thread_memory import thread_memory
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array

_LONGEST = 640
"""Beyond this length two-dimensional transforms of OpenCV take several times as long for each element."""
_LONGEST_WHOLE = 720
"""The same of transforms of real matrices."""
_SHORTEST = 64
_MAX_BLOCKS = 64
"""Along an axis."""
_CALLS, _PART_OF_ROW, _ROW = 75e3, 3.0, {4: 1000.0, 8: 0.0}
"""Time of the calls for a block, of an element where rows are read in parts, which takes more than twice as long, and
of filling in a row of a block, by the bytes of an element; in units of a transform's n log2(n). So few blocks as wide
as the matrix are better than squares. Products hardly count beside these."""
_CACHE, _BEYOND_CACHE = 1 << 20, 1.15
"""Bytes of a block, as many as the own cache of a core usually has, from which on it takes so much longer."""
_WHOLE = {4: 1.5, 8: 0.9}
"""Time of all that a correlation by real transforms of OpenCV takes, in the same units for each of their elements."""
_REAL = 1.85
"""The same by those of SciPy, for each element of the plane."""

Part = tuple[slice, slice]


@dataclass(frozen=True)
class Cut:
    """An axis cut into blocks."""

    size: int
    """Of the transforms."""
    right: tuple[slice, ...]
    """Where each block lies in the right matrix; it is at the beginning of its transform."""
    left: tuple[Part, ...]
    """Which elements of its transform each block takes from the left matrix, and where they lie there."""


@functools.lru_cache(maxsize=1024)
def cut(left: int, right: int, lowest: int, highest: int, count: int, longest: int = _LONGEST) -> Cut | None:
    """Cut an axis for shifts from `lowest` to `highest` into so many blocks; None where transforms are too long."""
    block = -(-right // count)
    span = highest - lowest
    rights, lefts = [], []
    least = max(block, span + 1)
    for first in range(0, count * block, block):
        # Element i of the transform is element first + lowest + i of the left matrix, zero where there is none.
        start = first + lowest
        begin = min(max(0, -start), block + span)
        end = max(min(left - start, block + span), begin)
        least = max(least, end, block + span - begin)
        rights.append(slice(min(first, right), min(first + block, right)))
        lefts.append((slice(begin, end), slice(start + begin, start + end) if end > begin else slice(0, 0)))
    size = next((length for length in _lengths() if least <= length <= longest), None)
    return None if size is None else Cut(size, tuple(rights), tuple(lefts))


@functools.lru_cache(maxsize=256)
def plan(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, itemsize: int = 4
) -> tuple[Cut, Cut] | None:
    """Cut rows and columns so that the least time is expected; None where SciPy's transforms take less.

    `itemsize` is that of an element.
    Rows in one piece are for :class:`xcorr_app.correlation.engines.fft_whole.WholeFFTCorrelator`.
    """
    if min(*left_shape, *right_shape) < _SHORTEST:
        return None
    shifts = (window.dy_min, window.dy_max), (window.dx_min, window.dx_max)
    axes = [
        [
            found
            for count in range(step, min(_MAX_BLOCKS, right // 16) + 1, step)
            if (found := cut(left, right, *ends, count)) is not None
        ]
        for left, right, ends, step in zip(left_shape, right_shape, shifts, (2, 1), strict=True)
    ]
    by_parts = _PART_OF_ROW * math.prod(right_shape)
    best, least = None, _REAL * _n_log_n((left_shape[0] + shifts[0][1]) * (left_shape[1] + shifts[1][1]))
    whole = [
        cut(left, right, *ends, 1, _LONGEST_WHOLE)
        for left, right, ends in zip(left_shape, right_shape, shifts, strict=True)
    ]
    if whole[0] is not None and whole[1] is not None:
        best, least = (whole[0], whole[1]), _WHOLE[itemsize] * _n_log_n(whole[0].size * whole[1].size)
    for rows in axes[0]:
        for columns in axes[1]:
            size, blocks = rows.size * columns.size, len(rows.right) // 2 * len(columns.right)
            slower = _BEYOND_CACHE if 2 * itemsize * size > _CACHE else 1.0
            time = (blocks + 1) * slower * _n_log_n(size) + blocks * (rows.size * _ROW[itemsize] + _CALLS)
            if len(columns.right) > 1:
                time += by_parts
            if time < least:
                best, least = (rows, columns), time
    return best


def _n_log_n(size: int) -> float:
    return size * math.log2(size)


@functools.cache
def _lengths() -> tuple[int, ...]:
    """Lengths that are transformed fast: powers of two times at most 3 squared, 5 and 7."""
    odd = (1, 3, 5, 7, 9, 15, 21, 35)
    return tuple(sorted(m << n for m in odd for n in range(3, 10) if _SHORTEST <= m << n <= _LONGEST_WHOLE))


class BlockFFTCorrelator(AsTheyAre):
    """Correlation theorem over blocks that :func:`plan` made for some shapes and this window.

    Right matrices are transformed when they are multiplied, as long as they are cached.
    """

    def __init__(self, window: ShiftWindow, blocks: tuple[Cut, Cut]) -> None:
        self._plane = window.shape
        rows, columns = blocks
        self._size = rows.size, columns.size
        self._rights = [
            [(row, column) for row in pair]
            for pair in zip(rows.right[::2], rows.right[1::2], strict=True)
            for column in columns.right
        ]
        sizes = [[(y.stop - y.start, x.stop - x.start) for y, x in pair] for pair in self._rights]
        self._shorter = {i for i, pair in enumerate(sizes) if any(size != sizes[0][0] for size in pair)}
        """Blocks that do not cover what the one before has left behind."""
        self._lefts = [
            [((to_y, to_x), (of_y, of_x)) for to_y, of_y in pair]
            for pair in zip(rows.left[::2], rows.left[1::2], strict=True)
            for to_x, of_x in columns.left
        ]

    def left(self, matrices: NDArray[np.floating]) -> Array:
        """Transform left matrices ``(..., H, W)`` and conjugate the result, scaled for the inverse."""
        batch = matrices.shape[:-2]
        spectra = np.empty((*batch, len(self._lefts), *self._size, 2), matrices.dtype)
        complex_spectra = _as_complex(spectra)
        (values,) = thread_memory(1, (*self._size, 2), matrices.dtype)
        for index in np.ndindex(batch):
            for block, parts in enumerate(self._lefts):
                values[:] = 0
                for component, (to, of) in enumerate(parts):
                    values[*to, component] = matrices[index][of]
                cv2.dft(values, spectra[index][block], cv2.DFT_SCALE)
                np.conjugate(complex_spectra[index][block], out=complex_spectra[index][block])
        return complex_spectra

    def sums(self, left: Array, right: Array) -> NDArray[np.floating]:
        """Multiply the spectra and transform back, shape ``(N, M, ny, nx)``."""
        batch = np.broadcast_shapes(left.shape[:2], right.shape[:2])
        planes = np.empty((*batch, *self._plane), right.dtype)
        sets = batch[0] if right.shape[0] == 1 else 1
        values, spectrum, total = thread_memory(3, (*self._size, 2), right.dtype)
        values[:] = 0
        totals = [total, *(np.empty_like(total) for _ in range(sets - 1))]
        complex_spectrum, *complex_totals = (_as_complex(pairs) for pairs in (spectrum, *totals))
        # Each step writes over what is not needed any more: the less memory, the more of it is cached.
        complex_product = complex_spectrum if sets == 1 else np.empty_like(complex_spectrum)
        for n, m in np.ndindex(right.shape[:2]):
            of_lefts = left[n : n + 1] if 1 < left.shape[0] == right.shape[0] else left
            of_lefts = of_lefts[:, min(m, left.shape[1] - 1)]
            for block, parts in enumerate(self._rights):
                if block in self._shorter:
                    values[:] = 0
                for component, part in enumerate(parts):
                    of_part = right[n, m][part]
                    values[: of_part.shape[0], : of_part.shape[1], component] = of_part
                cv2.dft(values, spectrum)
                for total, of_left in zip(complex_totals, of_lefts, strict=True):
                    if block == 0:
                        np.multiply(of_left[block], complex_spectrum, out=total)
                    else:
                        np.multiply(of_left[block], complex_spectrum, out=complex_product)
                        np.add(total, complex_product, out=total)
            for i, total in enumerate(totals, n):
                # The forward transform of a conjugate is the conjugate of the inverse: the real part is the same.
                cv2.dft(total, spectrum)
                planes[i, m] = spectrum[: self._plane[0], : self._plane[1], 0]
        return planes


def _as_complex(pairs: Array) -> Array:
    """View pairs along the last axis as complex numbers."""
    return pairs.view(np.complex64 if pairs.dtype == np.float32 else np.complex128)[..., 0]
