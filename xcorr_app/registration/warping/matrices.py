"""Motions as 3 x 3 matrices: about a frame's middle or in pixel coordinates, made of angles and read as such."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def about_corner(motion: Matrix, shape: tuple[int, int]) -> Matrix:
    """Return a motion about the middle of a frame as one of pixel coordinates, counted from its first pixel."""
    middle = _to_middle(shape)
    return np.asarray(middle @ motion @ np.linalg.inv(middle))


def translated(shifts: NDArray[np.float64]) -> Matrix:
    """Return the motions (n, 3, 3) of frames that shifts (n, 2) put on the reference."""
    motions = np.tile(np.eye(3), (len(shifts), 1, 1))
    motions[:, :2, 2] = -shifts
    return motions


def about_middle(motion: Matrix, shape: tuple[int, int]) -> Matrix:
    """Undo `about_corner`."""
    middle = _to_middle(shape)
    return np.asarray(np.linalg.inv(middle) @ motion @ middle)


def turned(angle: float | NDArray[np.float64], scale: float | NDArray[np.float64] = 1.0) -> Matrix:
    """Return motions (..., 3, 3) that turn by angles (...) in radians, from rows towards columns, and scale."""
    cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
    found: Matrix = np.zeros((*np.shape(cosine), 3, 3))
    found[..., 0, 0] = found[..., 1, 1] = cosine
    found[..., 0, 1], found[..., 1, 0], found[..., 2, 2] = -sine, sine, 1.0
    return found


def angle_of(matrices: Matrix) -> NDArray[np.float64]:
    """Angles (T,) in degrees by which frames must be turned clockwise, as displayed, to land on the reference.

    Of an affine motion, that of the rotation nearest to it.
    """
    a = matrices[:, :2, :2]
    return np.asarray(np.degrees(np.arctan2(a[:, 1, 0] - a[:, 0, 1], a[:, 0, 0] + a[:, 1, 1])))


def scale_of(matrices: Matrix) -> NDArray[np.float64]:
    """Factors (T,) by which frames must be enlarged to land on the reference: the root of that of areas."""
    a = matrices[:, :2, :2]
    return np.asarray(1 / np.sqrt(np.abs(a[:, 0, 0] * a[:, 1, 1] - a[:, 0, 1] * a[:, 1, 0])))


def _to_middle(shape: tuple[int, int]) -> Matrix:
    middle = np.eye(3)
    middle[:2, 2] = (np.array(shape) - 1) / 2
    return middle
