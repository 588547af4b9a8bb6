"""What may move and how: the bases of motion, each a few numbers, of small changes of which everything is linear.

A linear motion is a 3 x 3 matrix of homogeneous coordinates (row, column, 1) about the middle of a frame or window; it
maps a place of the reference to the place in the frame that shows the same. A smooth field is a cubic spline through
values at the nodes of a grid, :mod:`xcorr_app.registration.solver.smooth_field`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.warping.device_warp import ndimage_of
from xcorr_app.registration.warping.matrices import Matrix, turned

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Basis:
    """One kind of linear motion.

    Attributes
    ----------
    name : str
        By which a user asks for it.
    turns, scales : bool
        Whether frames may turn and change their size, which is looked for over the whole range before refining.
    numbers : tuple
        Each number of the motion as a mixture of six changes of the reference g, whose slopes are g_y and g_x:
        ``g_y, g_x, y g_y, x g_y, y g_x, x g_x``.
    """

    name: str
    turns: bool
    scales: bool
    numbers: tuple[tuple[int, ...], ...]

    @property
    def is_shift(self) -> bool:
        """Whether nothing but the place changes."""
        return not self.turns

    def step(self, values: Floats) -> Matrix:
        """The motions (..., 3, 3) for small values (..., k) of the numbers, in pixels and radians."""
        changes = values @ np.array(self.numbers, np.float64)
        found: Matrix = np.zeros((*values.shape[:-1], 3, 3))
        found[:] = np.eye(3)
        if self.name == "affine":
            found[..., :2, :2] += changes[..., 2:].reshape(*values.shape[:-1], 2, 2)
        elif self.turns:
            found[:] = turned(changes[..., 4], np.exp(changes[..., 2]))
        found[..., :2, 2] = changes[..., :2]
        return found

    def changes(self, slopes: tuple[Array, Array]) -> Array:
        """First-order changes (n, k, h w) of images whose slopes (n, h, w) are given, places counted in half sides."""
        xp, shape = array_namespace(slopes[0]), slopes[0].shape[1:]
        y, x = (xp.asarray(((np.arange(n) - (n - 1) / 2) * 2 / max(shape)).astype(np.float32)) for n in shape)
        found = xp.zeros((len(slopes[0]), len(self.numbers), *shape), np.float32)
        for number, change in zip(self.numbers, found.swapaxes(0, 1), strict=True):
            for factor, slope, place in zip(
                number, (0, 1, 0, 0, 1, 1), (1, 1, y[:, None], x, y[:, None], x), strict=True
            ):
                if factor:
                    change += slopes[slope] * (factor * place)
        return found.reshape(*found.shape[:2], -1)

    def corners(self, shape: tuple[int, int]) -> Floats:
        """By how much the numbers move each corner of a frame along rows, and along columns: (8, k)."""
        matrix = np.array(self.numbers, np.float64)
        found = []
        for y, x in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)):
            place = (1.0, y * shape[0], x * shape[1])
            found += [matrix[:, [0, 2, 3]] @ place, matrix[:, [1, 4, 5]] @ place]
        return np.array(found)


_SHIFT, _TURN, _SCALE = np.eye(6, dtype=int)[:2].tolist(), [0, 0, 0, -1, 1, 0], [0, 0, 1, 0, 0, 1]


def _numbers(*rows: list[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, rows))


BASES: dict[str, Basis] = {
    "translation": Basis("translation", turns=False, scales=False, numbers=_numbers(*_SHIFT)),
    "rigid": Basis("rigid", turns=True, scales=False, numbers=_numbers(*_SHIFT, _TURN)),
    "similarity": Basis("similarity", turns=True, scales=True, numbers=_numbers(*_SHIFT, _TURN, _SCALE)),
    "affine": Basis("affine", turns=True, scales=True, numbers=_numbers(*np.eye(6, dtype=int).tolist())),
}
"""Every linear motion by its name."""
PATCHES = "patches"
"""Name of the motion that is a shift for each place of the frame: see :mod:`xcorr_app.registration.patches.patches`."""


def basis_of(name: str) -> Basis:
    """Return the basis of that name; raises ArgumentError for any other."""
    if name not in BASES:
        raise ArgumentError(f"unknown model of motion {name!r}: use one of {', '.join(BASES)}, {PATCHES}")
    return BASES[name]


def is_more_than_a_shift(name: str) -> bool:
    """Whether frames may do more than move as one; raises ArgumentError for names that are none."""
    return name == PATCHES or basis_of(name).turns


def slopes_of(images: Array) -> tuple[Array, Array]:
    """Slopes of images (..., h, w) along rows and columns."""
    xp = array_namespace(images)
    taps = xp.asarray(np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12, dtype=images.dtype)
    down, across = (ndimage_of(xp).correlate1d(images, taps, axis=axis, mode="mirror") for axis in (-2, -1))
    return down, across


def corner_moves(change: Matrix, shape: tuple[int, int]) -> Floats:
    """Pixels (...), along an axis, by which the corner that a change (..., 3, 3) moves most is moved."""
    corners = np.array([[y, x, 1.0] for y in (-0.5, 0.5) for x in (-0.5, 0.5)]) * [*shape, 1.0]
    return np.asarray(np.abs(change[..., :2, :] @ corners.T).max(axis=(-1, -2)), np.float64)
