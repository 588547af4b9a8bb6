"""Many small windows of two images compared at once: shift, height and significance of every peak.

On a device by the kernels that correlate n images with m each; on the host by FFTs, so that those of a reference's
windows are taken once for all frames that are compared with it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import neighbourhoods
from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.standard_error.significance import significance

_RIM = 1
"""Shifts beyond the window, which the peaks at its edge are interpolated from."""
_MIN_VARIANCE = 1e-12
"""Share of the square of the largest value below which a window holds nothing but rounding."""

_ROUNDING = 1e-6
"""Share of the squares of values in float32 below which their variance is nothing but rounding."""
_FEW = 24
"""Shifts a side up to which a part of an inverse transform is a product with its matrix."""
_PIXELS_AT_ONCE = 1 << 20
"""Of windows that FFTs are taken of together."""


@dataclass(frozen=True)
class WindowMatch:
    """One entry a window, on the host."""

    shift: NDArray[np.float64]
    """(n, 2) rows, columns in pixels by which the second image shows the window displaced; NaN where flat."""
    score: NDArray[np.float64]
    """(n,) zero-mean normalised correlation at the peak."""
    significance: NDArray[np.float64]
    """(n,) height of the peak in standard deviations of the rest of its plane; NaN where that is too small to say."""
    false_alarm: NDArray[np.float64]
    """(n,) probability of such a peak by chance; NaN where not known."""
    on_edge: NDArray[np.bool_]
    """(n,) whether the peak is on the edge of the search, or rises beyond it."""


def windows_of(image: Array, rows: NDArray[np.intp], columns: NDArray[np.intp], size: tuple[int, int]) -> Array:
    """Windows (n, *size) of an image whose first pixels are at (n,) rows and columns; edges of the image continued."""
    xp = array_namespace(image)
    if xp is np:
        # Farther beyond the edge than a window there is nothing new.
        starts = [
            np.clip(first, -one, whole) for first, one, whole in zip((rows, columns), size, image.shape, strict=True)
        ]
        rims = [
            (max(0, -int(first.min(initial=0))), max(0, int(first.max(initial=0)) + one - whole))
            for first, one, whole in zip(starts, size, image.shape, strict=True)
        ]
        padded = np.pad(image, rims, mode="edge") if np.any(rims) else image
        views = np.lib.stride_tricks.sliding_window_view(padded, size)
        return views[starts[0] + rims[0][0], starts[1] + rims[1][0]]
    y = np.clip(rows[:, None] + np.arange(size[0]), 0, image.shape[0] - 1)
    x = np.clip(columns[:, None] + np.arange(size[1]), 0, image.shape[1] - 1)
    return image[xp.asarray(y)[:, :, None], xp.asarray(x)[:, None, :]]


class Windows:
    """Windows of an image (Y, X), to be looked for in other images.

    They have `size` pixels a side, begin at (n,) rows and columns, and are looked for up to `reach` pixels away. Pixels
    that are not `seen` (Y, X) take no part.
    """

    def __init__(
        self,
        image: Array,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        size: int,
        reach: int,
        seen: Array | None = None,
    ) -> None:
        xp = array_namespace(image)
        part = None if seen is None else windows_of(seen, rows, columns, (size, size))
        self.rows, self.columns, self.size, self.reach, self.image = rows, columns, size, reach, image
        self._values = _without_means(windows_of(image, rows, columns, (size, size)), part)
        self.power = (self._values * self._values).sum(axis=(1, 2))
        """(n,) sums of squares."""
        self.flat = self.power <= _MIN_VARIANCE * size**2 * xp.abs(image).max() ** 2
        self._spectra: dict[int, Array] = {}

    def planes(self, image: Array, offset: NDArray[np.intp], which: NDArray[np.intp] | slice = slice(None)) -> Array:
        """Scores (m, ny, nx) of `which` windows in an image around their offsets (m, 2), one shift beyond the reach.

        The parts of the image that they are compared with are larger, so that at every shift they overlap wholly.
        """
        margin = self.reach + _RIM
        starts = self.rows[which] + offset[:, 0] - margin, self.columns[which] + offset[:, 1] - margin
        if array_namespace(image) is np:
            numbers = np.arange(len(self.rows))[which]
            return self._planes_on_host(image, numbers, *starts, self.size + 2 * margin)
        large = _without_means(windows_of(image, *starts, (self.size + 2 * margin,) * 2), None)
        return self.compared(large, self.values(which))

    def values(self, which: NDArray[np.intp] | slice) -> Array:
        """Pixels of `which` windows less their means."""
        return self._values[which]

    def compared(self, large: Array, values: Array) -> Array:
        """Scores of windows in parts of images of their size and the reach around it."""
        window = ShiftWindow(0, 2 * (self.reach + _RIM), 0, 2 * (self.reach + _RIM))
        return cross_correlate(large, values[:, None], "n-to-mn", window, check_finite=False)[:, 0]

    def _planes_on_host(
        self, image: Array, numbers: NDArray[np.intp], rows: NDArray[np.intp], columns: NDArray[np.intp], side: int
    ) -> NDArray[np.float32]:
        """By FFTs just long enough that the shifts looked at do not wrap, a few windows at once."""
        shifts = side - self.size + 1
        found = np.empty((len(rows), shifts, shifts), np.float32)
        at_once = max(1, _PIXELS_AT_ONCE // side**2)
        for first in range(0, len(rows), at_once):
            part = slice(first, first + at_once)
            large = windows_of(image, rows[part], columns[part], (side, side))
            large -= large.mean(axis=(1, 2), keepdims=True)
            length = scipy.fft.next_fast_len(side, real=True)
            spectra = scipy.fft.rfft2(large, (length, length), overwrite_x=True)
            spectra *= self._conjugate(numbers[part], length)
            if shifts <= _FEW:
                sums = _first_of_inverse(spectra, length, shifts)
            else:
                sums = scipy.fft.irfft2(spectra, (length, length), overwrite_x=True)[:, :shifts, :shifts]
            variance = _spread_within(large, self.size)
            scale = variance * self.power[numbers[part], None, None]
            usable = scale > 0
            found[part] = np.where(usable, sums / np.sqrt(np.where(usable, scale, 1.0)), np.nan)
        return found

    def _conjugate(self, numbers: NDArray[np.intp], length: int) -> NDArray[np.complex64]:
        """Conjugate spectra of some windows; those of few windows are kept for the next image."""

        def of(values: Array) -> NDArray[np.complex64]:
            found: NDArray[np.complex64] = np.conj(scipy.fft.rfft2(values, (length, length)))
            return found

        if len(self.rows) * length**2 > _PIXELS_AT_ONCE:
            return of(self._values[numbers])
        if length not in self._spectra:
            self._spectra[length] = of(self._values)
        kept: NDArray[np.complex64] = self._spectra[length]
        return kept if len(numbers) == len(kept) else kept[numbers]


def _first_of_inverse(spectra: NDArray[np.complex64], length: int, count: int) -> NDArray[np.float32]:
    """First `count` rows and columns of the inverse transforms (n, length, length) of half spectra.

    Of so few, products with the transform's matrix take less time than a whole inverse transform.
    """
    rows, columns = _inverse_matrices(length, count)
    return (rows @ (spectra @ columns)).real


@functools.cache
def _inverse_matrices(length: int, count: int) -> tuple[NDArray[np.complex64], NDArray[np.complex64]]:
    """Matrices (count, length) of rows and (length // 2 + 1, count) of columns, whose product has the real part."""
    turns = np.outer(np.arange(count), np.arange(length)) / length
    waves = np.exp(2j * np.pi * turns) / length
    half = waves[:, : length // 2 + 1].T.copy()
    # Frequencies that a half spectrum leaves out are the conjugates of others.
    half[1 : (length + 1) // 2] *= 2
    return waves.astype(np.complex64), half.astype(np.complex64)


def match_windows(
    windows: Windows,
    image: Array,
    offset: NDArray[np.intp],
    which: NDArray[np.intp] | slice = slice(None),
    *,
    back: Windows | None = None,
) -> WindowMatch:
    """Find where an image (Y, X) shows windows of another, around their `offset` (m, 2); of `which` of them, if given.

    `back` are the same windows of the image, for images that show the same in the same place but for a fraction of a
    pixel and an `offset` of zero: they are looked for in the other image as well and the planes averaged. What a
    window holds by chance then pulls the peak to neither side.
    """
    planes = windows.planes(image, offset, which)
    if back is not None:
        planes = (planes + back.planes(windows.image, offset, which)[:, ::-1, ::-1]) / 2
    return _rated(planes, windows.flat[which], offset, windows.reach)


@dataclass(frozen=True)
class Search:
    """Windows to be looked for in an image, `which` of them, around their `offset` (m, 2)."""

    windows: Windows
    image: Array
    offset: NDArray[np.intp]
    which: NDArray[np.intp] | slice = field(default_factory=lambda: slice(None))


def match_together(searches: Sequence[Search]) -> WindowMatch:
    """Find windows of one size in many images at once; the entries of one search follow those of the one before."""
    planes = _planes_together(searches)
    xp, reach = array_namespace(planes), searches[0].windows.reach
    flat = xp.concatenate([search.windows.flat[search.which] for search in searches])
    return _rated(planes, flat, np.concatenate([search.offset for search in searches]), reach)


def _planes_together(searches: Sequence[Search]) -> Array:
    """Planes of all searches; on a device they are correlated in one launch."""
    one = searches[0].windows
    xp = array_namespace(one.image)
    if xp is np:
        return np.concatenate([each.windows.planes(each.image, each.offset, each.which) for each in searches])
    margin = one.reach + _RIM
    rows = np.concatenate([each.windows.rows[each.which] + each.offset[:, 0] for each in searches])
    columns = np.concatenate([each.windows.columns[each.which] + each.offset[:, 1] for each in searches])
    numbers = np.repeat(np.arange(len(searches)), [len(each.offset) for each in searches])
    reached, (height, width) = np.arange(-margin, one.size + margin), one.image.shape
    y = xp.asarray(np.clip(rows[:, None] + reached, 0, height - 1))
    x = xp.asarray(np.clip(columns[:, None] + reached, 0, width - 1))
    images = xp.stack([each.image for each in searches])
    large = images[xp.asarray(numbers)[:, None, None], y[:, :, None], x[:, None, :]]
    values = xp.concatenate([each.windows.values(each.which) for each in searches])
    return one.compared(_without_means(large, None), values)


def _rated(planes: Array, flat: Array, offset: NDArray[np.intp], reach: int) -> WindowMatch:
    """Peaks of planes (m, ny, nx) of scores around offsets (m, 2); windows that are `flat` (m,) have none."""
    xp, margin = array_namespace(planes), reach + _RIM
    planes = xp.where(flat[:, None, None], np.nan, xp.clip(planes.astype(np.float64), -1.0, 1.0))
    row, column, top = _highest(planes[:, _RIM:-_RIM, _RIM:-_RIM])
    row, column = row + _RIM, column + _RIM
    near = to_host(neighbourhoods(planes, row, column, 1)).astype(np.float64)
    rating = significance(planes, row, column, top, scores=True)
    value = to_host(top).astype(np.float64)
    found = np.isfinite(value)
    fraction, _ = refine(np.where(found[:, None, None], near, 0.0), "gaussian", 1)
    peak = np.stack([to_host(row), to_host(column)], axis=1)
    with np.errstate(invalid="ignore"):
        higher = (near > value[:, None, None]).any(axis=(1, 2))
    edge = (np.abs(peak - margin) >= reach).any(axis=1) if reach > 0 else np.zeros(len(offset), dtype=bool)
    shift = np.where(found[:, None], peak - margin + offset + fraction, np.nan)
    return WindowMatch(shift, value, rating.z, rating.false_alarm, (edge | higher) & found)


def _highest(planes: Array) -> tuple[Array, Array, Array]:
    """Row and column of the highest element of each plane, and its value; NaN where a plane is nothing else.

    All at once, without the rivals that `find_peaks` looks for: there are many planes, and they are small.
    """
    xp = array_namespace(planes)
    flat = xp.where(xp.isnan(planes), -np.inf, planes).reshape(len(planes), -1)
    best = flat.argmax(axis=1)
    value = flat[xp.arange(len(planes)), best]
    return best // planes.shape[2], best % planes.shape[2], xp.where(xp.isneginf(value), np.nan, value)


def _without_means(windows: Array, part: Array | None) -> Array:
    """Windows (n, h, w) less their means; what is not in their `part` is zero."""
    if part is None:
        return windows - windows.mean(axis=(1, 2), keepdims=True)
    xp = array_namespace(windows)
    means = (windows * part).sum(axis=(1, 2)) / xp.maximum(part.sum(axis=(1, 2)), 1)
    return xp.where(part, windows - means[:, None, None].astype(windows.dtype), 0.0).astype(windows.dtype)


def _spread_within(large: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    """Sums (n, m, m) of squares about their mean in each square of `size` pixels of windows (n, side, side).

    Zero where it is nothing but rounding.
    """
    side = large.shape[1]
    shifts = side - size + 1
    # Sums over squares as products with ones and zeros, each too small for a BLAS to share between threads.
    first = np.arange(side)[:, None] - np.arange(shifts)
    within = ((first >= 0) & (first < size)).astype(np.float32)
    sums, squares = (within.T @ (values @ within) for values in (large, large * large))
    squares, mean = squares.astype(np.float64), sums.astype(np.float64) / size
    found = squares - mean**2
    return np.where(found > _ROUNDING * squares, found, 0.0)
