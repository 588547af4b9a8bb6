"""Errors of shifts of frames that were averaged in time, whose scene moved meanwhile.

Averages lie at the mean place of their frames, which is not that of the frame in their middle. Of the path p only its
means s over 2 h + 1 frames are seen. What averaging pulls them by is taken from the same average of s, and what they do
not show from how s bends: of a path of independent steps of variance v the second differences of s have the variance
2 v / (2 h + 1)^2, those of white errors of s 4 / (2 h + 1) of their variance, and p is off by v h (h + 1) / (6 h + 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d


def blur(
    shifts: NDArray[np.float64], sigma: NDArray[np.float64], trusted: NDArray[np.bool_], number: int | None, reach: int
) -> NDArray[np.float64]:
    """Pixels (T, 2) by which frames are off that were averaged over `reach` others on both sides, as is the reference.

    Zero of the reference, where it is the frame of a `number`. The path leads on straight over frames not `trusted`.
    """
    places, known = np.arange(len(shifts)), np.flatnonzero(trusted)
    if reach == 0 or known.size == 0:
        return np.zeros_like(shifts)
    path, own = (np.stack([np.interp(places, known, of[known]) for of in each.T], axis=1) for each in (shifts, sigma))
    length = 2 * reach + 1
    covered = uniform_filter1d(np.ones((len(path), 1)), length, axis=0, mode="constant")

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(uniform_filter1d(values, length, axis=0, mode="constant") / covered)

    bends = np.pad(np.diff(path, 2, axis=0) ** 2, ((1, 1), (0, 0)))[: len(path)] - 4 / length * own**2
    unseen = np.maximum(mean(mean(bends)), 0.0) * length * reach * (reach + 1) / 6
    pull = mean(path) - path
    if number is not None:
        pull, unseen = pull - pull[number], (unseen + unseen[number]) * (places != number)[:, None]
    return np.asarray(np.sqrt(np.maximum(pull**2 - own**2, 0.0) + unseen))
