"""Many small windows of two images compared at once, and refined by the solver as the last step of a field.

On a device windows are compared by the kernels that correlate n images with m each; on the host by OpenCV, window by
window. A parabola or Gaussian through three values of a plane of whole shifts draws fine textures to whole pixels; the
solver asks the pixels themselves. The second image is interpolated by quintic splines, whose error on fine speckle is a
thousandth of a pixel; of windows that move as one it is sampled along rows and columns apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import neighbourhoods
from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.solver.basis import BASES, Basis, slopes_of
from xcorr_app.registration.solver.gauss_newton import FARTHEST, Fits, Solver
from xcorr_app.registration.solver.sampling import Numbers, coefficients, shifted_windows, views_of, windows_of
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.standard_error.significance import significance
from xcorr_app.registration.warping.device_warp import ndimage_of
from xcorr_app.registration.warping.matrices import Matrix, translated

_MIN_VARIANCE = 1e-12
"""Share of the square of the largest value below which a window holds nothing but rounding."""
Floats = NDArray[np.float64]
_MAX_STEPS, _CONVERGED = {True: 12, False: 25}, {True: 2e-2, False: 2e-3}
"""Of windows that move as one, and that are strained, in pixels: without noise steps shrink a hundredfold and the last
leaves next to nothing; with noise they shrink slowly, and what they would still change is less than its error."""
_AS_LARGE_AS = 2
"""Windows are refined in as much memory as so many times their pixels are correlated in."""
MIN_VISIBLE = 0.5
"""Share of a window that must not be masked, and be seen in both images."""
_ORDER, _RIM = 5, 12
"""Of the splines, and pixels beyond the edge for which they are continued."""


@dataclass(frozen=True)
class WindowMatch(Columns):
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
    """(n,) whether the peak is on the edge of the search: a higher one may lie beyond."""


class Windows:
    """Windows of an image (Y, X), to be looked for in other images.

    They have `size` pixels a side, begin at places (n, 2), and are looked for up to `reach` pixels away, 1 or more.
    Pixels that are not `valid` (Y, X) take no part.
    """

    def __init__(self, image: Array, place: Numbers, size: int, reach: int, valid: Array | None = None) -> None:
        xp = array_namespace(image)
        cut = place[:, 0], place[:, 1], (size, size)
        self.place, self.size, self.reach, self.image = place, size, reach, image
        self.values = _without_means(windows_of(image, *cut), None if valid is None else windows_of(valid, *cut))
        """(n, size, size) less their means."""
        power = (self.values * self.values).sum(axis=(1, 2))
        self.flat = power <= _MIN_VARIANCE * size**2 * xp.abs(image).max() ** 2


@dataclass(frozen=True)
class Search:
    """Windows to be looked for in an image, around their `offset` (m, 2)."""

    windows: Windows
    image: Array
    offset: Numbers


def match_windows(searches: Sequence[Search], back: Windows | None = None) -> WindowMatch:
    """Find windows of one size in images at once; the entries of one search follow those of the one before.

    `back` are the same windows of the other image, for two images that show the same in the same place but for a
    fraction of a pixel and an offset of zero: they are looked for in the first image as well and the planes averaged.
    What a window holds by chance then pulls the peak to neither side.
    """
    one, planes = searches[0].windows, _planes(searches)
    xp, reach = array_namespace(planes), one.reach
    if back is not None:
        planes = (planes + _planes([Search(back, one.image, searches[0].offset)])[:, ::-1, ::-1]) / 2
    flat = xp.concatenate([search.windows.flat for search in searches])
    offset = np.concatenate([search.offset for search in searches])
    planes = xp.where(flat[:, None, None], np.float32(np.nan), xp.clip(planes, -1.0, 1.0))
    row, column, top = _highest(planes)
    near = to_host(neighbourhoods(planes, row, column, 1)).astype(np.float64)
    rating = significance(planes, row, column, top.astype(np.float64), scores=True)
    value = to_host(top).astype(np.float64)
    found = np.isfinite(value)
    fraction, _ = refine(np.where(found[:, None, None], near, 0.0), "gaussian", 1)
    peak = np.stack([to_host(row), to_host(column)], axis=1) - reach
    shift = np.where(found[:, None], peak + offset + fraction, np.nan)
    return WindowMatch(shift, value, rating.z, rating.false_alarm, found & (np.abs(peak) == reach).any(axis=1))


def _planes(searches: Sequence[Search]) -> Array:
    """Scores (m, ny, nx) of all windows; on a device they are correlated in one launch.

    The parts of the images that they are compared with are larger, so that at every shift they overlap wholly.
    """
    one = searches[0].windows
    xp, side = array_namespace(one.image), (one.size + 2 * one.reach,) * 2
    places = [each.windows.place + each.offset - one.reach for each in searches]
    if xp is np:
        return np.concatenate([_planes_on_host(*each, side) for each in zip(searches, places, strict=True)])
    of_image = np.repeat(np.arange(len(searches)), [len(place) for place in places])
    place = np.concatenate(places)
    large = windows_of(xp.stack([each.image for each in searches]), place[:, 0], place[:, 1], side, of_image)
    values = xp.concatenate([each.windows.values for each in searches])
    window = ShiftWindow(0, 2 * one.reach, 0, 2 * one.reach)
    return cross_correlate(_without_means(large, None), values[:, None], "n-to-mn", window, check_finite=False)[:, 0]


def _planes_on_host(search: Search, place: Numbers, side: tuple[int, int]) -> NDArray[np.float32]:
    """Scores (m, ny, nx) of the windows of a search in parts of its image that begin at places (m, 2)."""
    import cv2

    found = np.empty((len(place), *(2 * search.windows.reach + 1,) * 2), np.float32)
    parts = views_of(search.image, place[:, 0], place[:, 1], side)
    for part, window, scores in zip(parts, search.windows.values, found, strict=True):
        # Less its mean, so that OpenCV tells a flat part by its own brightness, not by that of the image.
        cv2.matchTemplate(part - np.float32(cv2.mean(part)[0]), window, cv2.TM_CCOEFF_NORMED, scores)
    found[found == 0] = np.nan  # what it says where a part is flat
    return found


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


class _Windows:
    """Windows of one image as they are compared with another one."""

    def __init__(
        self, basis: Basis, images: list[Array], splines: Array, counts: Array | None, place: Numbers, size: int
    ) -> None:
        cut = [windows_of(each, place[:, 0], place[:, 1], (size, size)) for each in images]
        self.reference, self.changes = cut[0], basis.changes((cut[1], cut[2]))
        self._shifts, self._splines, self._place, self._size = basis.is_shift, splines, place, size
        self._shape = images[0].shape
        self._counts = None if counts is None else windows_of(counts, place[:, 0], place[:, 1], (size, size))

    def weight(self, motions: Matrix, items: Numbers) -> Array:
        """What counts in the first image and lies in the second."""
        xp, places = array_namespace(self.reference), self._places(motions, items)
        inside = [(each >= 0) & (each <= size - 1) for each, size in zip(places, self._shape, strict=True)]
        weight = inside[0] & inside[1]
        return (weight if self._counts is None else weight & self._counts[xp.asarray(items)]).astype(np.float32)

    def warped(self, motions: Matrix, items: Numbers) -> Array:
        """Windows of the second image."""
        xp = array_namespace(self.reference)
        if self._shifts:
            size = self._size, self._size
            return shifted_windows(self._splines, _ORDER, self._place[items] + _RIM, size, motions[:, :2, 2])
        places, ndimage = xp.stack(self._places(motions, items)) + _RIM, ndimage_of(xp)
        return ndimage.map_coordinates(self._splines[0], places, order=_ORDER, mode="nearest", prefilter=False)

    def _places(self, motions: Matrix, items: Numbers) -> list[Array]:
        """Rows and columns (n, h, w) in the second image; of windows that move as one (n, h, 1) and (n, 1, w)."""
        xp = array_namespace(self.reference)
        x = xp.arange(self._size) - (self._size - 1) / 2
        y, matrix = x[:, None], xp.asarray(motions[:, :2, :, None, None])
        middle = xp.asarray(self._place[items] + (self._size - 1) / 2)[:, :, None, None]
        if self._shifts:
            return [y + (matrix[:, 0, 2] + middle[:, 0]), x + (matrix[:, 1, 2] + middle[:, 1])]
        return [(matrix[:, i, 0] * y + (matrix[:, i, 2] + middle[:, i])) + matrix[:, i, 1] * x for i in (0, 1)]


def refine_windows(
    images: list[Array],
    place: Numbers,
    size: int,
    shift: Floats,
    slopes: Floats | None,
    counts: Array | None = None,
    *,
    moves: bool = True,
) -> Fits:
    """Refine the displacement (n, 2) of windows that begin at places (n, 2) of the first of two images.

    `slopes` (n, 2, 2) are of the displacement's components along rows and columns, to start from; None of windows that
    move as one. Pixels of the first image that do not count (Y, X), or that lie beyond the second at the start, take no
    part. Without `moves` standard errors are all that is found.
    """
    xp, basis = array_namespace(images[0]), BASES["translation" if slopes is None else "affine"]
    splines = coefficients(xp.asarray(images[1], np.float32)[None], _ORDER)
    splines = xp.pad(splines, [(0, 0), (_RIM, _RIM), (_RIM, _RIM)], mode="reflect")
    cut = [images[0], *slopes_of(images[0])]
    motion = translated(-shift)
    if slopes is not None:
        motion[:, :2, :2] += slopes

    def job(start: int, stop: int) -> Fits:
        view = _Windows(basis, cut, splines, counts, place[start:stop], size)
        solver = Solver(view, basis, _CONVERGED[basis.is_shift], FARTHEST, MIN_VISIBLE * size**2)
        return solver.fitted(motion[start:stop], _MAX_STEPS[basis.is_shift] if moves else 0)

    parts = Pass(len(shift), _AS_LARGE_AS * size**2, xp is not np).over("windows", job)
    return Fits(*(np.concatenate(each) for each in zip(*parts, strict=True)))
