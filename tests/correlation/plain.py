"""Correlation as plain as it can be written, independent of the package: what the tests compare with."""

import numpy as np


def windows_of(left, right, window, outside):
    """For every shift the part of an endless `left`, filled up by `outside`, that lies under `right`."""
    rows, columns = right.shape
    margin_y = max(abs(window.dy_min), abs(window.dy_max)) + rows
    margin_x = max(abs(window.dx_min), abs(window.dx_max)) + columns
    canvas = np.full((left.shape[0] + 2 * margin_y, left.shape[1] + 2 * margin_x), outside)
    canvas[margin_y : margin_y + left.shape[0], margin_x : margin_x + left.shape[1]] = left
    for i, dy in enumerate(range(window.dy_min, window.dy_max + 1)):
        for j, dx in enumerate(range(window.dx_min, window.dx_max + 1)):
            top, first = margin_y + dy, margin_x + dx
            yield i, j, canvas[top : top + rows, first : first + columns]


def sums(left, right, window):
    """Plain sums of one pair: `left` laid on a canvas of zeros, one product for every shift."""
    left, right = (np.asarray(matrix, dtype=np.float64) for matrix in (left, right))
    plane = np.zeros(window.shape)
    for i, j, part in windows_of(left, right, window, 0.0):
        plane[i, j] = (part * right).sum()
    return plane


def zncc(left, right, window, min_overlap=0.0):
    """Pearson's correlation of the pairs that overlap; NaN for too few pairs or a constant side."""
    left, right = (np.asarray(matrix, dtype=np.float64) for matrix in (left, right))
    largest = min(left.shape[0], right.shape[0]) * min(left.shape[1], right.shape[1])
    plane = np.full(window.shape, np.nan)
    for i, j, part in windows_of(left, right, window, np.nan):
        pairs = ~np.isnan(part)
        f, g = part[pairs], right[pairs]
        if f.size < max(1, min_overlap * largest) or (f == f[0]).all() or (g == g[0]).all():
            continue
        f, g = f - f.mean(), g - g.mean()
        plane[i, j] = (f @ g) / np.sqrt((f @ f) * (g @ g))
    return plane


def every_pair(left, right, form, of_pair):
    """Apply `of_pair` to each pair of matrices that a form makes, in the layout of its result."""
    if form == "one-to-one":
        return of_pair(left, right)
    if form == "one-to-many":
        return np.stack([of_pair(left, r) for r in right])
    if form == "n-to-mn":
        return np.stack([np.stack([of_pair(one, r) for r in rights]) for one, rights in zip(left, right, strict=True)])
    return np.stack([np.stack([of_pair(one, r) for r in right]) for one in left])


def operands(form, left_shape, right_shape, random):
    """Two operands of a form, three left and two right matrices where it takes several."""
    left = left_shape if form in ("one-to-one", "one-to-many") else (3, *left_shape)
    right = {"one-to-one": (), "one-to-many": (2,), "n-to-mn": (3, 2), "n-to-m": (2,)}[form]
    return random(left), random((*right, *right_shape))
