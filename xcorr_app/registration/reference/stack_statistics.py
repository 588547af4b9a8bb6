"""Means of a whole stack, each frame of which is left out of the one that it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.measuring.one_pass import OnePass
from xcorr_app.registration.measuring.placement import Placement, coverage, covered_part, entering, fitted
from xcorr_app.registration.measuring.references import MeanOfOthers
from xcorr_app.registration.stack.preparation import prepare

_Sum: TypeAlias = tuple[tuple[Placement, ...], Array, Array]
"""Where frames are placed, range by range, the sum of what they add (h, w), and that of their weights."""
_IN_ONE_THREAD = 1 << 18
"""Multiplications of a product of matrices that OpenBLAS does not divide among threads."""


def mean_of_others(of: OnePass) -> MeanOfOthers:
    """Sum of the usable frames, each of zero mean and unit deviation, ready to leave some out."""

    def job(start: int, stop: int) -> _Sum:
        prepared = prepare(of.frames.read(start, stop), of.settings)
        placement = Placement.in_place(prepared.frames, prepared.usable)
        return (placement,), *_sums(entering(prepared.frames, placement), placement)

    return _summed(of, "mean", job)


def aligned_mean_of_others(
    of: OnePass, shifts: NDArray[np.float64], takes_part: NDArray[np.bool_], target: Array, known: Array
) -> MeanOfOthers:
    """Sum of the frames that take part, moved and brought to the level of an image (h, w) where it is `known`."""

    def job(start: int, stop: int) -> _Sum:
        frames = prepare(of.frames.read(start, stop), of.settings).frames
        nothing = np.zeros(stop - start)
        everything = Placement(np.zeros((stop - start, 2)), nothing + 1, nothing, nothing.copy())
        rows = np.flatnonzero(takes_part[start:stop])
        if rows.size == 0:
            return (everything,), 0.0, 0.0
        placement, values = fitted(frames[of.xp.asarray(rows)], shifts[start:stop][rows], target, known)
        everything.put(rows, placement)
        return (everything,), *_sums(values, placement)

    summed = _summed(of, "template", job)
    least = (of.window.dy_max + 1, of.window.dx_max + 1)
    # Where the frame measured and those it shares something with are left out, one is left.
    return replace(summed, part=covered_part(summed.placement, of.shape, 2 * of.settings.apart + 2, least))


def _summed(of: OnePass, stage: str, job: Callable[[int, int], _Sum]) -> MeanOfOthers:
    placements, total, weights = reduce(_added, of.walk.over(stage, job))
    nothing = of.xp.zeros(of.shape)
    return MeanOfOthers(total + nothing, weights + nothing, Placement.joined(placements), of.frames, of.settings)


def _added(one: _Sum, other: _Sum) -> _Sum:
    """Of frames and of those that follow them."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _sums(values: Array, placement: Placement) -> tuple[Array, Array]:
    """Sum of what frames add (n, h, w) and of their weights, float64."""
    xp = array_namespace(values)
    rows, columns = coverage(placement, values.shape[1:], xp)
    return values.sum(axis=0, dtype=np.float64), _weights(rows, columns)


def _weights(rows: Array, columns: Array) -> Array:
    """Sum over frames (h, w) of the weights of their rows (n, h) times those of their columns (n, w).

    On a host by parts, each of which BLAS leaves to one thread: the others are busy with other frames.
    """
    xp, count = array_namespace(rows), max(rows.shape[0] * columns.shape[1], 1)
    if xp is not np:
        return rows.T @ columns
    step = max(1, _IN_ONE_THREAD // count)
    return np.concatenate([rows.T[first : first + step] @ columns for first in range(0, rows.shape[1], step)])
