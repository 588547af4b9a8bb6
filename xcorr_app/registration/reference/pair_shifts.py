"""Shifts of all frames from displacements between pairs of them, by robust least squares.

A pair (i, j) says ``s_i - s_j = d_ij``. There are more pairs than frames, so they contradict each other where one is
wrong, and the solution with the least absolute residuals leaves that one aside; Tukey's biweight then makes the most of
those that agree (iteratively reweighted least squares: Holland and Welsch 1977, doi 10.1080/03610927708827533). The
pairs reach only a few frames, so the normal equations are banded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

_ROUNDS, _CONVERGED = 30, 1e-5
"""Of either kind of weights at most, and the pixels that shifts change by in the last."""
_MIN_RESIDUAL = 1e-3
"""Pixels below which residuals are what sub-pixel interpolation leaves."""
_BIWEIGHT = 4.685
"""Residuals over their deviation from which a pair has no say; 95 % efficient on normal errors (Holland and Welsch)."""
_BRIDGE = 1e-6
"""Weight, as a share of the others, of pairs that only join what nothing else joins."""
_HOLD = 1e-9
"""The same of what holds a frame in place that no pair reaches."""
_MIN_BLOCK = 64
"""Columns of the inverse that are computed, and forgotten, at a time."""


@dataclass(frozen=True)
class PairSolution:
    """Shifts and what the pairs say of them."""

    shifts: NDArray[np.float64]
    """(T, 2), zero for the frame held in place."""
    residuals: NDArray[np.float64]
    """(P,) pixels by which each pair contradicts the shifts."""
    variance: NDArray[np.float64]
    """(T,) of the shifts along each axis that the residuals account for."""
    scatter: float
    """Standard deviation of what pairs contradict each other by, pixels along an axis."""


def solve_pairs(
    later: NDArray[np.intp],
    earlier: NDArray[np.intp],
    displacements: NDArray[np.float64],
    weights: NDArray[np.float64],
    sound: NDArray[np.bool_],
    count: int,
    held: int,
) -> PairSolution:
    """Fit shifts (count, 2) to displacements (P, 2) of pairs, `later` less `earlier`, with these weights (P,).

    Pairs that are not `sound` (P,) only join what no sound pair joins. The frame `held` has shift zero; one that no
    pair reaches stays where its predecessor is.
    """
    reach = int((later - earlier).max(initial=1))
    mean_weight = float(np.mean(weights[sound])) if sound.any() else 1.0
    weights = np.where(sound, weights, _BRIDGE * mean_weight)
    shifts, band = _fit(later, earlier, displacements, weights, count, held, reach)
    scatter, freedom = _MIN_RESIDUAL, _redundancy(later[sound], earlier[sound])
    for end in ("absolute", "biweight"):
        for _ in range(_ROUNDS):
            residuals = np.hypot(*(displacements - shifts[later] + shifts[earlier]).T)
            if end == "absolute":
                factor = _MIN_RESIDUAL / np.maximum(residuals, _MIN_RESIDUAL)
            else:
                # The median length of a normal vector is 1.1774 deviations along an axis; a fit takes up the rest.
                typical = float(np.median(residuals[sound])) if sound.any() else 0.0
                scatter = max(typical / 1.1774 / np.sqrt(freedom), _MIN_RESIDUAL)
                factor = np.maximum(1 - (residuals / (_BIWEIGHT * scatter)) ** 2, 0.0) ** 2
            new, band = _fit(later, earlier, displacements, weights * np.where(sound, factor, 1.0), count, held, reach)
            change = np.abs(new - shifts).max(initial=0.0)
            shifts = new
            if change < _CONVERGED:
                break
    residuals = np.hypot(*(displacements - shifts[later] + shifts[earlier]).T)
    inverse = _inverse_diagonal(band)
    # What holds the frame held in place moves all alike.
    variance = np.maximum(inverse - inverse[held], 0.0) * mean_weight * scatter**2
    return PairSolution(shifts, residuals, variance, scatter)


def _redundancy(later: NDArray[np.intp], earlier: NDArray[np.intp]) -> float:
    """Share of the pairs that is not needed to place the frames, above zero."""
    reached = np.unique(np.concatenate([later, earlier])).size
    return max(1 - (reached - 1) / max(later.size, 1), 1e-3) if reached else 1.0


def _fit(
    later: NDArray[np.intp],
    earlier: NDArray[np.intp],
    displacements: NDArray[np.float64],
    weights: NDArray[np.float64],
    count: int,
    held: int,
    reach: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted least squares (count, 2); also the lower Cholesky factor in band form (reach + 1, count)."""
    band = np.zeros((reach + 1, count))
    np.add.at(band[0], later, weights)
    np.add.at(band[0], earlier, weights)
    np.add.at(band, (later - earlier, earlier), -weights)
    right = np.zeros((count, 2))
    np.add.at(right, later, weights[:, None] * displacements)
    np.add.at(right, earlier, -weights[:, None] * displacements)
    # What no pair reaches follows its predecessor.
    largest = max(float(band[0].max(initial=0.0)), 1.0)
    if count > 1:
        band[0, 1:] += _HOLD * largest
        band[0, :-1] += _HOLD * largest
        band[1, :-1] -= _HOLD * largest
    band[0, held] += largest
    factor = scipy.linalg.cholesky_banded(band, lower=True)
    shifts: NDArray[np.float64] = scipy.linalg.cho_solve_banded((factor, True), right)
    return shifts - shifts[held], factor


def _inverse_diagonal(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Diagonal (n,) of the inverse of a matrix from its lower Cholesky factor in band form (b + 1, n).

    From the last block on: that of the inverse follows from the factor's block, what stands below it, and the block of
    the inverse after it (Takahashi, Fagan and Chen 1973), so that the work grows as n.
    """
    reach, count = len(factor) - 1, factor.shape[1]
    size = max(reach, _MIN_BLOCK)
    diagonal, inverse = np.empty(count), np.zeros((0, 0))
    for first in reversed(range(0, count, size)):
        columns = np.arange(first, min(first + size, count))
        depth = np.arange(first, min(first + size + reach, count))[:, None] - columns
        block = np.where((depth >= 0) & (depth <= reach), factor[np.clip(depth, 0, reach), columns], 0.0)
        root = scipy.linalg.solve_triangular(block[: columns.size], np.eye(columns.size), lower=True)
        below = block[columns.size :] @ root
        inverse = root.T @ root + below.T @ inverse[: len(below), : len(below)] @ below
        diagonal[columns] = inverse.diagonal()
    return diagonal
