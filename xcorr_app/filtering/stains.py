"""Optical density, and the colours of histological stains.

A stain absorbs: its amount is proportional to the optical density ``-log10(intensity / white)`` (Beer and Lambert), not
to the intensity. A stain's colour is a vector of three densities (red, green, blue); a pixel's densities are the sum of
its stains' vectors times their amounts, and the inverse of the matrix of vectors gives the amounts back.

Source: A. C. Ruifrok and D. A. Johnston, "Quantification of histochemical staining by color deconvolution", Analytical
and Quantitative Cytology and Histology 23 (2001) 291-299. The vectors below are those of the paper; measured ones of
your own slides, with one stain each, separate better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

DARKEST = 1e-6
"""Smallest fraction of white that is told from black: the density of black is 6, not infinite."""

_VECTORS = {"hematoxylin": (0.65, 0.70, 0.29), "eosin": (0.07, 0.99, 0.11), "DAB": (0.27, 0.57, 0.78)}
STAINS: dict[str, tuple[str, ...]] = {
    "he": ("hematoxylin", "eosin"),
    "hdab": ("hematoxylin", "DAB"),
    "hed": ("hematoxylin", "eosin", "DAB"),
}
"""Stains by the name of their combination."""


class StainMatrix(NamedTuple):
    """A matrix for `unmix`, and what its rows give."""

    matrix: np.ndarray
    """(3, 3) float64: from the densities of red, green and blue to the amounts of the stains."""
    names: tuple[str, str, str]
    """Of the rows; ``residual`` is what two stains cannot explain."""


def stain_matrix(name: str) -> StainMatrix:
    """Matrix that separates a named combination of stains.

    Each stain's vector is divided by its length, so that amounts have the unit of optical density. Two stains are
    completed by the vector at right angles to both, divided by its length: the amounts are then those of least squares,
    and the third row gives the residual. The inverse of the matrix with these vectors as columns is returned.

    Parameters
    ----------
    name : {"he", "hdab", "hed"}
        Hematoxylin with eosin, with DAB, or with both.

    Returns
    -------
    StainMatrix
        For ``unmix(rgb, matrix, from_log=True)``.

    Raises
    ------
    ArgumentError
        For an unknown name.

    Examples
    --------
    >>> stain_matrix("he").names
    ('hematoxylin', 'eosin', 'residual')
    >>> stain_matrix("hed").matrix.round(2)
    array([[ 1.87, -0.07, -0.6 ],
           [-1.01,  1.13, -0.48],
           [-0.56, -0.14,  1.58]])
    """
    if name not in STAINS:
        raise ArgumentError(f"unknown stains {name!r}: use one of {', '.join(STAINS)}, or give a matrix")
    vectors: list[np.ndarray] = [np.array(_VECTORS[stain]) for stain in STAINS[name]]
    names = STAINS[name]
    if len(vectors) == 2:
        vectors.append(np.cross(vectors[0], vectors[1]))
        names = (*names, "residual")
    columns = np.stack([vector / np.linalg.norm(vector) for vector in vectors], axis=1)
    return StainMatrix(np.linalg.inv(columns), (names[0], names[1], names[2]))


def optical_density(values: Array, white: float, dtype: np.dtype) -> Array:
    """Optical density ``-log10(max(values / white, 1e-6))``, without a unit.

    This is 6 times the quantity that ``skimage.color.separate_stains`` multiplies by its matrix.

    Examples
    --------
    >>> optical_density(np.array([255, 51, 0], np.uint8), 255, np.dtype("float64")).round(3) + 0
    array([0.   , 0.699, 6.   ])
    """
    xp = array_namespace(values)
    if np.dtype(values.dtype).name in ("uint8", "uint16"):
        levels = np.arange(np.iinfo(values.dtype).max + 1, dtype=np.float64)
        return xp.asarray(_density(levels, white), dtype=dtype)[values]
    return _density(values.astype(dtype, copy=False), white)


def _density(values: Array, white: float) -> Array:
    xp = array_namespace(values)
    return -xp.log10(xp.maximum(values / white, DARKEST))
