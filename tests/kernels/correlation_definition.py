"""Planes and their peaks by definition, in float64, shift by shift: what every kernel is compared with."""

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


def scores_by_definition(left, right, problem, normalize, min_overlap_pixels):
    """Scores of one pair, NaN where a shift does not count."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    scores = np.full(problem.plane_shape, np.nan)
    for iy, ix in np.ndindex(*problem.plane_shape):
        dy, dx = problem.first_shift[0] + iy, problem.first_shift[1] + ix
        rows = [y for y in range(right.shape[0]) if 0 <= y + dy < left.shape[0]]
        columns = [x for x in range(right.shape[1]) if 0 <= x + dx < left.shape[1]]
        if len(rows) * len(columns) < max(1, min_overlap_pixels):
            continue
        f = left[rows[0] + dy : rows[-1] + dy + 1, columns[0] + dx : columns[-1] + dx + 1]
        g = right[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        if not normalize:
            scores[iy, ix] = (f * g).sum()
            continue
        f, g = f - f.mean(), g - g.mean()
        if (f * f).sum() > 1e-4 * ((left - left.mean()) ** 2).sum() and (g * g).sum() > 1e-4 * (
            (right - right.mean()) ** 2
        ).sum():
            scores[iy, ix] = (f * g).sum() / np.sqrt((f * f).sum() * (g * g).sum())
    return scores


def record_by_definition(scores):
    """Row, column, value, rival and the values around the peak of one plane of scores."""
    height, width = scores.shape
    filled = np.where(np.isnan(scores), -np.inf, scores)
    row, column = np.unravel_index(filled.argmax(), scores.shape)
    rival = -np.inf
    for y, x in np.ndindex(height, width):
        if (height > 1 and y in (0, height - 1)) or (width > 1 and x in (0, width - 1)):
            continue
        neighbours = filled[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2]
        if max(abs(y - row), abs(x - column)) >= 3 and filled[y, x] == neighbours.max():
            rival = max(rival, filled[y, x])
    around = np.full((5, 5), np.nan)
    for i, j in np.ndindex(5, 5):
        y, x = row + i - 2, column + j - 2
        if 0 <= y < height and 0 <= x < width:
            around[i, j] = scores[y, x]
    if np.isnan(scores).all():
        return np.concatenate([[0, 0, np.nan, -np.inf], np.full(25, np.nan)])
    return np.concatenate([[row, column, scores[row, column], rival], around.ravel()])


def records_by_definition(lefts, rights, problem, normalize, min_overlap_pixels):
    """Records of every pair, (pairs, 29)."""
    records = []
    for pair in range(problem.pairs):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        records.append(record_by_definition(scores_by_definition(left, right, problem, normalize, min_overlap_pixels)))
    return np.stack(records)


def pairs_with_a_peak(problem, dtype="float32", seed=5):
    """Random matrices of which every right is a displaced part of its left, on top of noise, so that peaks show."""
    rng = np.random.default_rng(seed)
    (left_h, left_w), (right_h, right_w) = problem.left_shape, problem.right_shape
    lefts = rng.normal(size=(problem.lefts, left_h, left_w))
    rights = rng.normal(size=(problem.rights, right_h, right_w))
    for pair in range(problem.pairs):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        dy, dx = (
            rng.integers(first, first + count)
            for first, count in zip(problem.first_shift, problem.plane_shape, strict=True)
        )
        for y, x in np.ndindex(right_h, right_w):
            if 0 <= y + dy < left_h and 0 <= x + dx < left_w:
                right[y, x] = left[y + dy, x + dx] + 0.2 * right[y, x]
    lefts -= lefts.mean(axis=(1, 2), keepdims=True)
    if dtype == "float32":
        return lefts.astype(dtype), rights.astype(dtype)
    offset = 0 if dtype == "int16" else 120
    return lefts.astype("float32"), np.clip(np.rint(rights * 25 + offset), np.iinfo(dtype).min, 255).astype(dtype)
