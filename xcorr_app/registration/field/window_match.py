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
from xcorr_app.registration.solver.sampling import windows_of
from xcorr_app.registration.standard_error.significance import significance

Numbers = NDArray[np.intp]

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


class Windows:
    """Windows of an image (Y, X), to be looked for in other images.

    They have `size` pixels a side, begin at places (n, 2), and are looked for up to `reach` pixels away. Pixels that
    are not `seen` (Y, X) take no part.
    """

    def __init__(self, image: Array, place: Numbers, size: int, reach: int, seen: Array | None = None) -> None:
        xp = array_namespace(image)
        cut = place[:, 0], place[:, 1], (size, size)
        self.place, self.size, self.reach, self.image = place, size, reach, image
        self.values = _without_means(windows_of(image, *cut), None if seen is None else windows_of(seen, *cut))
        """(n, size, size) less their means."""
        self.power = (self.values * self.values).sum(axis=(1, 2))
        """(n,) sums of squares."""
        self.flat = self.power <= _MIN_VARIANCE * size**2 * xp.abs(image).max() ** 2
        self._spectra: dict[int, Array] = {}

    def planes_on_host(self, image: Array, place: Numbers, numbers: Numbers) -> NDArray[np.float32]:
        """Scores (m, ny, nx) of windows with these numbers in parts of an image that begin at places (m, 2).

        By FFTs just long enough that the shifts looked at do not wrap, a few windows at once.
        """
        side = self.size + 2 * (self.reach + _RIM)
        shifts, length = side - self.size + 1, scipy.fft.next_fast_len(side, real=True)
        found = np.empty((len(place), shifts, shifts), np.float32)
        at_once = max(1, _PIXELS_AT_ONCE // side**2)
        for first in range(0, len(place), at_once):
            part = slice(first, first + at_once)
            large = windows_of(image, place[part, 0], place[part, 1], (side, side))
            large -= large.mean(axis=(1, 2), keepdims=True)
            spectra = scipy.fft.rfft2(large, (length, length), overwrite_x=True)
            spectra *= self._conjugate(numbers[part], length)
            if shifts <= _FEW:
                sums = _first_of_inverse(spectra, length, shifts)
            else:
                sums = scipy.fft.irfft2(spectra, (length, length), overwrite_x=True)[:, :shifts, :shifts]
            scale = _spread_within(large, self.size) * self.power[numbers[part], None, None]
            usable = scale > 0
            found[part] = np.where(usable, sums / np.sqrt(np.where(usable, scale, 1.0)), np.nan)
        return found

    def _conjugate(self, numbers: Numbers, length: int) -> NDArray[np.complex64]:
        """Conjugate spectra of some windows; those of few windows are kept for the next image."""
        if len(self.place) * length**2 > _PIXELS_AT_ONCE:
            own: NDArray[np.complex64] = np.conj(scipy.fft.rfft2(self.values[numbers], (length, length)))
            return own
        if length not in self._spectra:
            self._spectra[length] = np.conj(scipy.fft.rfft2(self.values, (length, length)))
        kept: NDArray[np.complex64] = self._spectra[length]
        return kept if len(numbers) == len(kept) else kept[numbers]


@dataclass(frozen=True)
class Search:
    """Windows to be looked for in an image, `which` of them, around their `offset` (m, 2)."""

    windows: Windows
    image: Array
    offset: Numbers
    which: Numbers | slice = field(default_factory=lambda: slice(None))


def match_windows(searches: Sequence[Search], back: Windows | None = None) -> WindowMatch:
    """Find windows of one size in images at once; the entries of one search follow those of the one before.

    `back` are the same windows of the other image, for two images that show the same in the same place but for a
    fraction of a pixel and an offset of zero: they are looked for in the first image as well and the planes averaged.
    What a window holds by chance then pulls the peak to neither side.
    """
    one, planes = searches[0].windows, _planes(searches)
    xp, reach, margin = array_namespace(planes), one.reach, one.reach + _RIM
    if back is not None:
        planes = (planes + _planes([Search(back, one.image, searches[0].offset)])[:, ::-1, ::-1]) / 2
    flat = xp.concatenate([search.windows.flat[search.which] for search in searches])
    offset = np.concatenate([search.offset for search in searches])
    planes = xp.where(flat[:, None, None], np.float32(np.nan), xp.clip(planes, -1.0, 1.0))
    row, column, top = _highest(planes[:, _RIM:-_RIM, _RIM:-_RIM])
    row, column = row + _RIM, column + _RIM
    near = to_host(neighbourhoods(planes, row, column, 1)).astype(np.float64)
    rating = significance(planes, row, column, top.astype(np.float64), scores=True)
    value = to_host(top).astype(np.float64)
    found = np.isfinite(value)
    fraction, _ = refine(np.where(found[:, None, None], near, 0.0), "gaussian", 1)
    peak = np.stack([to_host(row), to_host(column)], axis=1)
    with np.errstate(invalid="ignore"):
        edge = (near > value[:, None, None]).any(axis=(1, 2))
    if reach > 0:
        edge |= (np.abs(peak - margin) >= reach).any(axis=1)
    shift = np.where(found[:, None], peak - margin + offset + fraction, np.nan)
    return WindowMatch(shift, value, rating.z, rating.false_alarm, edge & found)


def _planes(searches: Sequence[Search]) -> Array:
    """Scores (m, ny, nx) of all windows, one shift beyond the reach; on a device they are correlated in one launch.

    The parts of the images that they are compared with are larger, so that at every shift they overlap wholly.
    """
    one = searches[0].windows
    xp, margin = array_namespace(one.image), one.reach + _RIM
    places = [each.windows.place[each.which] + each.offset - margin for each in searches]
    if xp is np:
        numbers = [np.arange(len(each.windows.place))[each.which] for each in searches]
        each_of = zip(searches, places, numbers, strict=True)
        return np.concatenate([each.windows.planes_on_host(each.image, *where) for each, *where in each_of])
    of_image = np.repeat(np.arange(len(searches)), [len(place) for place in places])
    place, side = np.concatenate(places), (one.size + 2 * margin,) * 2
    large = windows_of(xp.stack([each.image for each in searches]), place[:, 0], place[:, 1], side, of_image)
    values = xp.concatenate([each.windows.values[each.which] for each in searches])
    window = ShiftWindow(0, 2 * margin, 0, 2 * margin)
    return cross_correlate(_without_means(large, None), values[:, None], "n-to-mn", window, check_finite=False)[:, 0]


def _first_of_inverse(spectra: NDArray[np.complex64], length: int, count: int) -> NDArray[np.float32]:
    """First `count` rows and columns of the inverse transforms (n, length, length) of half spectra.

    Of so few, products with the transform's matrix take less time than a whole inverse transform.
    """
    rows, columns = _inverse_matrices(length, count)
    return (rows @ (spectra @ columns)).real


@functools.cache
def _inverse_matrices(length: int, count: int) -> tuple[NDArray[np.complex64], NDArray[np.complex64]]:
    """Matrices (count, length) of rows and (length // 2 + 1, count) of columns, whose product has the real part."""
    waves = np.exp(2j * np.pi * np.outer(np.arange(count), np.arange(length)) / length) / length
    half = waves[:, : length // 2 + 1].T.copy()
    # Frequencies that a half spectrum leaves out are the conjugates of others.
    half[1 : (length + 1) // 2] *= 2
    return waves.astype(np.complex64), half.astype(np.complex64)


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
    return xp.where(part, windows - means[:, None, None], 0.0).astype(windows.dtype)


def _spread_within(large: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    """Sums (n, m, m) of squares about their mean in each square of `size` pixels of windows (n, side, side).

    Zero where it is nothing but rounding.
    """
    side = large.shape[1]
    first = np.arange(side)[:, None] - np.arange(side - size + 1)
    within = ((first >= 0) & (first < size)).astype(np.float32)
    sums, squares = ((within.T @ (values @ within)).astype(np.float64) for values in (large, large * large))
    found = squares - (sums / size) ** 2
    return np.where(found > _ROUNDING * squares, found, 0.0)
