"""Spectra as they are measured, and the matrix that separates them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError

_SINGULAR = 1e8
"""Condition number from which spectra of some digits count as the same."""


def inverted_spectra(spectra: NDArray[Any]) -> NDArray[np.float64]:
    """Return the matrix that separates dyes by least squares: the pseudo-inverse of their spectra.

    Parameters
    ----------
    spectra
        (channels, dyes): what each channel shows of one unit of each dye.

    Raises
    ------
    ArgumentError
        If there are more dyes than channels, numbers that are not finite, or spectra that no mixture tells apart.
    """
    channels, dyes = spectra.shape
    if dyes > channels:
        raise ArgumentError(
            f"has {channels} rows and {dyes} columns: {dyes} dyes cannot be separated by {channels} channels; give one "
            "row per channel and one column per dye (transpose it if it is the other way round)"
        )
    if not np.isfinite(spectra).all():
        raise ArgumentError("holds NaN or infinity; spectra are finite numbers")
    condition = condition_number(spectra)
    if condition > _SINGULAR:
        raise ArgumentError(
            f"these spectra cannot be told apart (condition number {condition:.2g}): one is zero, or mixes others"
        )
    return np.linalg.pinv(np.asarray(spectra, np.float64))


def condition_number(spectra: NDArray[Any]) -> float:
    """How much relative errors can grow when dyes are separated; 1 where spectra do not overlap.

    Each spectrum, a column, is scaled to length one first, since the brightness of a dye is arbitrary.
    """
    lengths = np.linalg.norm(spectra, axis=0)
    return float(np.linalg.cond(spectra / lengths)) if np.all(lengths > 0) else np.inf
