"""Windows refined by the solver, and their standard errors: the last step of a field.

A parabola or Gaussian through three values of a plane of whole shifts draws fine textures to whole pixels; this asks
the pixels themselves. The second image is interpolated by quintic splines, whose error on fine speckle is a thousandth
of a pixel; of windows that move as one it is sampled along rows and columns apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.solver.basis import BASES, Basis, slopes_of
from xcorr_app.registration.solver.gauss_newton import FARTHEST, Fits, Solver
from xcorr_app.registration.solver.sampling import Numbers, coefficients, shifted_windows, windows_of
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.warping.matrices import Matrix
from xcorr_app.registration.warping.ndimage import ndimage_of

Floats = NDArray[np.float64]

_MAX_STEPS, _CONVERGED = {True: 12, False: 25}, {True: 2e-3, False: 2e-4}
"""Of windows that move as one, and that are strained: some tenth of what noise leaves at best."""
_AS_LARGE_AS = 2
"""Windows are refined in as much memory as so many times their pixels are correlated in."""
MIN_SEEN = 0.5
"""Share of a window that must not be masked, and be seen in both images."""
_ORDER, _RIM = 5, 12
"""Of the splines, and pixels beyond the edge for which they are continued."""


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

    def seen(self, motions: Matrix, items: Numbers) -> Array:
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
    motion = np.tile(np.eye(3), (len(shift), 1, 1))
    motion[:, :2, 2] = shift
    if slopes is not None:
        motion[:, :2, :2] += slopes

    def job(start: int, stop: int) -> Fits:
        view = _Windows(basis, cut, splines, counts, place[start:stop], size)
        solver = Solver(view, basis, _CONVERGED[basis.is_shift], FARTHEST, MIN_SEEN * size**2)
        return solver.fitted(motion[start:stop], _MAX_STEPS[basis.is_shift] if moves else 0)

    parts = Pass(len(shift), _AS_LARGE_AS * size**2, xp is not np).over("windows", job)
    return Fits(*(np.concatenate(each) for each in zip(*parts, strict=True)))
