"""The definition of the plane in float64, one shift at a time: what every kernel is compared with."""

from __future__ import annotations

import numpy as np


def plane_by_definition(left, right, first_shift, plane_shape):
    """C[iy, ix] = sum over y, x of left[y + dy, x + dx] * right[y, x], terms outside a matrix being zero."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    plane = np.zeros(plane_shape)
    for iy, ix in np.ndindex(*plane_shape):
        dy, dx = first_shift[0] + iy, first_shift[1] + ix
        y0, y1 = max(0, -dy), min(right.shape[0], left.shape[0] - dy)
        x0, x1 = max(0, -dx), min(right.shape[1], left.shape[1] - dx)
        if y1 > y0 and x1 > x0:
            plane[iy, ix] = np.sum(left[y0 + dy : y1 + dy, x0 + dx : x1 + dx] * right[y0:y1, x0:x1])
    return plane


def planes_by_definition(lefts, rights, problem):
    """All pairs of a batch: pair p takes left p // rights_per_left and right p % rights."""
    return np.stack(
        [
            plane_by_definition(
                lefts[pair // problem.rights_per_left],
                rights[pair % problem.rights],
                problem.first_shift,
                problem.plane_shape,
            )
            for pair in range(problem.pairs)
        ]
    )
