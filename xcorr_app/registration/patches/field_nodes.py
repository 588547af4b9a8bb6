"""Nodes of a field in frames of one size: their splines at every pixel, and how much a field bends between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.warping.displacement import at_every_pixel, product
from xcorr_app.registration.warping.grid import pixel_bases

Floats = NDArray[np.float64]


class Nodes:
    """Nodes of a field in frames of one shape, and what depends on nothing else."""

    def __init__(self, rows: Floats, columns: Floats, shape: tuple[int, int], xp: Any) -> None:
        self.rows, self.columns, self.shape = rows, columns, shape
        self.count = rows.size * columns.size
        bases = pixel_bases(rows, columns, shape)
        self.bases = tuple(xp.asarray(basis, dtype=np.float32) for basis in bases)
        self.pairs = [
            xp.asarray((basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1), dtype=np.float32)
            for basis in bases
        ]
        hats = [_hats(nodes, size) for nodes, size in zip((rows, columns), shape, strict=True)]
        self.hats = tuple(xp.asarray(hat, dtype=np.float32) for hat in hats)
        self.differences = _differences(rows), _differences(columns)
        """First and second ones of values at the nodes, along rows and columns."""
        bending = _bending(*self.differences)
        self.bending: Floats = np.kron(np.eye(2), bending).astype(np.float64)
        """Quadratic form of both components."""
        self.bends = 2 * (self.count - 1 - int(rows.size > 1) - int(columns.size > 1))
        """In how many ways a field can bend: what is even or rises evenly does not."""
        # Rows and columns of pixels as two more splines: a product then gives places, not only displacements.
        ones, (y, x) = [np.ones((size, 1)) for size in shape], [np.arange(size)[:, None] for size in shape]
        first, second = ([y, ones[0]], [ones[1], x])
        self._of_places = tuple(
            xp.asarray(np.concatenate([basis, *more], axis=1), dtype=np.float32)
            for basis, more in zip(bases, (first, second), strict=True)
        )

    def halved(self, xp: Any) -> Nodes:
        """The same nodes in frames of half the size."""
        rows, columns = ((nodes - 0.5) / 2 for nodes in (self.rows, self.columns))
        return Nodes(rows, columns, (self.shape[0] // 2, self.shape[1] // 2), xp)

    def places(self, field: Floats, xp: Any) -> Array:
        """Where the field (2, gy, gx) leads from every pixel, (2, Y, X)."""
        values = np.zeros((2, field.shape[1] + 2, field.shape[2] + 2), np.float32)
        values[:, :-2, :-2] = field
        values[0, -2, -2] = values[1, -1, -1] = 1
        return at_every_pixel(xp.asarray(values), (self._of_places[0], self._of_places[1]))

    def sums(self, image: Array) -> Floats:
        """Sums (gy, gx) of an image times the spline of each node."""
        return np.asarray(to_host(product(product(self.bases[0].T, image), self.bases[1])), np.float64)


def _hats(nodes: Floats, size: int) -> Floats:
    """Linear splines (size, nodes)."""
    pixels = np.arange(size, dtype=np.float64)
    return np.stack([np.interp(pixels, nodes, row) for row in np.eye(nodes.size)], axis=1)


def _bending(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
    """Quadratic form (n, n) of the second differences of a field over its nodes, mixed ones twice."""
    identity = [np.eye(each[0].shape[1]) for each in (first, second)]
    energy = np.kron(first[1].T @ first[1], identity[1]) + np.kron(identity[0], second[1].T @ second[1])
    energy += 2 * np.kron(first[0].T @ first[0], second[0].T @ second[0])
    return np.asarray(energy, np.float64)


def _differences(nodes: Floats) -> tuple[Floats, Floats]:
    """Matrices of first and second differences of values at nodes, as of nodes at their mean distance."""
    count = nodes.size
    steps = np.diff(nodes)
    if count == 1:
        return np.zeros((0, 1)), np.zeros((0, 1))
    mean = steps.mean()
    slopes = np.diff(np.eye(count), axis=0) * (mean / steps)[:, None]
    if count == 2:
        return slopes, np.zeros((0, 2))
    return slopes, np.diff(slopes, axis=0) * (2 * mean / (steps[1:] + steps[:-1]))[:, None]
