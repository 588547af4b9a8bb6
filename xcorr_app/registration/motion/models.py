"""What a frame may do against the reference, each model a few numbers: the one table of them.

A motion is a 3 x 3 matrix of homogeneous coordinates (row, column, 1) about the middle of the frame; it maps a place
of the reference to the place in the frame that shows the same. Small motions are linear in the model's numbers, so
that Gauss-Newton needs only where each of them moves a pixel at first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.warping.matrices import Matrix, turned


@dataclass(frozen=True)
class Model:
    """One kind of motion.

    Attributes
    ----------
    name : str
        By which a user asks for it.
    turns, scales : bool
        Whether frames may turn and change their size, which is looked for over the whole range before refining.
    slopes : callable
        From the slopes of the reference along rows and columns and the coordinates (Y, X) of pixels about the middle,
        the first-order change of the reference for each number of the model; the two of the translation come first.
    step : callable
        The motions (..., 3, 3) for small values (..., k) of these numbers.
    """

    name: str
    turns: bool
    scales: bool
    slopes: Callable[[Array, Array, Array, Array], list[Array]]
    step: Callable[[NDArray[np.float64]], Matrix]


def _translation_step(p: NDArray[np.float64]) -> Matrix:
    return _moved(np.zeros(p.shape[:-1]), 1.0, p)


def _rigid_step(p: NDArray[np.float64]) -> Matrix:
    return _moved(p[..., 2], 1.0, p)


def _similarity_step(p: NDArray[np.float64]) -> Matrix:
    return _moved(p[..., 2], np.exp(p[..., 3]), p)


def _affine_step(p: NDArray[np.float64]) -> Matrix:
    found = _moved(np.zeros(p.shape[:-1]), 1.0, p)
    found[..., :2, :2] += p[..., 2:6].reshape(*p.shape[:-1], 2, 2)
    return found


def _moved(angle: NDArray[np.float64], scale: NDArray[np.float64] | float, p: NDArray[np.float64]) -> Matrix:
    """Turned first, then shifted by the first two numbers."""
    found = turned(angle, scale)
    found[..., :2, 2] = p[..., :2]
    return found


def _shift(gy: Array, gx: Array, _y: Array, _x: Array) -> list[Array]:
    return [gy, gx]


def _shift_turn(gy: Array, gx: Array, y: Array, x: Array) -> list[Array]:
    return [gy, gx, y * gx - x * gy]


def _shift_turn_scale(gy: Array, gx: Array, y: Array, x: Array) -> list[Array]:
    return [gy, gx, y * gx - x * gy, y * gy + x * gx]


def _linear(gy: Array, gx: Array, y: Array, x: Array) -> list[Array]:
    return [gy, gx, y * gy, x * gy, y * gx, x * gx]


MODELS: dict[str, Model] = {
    "translation": Model("translation", turns=False, scales=False, slopes=_shift, step=_translation_step),
    "rigid": Model("rigid", turns=True, scales=False, slopes=_shift_turn, step=_rigid_step),
    "similarity": Model("similarity", turns=True, scales=True, slopes=_shift_turn_scale, step=_similarity_step),
    "affine": Model("affine", turns=True, scales=True, slopes=_linear, step=_affine_step),
}
"""Every model by its name."""


PATCHES = "patches"
"""Name of the motion that is a shift for each place of the frame: see :mod:`xcorr_app.registration.patches.patches`."""


def model_of(name: str) -> Model:
    """Return the model of that name; raises ArgumentError for any other."""
    if name not in MODELS:
        raise ArgumentError(f"unknown model of motion {name!r}: use one of {', '.join(MODELS)}, {PATCHES}")
    return MODELS[name]


def is_more_than_a_shift(name: str) -> bool:
    """Whether frames may do more than move as one; raises ArgumentError for names that are none."""
    return name == PATCHES or model_of(name).turns
