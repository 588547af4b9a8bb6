"""Grids of square windows on a frame, and the smooth surface through values at their middles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LOCAL = 4
"""Cubic B-splines that are not zero at a place."""


@dataclass(frozen=True)
class Axis:
    """Windows along one axis: `count` of `window` pixels spread evenly from edge to edge of `size`."""

    size: int
    window: int
    count: int

    @classmethod
    def of(cls, size: int, window: int, step: float) -> Axis:
        """As many windows as lie at most `step` apart; a single one in a frame of its size."""
        return cls(size, window, 1 + int(np.ceil((size - window) / step - 1e-9)))

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """First pixel of each window."""
        return np.rint(np.linspace(0, self.size - self.window, self.count)).astype(np.intp)

    @cached_property
    def middles(self) -> Floats:
        """Middle of each window, in pixels from the first."""
        return self.firsts.astype(np.float64) + (self.window - 1) / 2


@dataclass(frozen=True)
class Grid:
    """Windows along rows and columns of a frame."""

    rows: Axis
    columns: Axis

    @classmethod
    def of(cls, shape: tuple[int, int], window: int, step: float) -> Grid:
        """Square windows of a frame, at most `step` pixels apart."""
        return cls(*(Axis.of(size, window, step) for size in shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Windows along rows and columns."""
        return self.rows.count, self.columns.count

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """First row and column (n, 2) of every window."""
        return np.stack(np.meshgrid(self.rows.firsts, self.columns.firsts, indexing="ij"), axis=2).reshape(-1, 2)

    @cached_property
    def middles(self) -> Floats:
        """Middle (n, 2) of every window."""
        return np.stack(np.meshgrid(self.rows.middles, self.columns.middles, indexing="ij"), axis=2).reshape(-1, 2)


def spline_basis(nodes: Floats, places: Floats) -> Floats:
    """Matrix (places, nodes) from values at nodes to the cubic spline through them, of less order for fewer than 4."""
    from scipy.interpolate import make_interp_spline

    if nodes.size == 1:
        return np.ones((places.size, 1))
    degree = min(3, nodes.size - 1)
    return np.asarray(make_interp_spline(nodes, np.eye(nodes.size), k=degree)(places))


def local_splines(nodes: Floats, size: int) -> tuple[Floats, NDArray[np.int32], NDArray[np.float32]]:
    """The same splines by what is not zero: to coefficients (m, nodes), and of each pixel the first and four weights.

    A pixel's value is the sum of four coefficients from its first on, by its weights (size, 4); m is 4 or more.
    """
    from scipy.interpolate import BSpline, make_interp_spline

    places = np.clip(np.arange(size, dtype=np.float64), nodes[0], nodes[-1])
    count = max(nodes.size, _LOCAL)
    weights = np.zeros((size, _LOCAL))
    if nodes.size == 1:
        weights[:, 0] = 1.0
        return np.eye(count, 1), np.zeros(size, np.int32), weights.astype(np.float32)
    degree = min(3, nodes.size - 1)
    spline = make_interp_spline(nodes, np.eye(nodes.size), k=degree)
    to_coefficients = np.zeros((count, nodes.size))
    to_coefficients[: nodes.size] = spline.c
    dense = BSpline.design_matrix(places, spline.t, degree).toarray()
    starts = np.minimum(np.argmax(dense != 0, axis=1), count - _LOCAL)
    padded = np.pad(dense, ((0, 0), (0, count - nodes.size)))
    weights = np.take_along_axis(padded, starts[:, None] + np.arange(_LOCAL), axis=1)
    return to_coefficients, starts.astype(np.int32), weights.astype(np.float32)


def with_edges(axis: Axis) -> Floats:
    """Middles of windows along an axis and both ends of it, in pixels: the nodes of a field over the whole frame."""
    return np.unique(np.concatenate([[0.0], axis.middles, [axis.size - 1.0]]))


def pixel_bases(rows: Floats, columns: Floats, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Matrices from values at nodes to every row and every column of a frame; beyond the nodes as at the outermost."""
    bases = (
        spline_basis(nodes, np.clip(np.arange(size, dtype=np.float64), nodes[0], nodes[-1]))
        for nodes, size in zip((rows, columns), shape, strict=True)
    )
    first, second = bases
    return first, second
