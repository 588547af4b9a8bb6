"""Is a contender's answer right? Two pairs of every case against float64 on the host, before anything is timed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.harness.contender import relative_error, to_host
from xcorr_app.gpu.direct.problem import Problem

TOLERANCE = 2e-3
"""Largest relative error of a plane, and how far below the best a peak may lie; sums of fp16 need it."""


class Expected:
    """What the first and the last pair of a case should give.

    Parameters
    ----------
    case : Case
        Any.
    data : Data
        Its matrices, on the device or on the host.

    Attributes
    ----------
    tolerance : float
        `TOLERANCE`.
    parts : list of int
        The pairs that are looked at.
    """

    tolerance = TOLERANCE

    def __init__(self, case: Case, data: Data) -> None:
        problem = case.problem
        self._case = case
        self.parts = sorted({0, problem.pairs - 1})
        self._planes = {
            pair: _plane(case, data.lefts[pair // problem.rights_per_left], data.rights[pair % problem.rights])
            for pair in self.parts
        }

    def error(self, pair: int, answer: Any) -> float:
        """Say how wrong an answer is.

        Parameters
        ----------
        pair : int
            One of `parts`, the pairs that are looked at.
        answer : ndarray or int
            The plane, or the flat index of the peak.

        Returns
        -------
        float
            Of a plane, the norm of the difference over that of the plane; of a peak, how far its value lies below the
            highest, in units of the plane's range.
        """
        plane = self._planes[pair]
        if self._case.task == "plane":
            return relative_error(answer, plane)
        return float((plane.max() - plane.flat[answer]) / np.ptp(plane))


def _plane(case: Case, left: Any, right: Any) -> NDArray[np.float64]:
    left, right = (to_host(matrix).astype(np.float64) for matrix in (left, right))
    return (_scores if case.task == "zncc-peak" else _sums)(case.problem, left, right)


def _scores(problem: Problem, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zero-mean normalised correlation; the sums over overlaps are correlations with ones."""
    f, g = left - left.mean(), right - right.mean()
    of_left, of_right = np.ones_like(f), np.ones_like(g)
    factors = ((of_left, of_right), (f, of_right), (of_left, g), (f * f, of_right), (of_left, g * g), (f, g))
    count, f_sum, g_sum, f_squares, g_squares, products = (_sums(problem, *pair) for pair in factors)
    variances = (f_squares - f_sum**2 / count) * (g_squares - g_sum**2 / count)
    scores: NDArray[np.float64] = (products - f_sum * g_sum / count) / np.sqrt(variances)
    return scores


def _sums(problem: Problem, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    (dy, dx), (rows, columns) = problem.first_shift, problem.plane_shape
    full = fftconvolve(left, right[::-1, ::-1])
    plane = np.zeros(problem.plane_shape)
    y, x = dy + right.shape[0] - 1, dx + right.shape[1] - 1
    inside = [
        (max(0, start), min(length, start + count))
        for start, length, count in zip((y, x), full.shape, (rows, columns), strict=True)
    ]
    (y0, y1), (x0, x1) = inside
    plane[y0 - y : y1 - y, x0 - x : x1 - x] = full[y0:y1, x0:x1]
    return plane
