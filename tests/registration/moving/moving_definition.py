"""Moving a frame by its definition: dense float64 matrices; and random frames of every type."""

import numpy as np

from tests.pixels import pixels


def random_frame(shape, dtype, seed=0):
    """Smooth but uneven values over most of the type's range."""
    return pixels(np.random.default_rng(seed), shape, dtype, 30.0, 100.0)


def keys(u):
    u = abs(u)
    if u < 1:
        return 1.5 * u**3 - 2.5 * u**2 + 1
    return -0.5 * u**3 + 2.5 * u**2 - 4 * u + 2 if u < 2 else 0.0


def lanczos(u):
    return np.sinc(u) * np.sinc(u / 4) if abs(u) < 4 else 0.0


def axis_matrix(length, shift, order):
    """Row i holds the weights of the input samples in output sample i; and which rows lie inside."""
    shift = float(np.clip(shift, -length - 20, length + 20))
    if order == 0:
        shift = float(np.rint(shift))
    position = np.arange(length) - shift
    inside = (position >= -1e-3) & (position <= length - 1 + 1e-3)
    matrix = np.zeros((length, length))
    for i, p in enumerate(position):
        if order == "fourier":
            # The cosine series of the mirrored samples, evaluated at the position.
            if not inside[i]:
                p = min(max(p, 0.0), length - 1.0)
            k = np.arange(length)
            analysis = np.cos(np.pi * k[:, None] * (np.arange(length) + 0.5) / length)
            synthesis = np.cos(np.pi * k * (p + 0.5) / length) * np.where(k == 0, 1, 2) / length
            matrix[i] = synthesis @ analysis
            continue
        kernel = {0: lambda u: float(u == 0), 1: lambda u: max(0.0, 1 - abs(u)), 3: keys, "lanczos": lanczos}[order]
        neighbours = range(int(np.floor(p)) - 4, int(np.floor(p)) + 6)
        weights = np.array([kernel(p - j) for j in neighbours])
        for j, weight in zip(neighbours, weights / weights.sum(), strict=True):
            matrix[i, min(max(j, 0), length - 1)] += weight
    return matrix, inside


def by_definition(frame, shift, order, mode, cval):
    rows, rows_inside = axis_matrix(frame.shape[0], shift[0], order)
    columns, columns_inside = axis_matrix(frame.shape[1], shift[1], order)
    moved = rows @ frame.astype(np.float64) @ columns.T
    if mode == "constant":
        moved[~(rows_inside[:, None] & columns_inside[None, :])] = cval
    return moved
