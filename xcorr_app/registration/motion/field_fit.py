"""A smooth field of displacements fitted to a whole frame at once: Gauss-Newton on the values at the nodes of a grid.

The frame F shows at x + d(x) what the reference R shows at x; d is the cubic spline through its values at the nodes.
With the frame looked at through the field found so far, r = (F(x + d) - b(x)) / a - R(x) is the sum over nodes of G B e
to first order, G being the slopes of the reference, B the splines of the nodes, e what the values are off by, a the
frame's gain and b its local offset. So that no patch needs to move as one, and patches in which nothing can be seen
take part in nothing, all nodes are solved for together:

    (N / v + P / t^2) e = sum G B r / v + P d / t^2,    N = sum G G' B B',

v the variance of the residual and P the bending energy of the field over the nodes. The expected bend t is that of the
frame itself, by the evidence (MacKay 1992, doi 10.1162/neco.1992.4.3.415): where noise hides how a patch differs from
its neighbours it follows them, and where it does not it is free. The inverse of the matrix is the covariance of the
values. The slopes are those of the reference and stay the same (Baker and Matthews 2004, doi
10.1023/B:VISI.0000011205.11775.fd).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.motion.displacement import at_every_pixel, linear_at, product
from xcorr_app.registration.motion.grid import pixel_bases
from xcorr_app.registration.motion.ndimage import ndimage_of
from xcorr_app.registration.motion.warp import inside_frame

Floats = NDArray[np.float64]

_RIM = 2.0
"""Pixels along the edges of the frame that are not compared."""
_MOST_STEPS, _LAST_STEPS = 5, 2
"""At first, and after those on images of half the size."""
_SETTLED = 0.004
"""Largest change of a node in pixels after which the field is settled."""
_NEAR, _THERE = 0.35, 0.7
"""Root mean square of the changes in standard errors from which the field is settled too, on images of half the size
and on the last: what is left is a fraction of that."""
_BENDS = (1e-3, 1e3)
"""Pixels between which the expected bend lies."""
_LEAST_GAIN = 0.02
_ROUNDED = 16
"""Pixels to which what the frame does not show of the reference is rounded down."""
_MOST_KEPT = 8
_FEWEST = 64
"""Pixels that are worth comparing."""
_ALIKE = 5
"""Pixels a side of the square in which residuals are alike."""


@dataclass(frozen=True)
class FieldFit:
    """A fitted field."""

    field: Floats
    """(2, gy, gx) rows, columns in pixels from a pixel of the reference to the place in the frame that shows it."""
    sigma: Floats
    """(2, gy, gx) standard errors in pixels."""
    score: float
    """Zero-mean normalised correlation of the frame seen through the field with the reference."""
    settled: bool
    bend: float
    """Expected square of the bend, in square pixels."""


def fitted(levels: list[FieldReference], frames: list[Array], start: Floats) -> FieldFit:
    """Fit the field of a frame, given like its reference at full size and perhaps at half; that is looked at first."""
    field, bend = start, 1.0
    if len(levels) > 1:
        coarse = levels[1].steps(frames[1], start / 2, bend / 4, _MOST_STEPS, _NEAR)
        field, bend = 2 * coarse.field, 4 * coarse.bend
    return levels[0].steps(frames[0], field, bend, _LAST_STEPS if len(levels) > 1 else _MOST_STEPS, _THERE)


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
        bending = _bending(rows, columns)
        self.bending: Floats = np.kron(np.eye(2), bending).astype(np.float64)
        """Quadratic form of both components."""
        self.bends = 2 * int(np.linalg.matrix_rank(bending))
        """In how many ways a field can bend."""
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


@dataclass(frozen=True)
class Modes:
    """Fields that pixels and bending tell apart: with them as columns W, W' N W is one and W' P W is diagonal."""

    bends: Floats
    """(m,) bending energy of each."""
    shapes: Floats
    """(m, m)"""

    @cached_property
    def squares(self) -> Floats:
        """(m, m) of the shapes."""
        return np.square(self.shapes)


class FieldReference:
    """An image that fields are fitted against; it and the frames are smoothed and float32.

    `like` is a reference that differs by so little that its modes will do: they only set the length of a step and the
    standard errors.
    """

    def __init__(self, image: Array, nodes: Nodes, like: FieldReference | None = None) -> None:
        xp = array_namespace(image)
        taps = xp.asarray(np.array([1.0, -8.0, 0.0, 8.0, -1.0], dtype=np.float32) / 12)
        self.image, self.nodes = image, nodes
        self.slopes = [ndimage_of(xp).correlate1d(image, taps, axis=axis, mode="mirror") for axis in (0, 1)]
        gy, gx = self.slopes
        self._products = [] if like else [gy * gy, gy * gx, gx * gx]
        self._like = like
        self._modes: dict[tuple[int, int, int, int], Modes] = {}

    def modes(self, lost: tuple[int, int, int, int]) -> Modes:
        """Modes of the nodes, without the pixels `lost` at top, bottom, left and right."""
        if self._like is not None:
            return self._like.modes(lost)
        if lost not in self._modes:
            if len(self._modes) >= _MOST_KEPT:
                self._modes.clear()
            normal = self._normal(lost)
            # What no pixel tells is left to the bending; its modes must be finite all the same.
            normal[np.diag_indices_from(normal)] += 1e-9 * max(float(np.trace(normal)) / len(normal), 1e-300)
            bends, shapes = scipy.linalg.eigh(self.nodes.bending, normal)
            self._modes[lost] = Modes(np.maximum(bends, 0.0), shapes)
        return self._modes[lost]

    def _normal(self, lost: tuple[int, int, int, int]) -> Floats:
        """Matrix N (2 n, 2 n) of the nodes."""
        height, width = self.image.shape
        y, x = slice(lost[0], height - lost[1]), slice(lost[2], width - lost[3])
        gy, gx, n = self.nodes.rows.size, self.nodes.columns.size, self.nodes.count
        blocks = []
        for image in self._products:
            sums = to_host(self.nodes.pairs[0][y].T @ image[y, x] @ self.nodes.pairs[1][x])
            blocks.append(sums.reshape(gy, gy, gx, gx).transpose(0, 2, 1, 3).reshape(n, n).astype(np.float64))
        return np.block([[blocks[0], blocks[1]], [blocks[1].T, blocks[2]]])

    def steps(self, frame: Array, start: Floats, bend: float, most: int, near: float) -> FieldFit:
        """Take at most so many steps from a field that is right to about a pixel, to `near` of standard errors."""
        xp, nodes = array_namespace(frame), self.nodes
        field: Floats = start.ravel()
        modes = self.modes(_lost(start, nodes.shape))
        settled, score, alike = False, np.nan, None
        sigma = np.full(field.size, np.inf)
        for _ in range(most):
            residual, score, pixels = self._residual(frame, field.reshape(start.shape), xp)
            if alike is None:
                # Smoothed noise: neighbours are alike, and add up.
                alike = _alike(residual, xp)
            variance = max(_dot(residual, residual, xp) / max(pixels, 1.0) * alike, 1e-12)
            right = np.concatenate([nodes.sums(slope * residual).ravel() for slope in self.slopes])
            spread = 1 / (1 / variance + modes.bends / bend)
            bent = _times(nodes.bending, field)
            change: Floats = _times(modes.shapes, spread * _times(modes.shapes.T, right / variance + bent / bend))
            field = field - change
            sigma = np.sqrt(_times(modes.squares, spread))
            if nodes.bends:
                free = max(nodes.bends - float((modes.bends * spread).sum()) / bend, 1e-3)
                energy = float(np.vdot(field, _times(nodes.bending, field)))
                bend = float(np.clip(energy / free, _BENDS[0] ** 2, _BENDS[1] ** 2))
            if np.abs(change).max() < _SETTLED or np.square(change / sigma).mean() < near**2:
                settled = True
                break
        return FieldFit(field.reshape(start.shape), sigma.reshape(start.shape), score, settled, bend)

    def _residual(self, frame: Array, field: Floats, xp: Any) -> tuple[Array, float, float]:
        """What frame and reference do not share (Y, X), zero where not compared; the score; the pixels compared."""
        places = self.nodes.places(field, xp)
        one = linear_at(frame, places)
        inside = inside_frame(places, frame.shape, _RIM).astype(np.float32)
        pixels = _dot(inside, inside, xp)
        if pixels < _FEWEST:
            return xp.zeros_like(one), np.nan, 0.0
        one -= np.float32(_dot(one, inside, xp) / pixels)
        one *= inside
        other = self.image - np.float32(_dot(self.image, inside, xp) / pixels)
        other *= inside
        products = [_dot(a, b, xp) for a, b in ((one, other), (other, other), (one, one))]
        score = products[0] / np.sqrt(products[1] * products[2]) if products[1] > 0 and products[2] > 0 else np.nan
        gain = max(products[0] / products[1], _LEAST_GAIN) if products[1] > 0 else 1.0
        one *= np.float32(1 / gain)
        one -= other
        rows, columns = self.nodes.hats
        weight = product(product(rows.T, inside), columns)
        local = product(product(rows.T, one), columns) / xp.maximum(weight, 1.0)
        inside *= product(product(rows, local), columns.T)
        one -= inside
        return one, score, pixels


def _dot(one: Array, other: Array, xp: Any) -> float:
    if xp is not np:
        return float(xp.vdot(one, other))
    # Row by row: a BLAS would share a longer product between threads.
    return float((one[:, None, :] @ other[:, :, None]).sum(dtype=np.float64))


def _times(matrix: Floats, vector: Floats) -> Floats:
    """Product of a small matrix and a vector, in the thread that asks for it."""
    found: Floats = np.einsum("ij,j", matrix, vector)
    return found


def _alike(residual: Array, xp: Any) -> float:
    """By how much neighbouring residuals that are alike add to the variance of a sum, at least one."""
    if xp is np:
        import cv2

        smooth = cv2.boxFilter(residual, -1, (_ALIKE, _ALIKE), normalize=False)
    else:
        smooth = ndimage_of(xp).uniform_filter(residual, _ALIKE, mode="constant") * _ALIKE**2
    power = _dot(residual, residual, xp)
    return max(_dot(residual, smooth, xp) / power, 1.0) if power > 0 else 1.0


def _lost(field: Floats, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Rows and columns at the edges of the reference that the frame does not show, by the median of the field."""
    dy, dx = np.median(field.reshape(2, -1), axis=1)
    # A few pixels more or less change nothing: frames that moved alike share the matrix.
    top, bottom, left, right = (
        int(min(max(value, 0.0), size // 2)) // _ROUNDED * _ROUNDED
        for value, size in ((-dy, shape[0]), (dy, shape[0]), (-dx, shape[1]), (dx, shape[1]))
    )
    return top, bottom, left, right


def _hats(nodes: Floats, size: int) -> Floats:
    """Linear splines (size, nodes)."""
    pixels = np.arange(size, dtype=np.float64)
    return np.stack([np.interp(pixels, nodes, row) for row in np.eye(nodes.size)], axis=1)


def _bending(rows: Floats, columns: Floats) -> Floats:
    """Quadratic form (n, n) of the second differences of a field over its nodes, mixed ones twice."""
    first, second = (_differences(nodes) for nodes in (rows, columns))
    identity = [np.eye(nodes.size) for nodes in (rows, columns)]
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
