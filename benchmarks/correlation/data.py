"""Random matrices of a case, on the device or on the host: never zeros, and with a peak where one is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.correlation.cases import Case

_SHIFTS = ((2, -3), (0, 1), (-4, 0), (3, 4), (-1, -2))
"""Displacements (dy, dx) of neighbouring pairs, cut to half the window."""
_NOISE = 0.3
_OFFSET = 3.0  # images are not of zero mean
_UINT16 = (500.0, 2000.0)  # scale and offset of counts


@dataclass(frozen=True)
class Data:
    """Matrices of a case.

    Attributes
    ----------
    lefts, rights : ndarray
        (lefts, H, W) and (rights, H', W') of the case's types.
    """

    lefts: Any
    rights: Any


def random_data(case: Case, xp: Any, seed: int = 1) -> Data:
    """Make the matrices of a case.

    Parameters
    ----------
    case : Case
        Whose sizes and types are wanted.
    xp : module
        numpy or cupy.
    seed : int, optional
        Of the random numbers.

    Returns
    -------
    Data
        For planes, independent matrices in [0, 1). Where a peak is searched, the matrices of a pair show one
        scene displaced by a few pixels, with noise; a reference that frames are compared with has zero mean.
    """
    rng = xp.random.default_rng(seed)
    problem = case.problem
    if case.task == "plane":
        lefts = rng.random((problem.lefts, *problem.left_shape), dtype=np.float32)
        rights = rng.random((problem.rights, *problem.right_shape), dtype=np.float32)
        return Data(lefts.astype(case.left_type, copy=False), rights.astype(case.right_type, copy=False))
    lefts = rng.standard_normal((problem.lefts, *problem.left_shape), dtype=np.float32)
    rights = _NOISE * rng.standard_normal((problem.rights, *problem.right_shape), dtype=np.float32)
    lefts -= lefts.mean(axis=(1, 2), keepdims=True)
    for k, shift in enumerate(_SHIFTS):
        displacement = tuple(-_within(case, axis, shift[axis]) for axis in (0, 1))
        chosen = lefts if problem.lefts == 1 else lefts[k :: len(_SHIFTS)]
        rights[k :: len(_SHIFTS)] += xp.roll(chosen, displacement, axis=(1, 2))
    if case.right_type == "uint16":
        rights = rights * np.float32(_UINT16[0]) + np.float32(_UINT16[1])
        return Data(lefts, rights.astype(np.uint16))
    return Data(lefts, rights + np.float32(_OFFSET) if case.task == "zncc-peak" else rights)


def _within(case: Case, axis: int, shift: int) -> int:
    """Cut a displacement to half of what the window reaches."""
    first, count = case.problem.first_shift[axis], case.problem.plane_shape[axis]
    return max(-((-first) // 2), min(shift, (first + count - 1) // 2))
