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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.motion.displacement import at_every_pixel, linear_at, places_of
from xcorr_app.registration.motion.grid import pixel_bases
from xcorr_app.registration.motion.warp import inside_frame, ndimage_of

Floats = NDArray[np.float64]

_RIM = 2.0
"""Pixels along the edges of the frame that are not compared."""
_MOST_STEPS = 6
_SETTLED = 0.004
"""Largest change of a node in pixels after which the field is settled."""
_BENDS = (1e-3, 1e3)
"""Pixels between which the expected bend lies."""
_LEAST_GAIN = 0.02
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
        self.bending = _bending(rows, columns)
        self.bends = int(np.linalg.matrix_rank(self.bending))
        self.pixels = places_of(xp.zeros((2, *shape), dtype=np.float32))

    def displacement(self, field: Floats, xp: Any) -> Array:
        """The field (2, gy, gx) at every pixel, (2, Y, X)."""
        return at_every_pixel(xp.asarray(field, dtype=np.float32), (self.bases[0], self.bases[1]))

    def sums(self, image: Array) -> Floats:
        """Sums (gy, gx) of an image times the spline of each node."""
        return np.asarray(to_host(self.bases[0].T @ image @ self.bases[1]), np.float64)


class FieldReference:
    """An image that fields are fitted against; it and the frames are smoothed and float32."""

    def __init__(self, image: Array, nodes: Nodes) -> None:
        xp = array_namespace(image)
        taps = xp.asarray(np.array([1.0, -8.0, 0.0, 8.0, -1.0], dtype=np.float32) / 12)
        self.image, self.nodes = image, nodes
        self.slopes = [ndimage_of(xp).correlate1d(image, taps, axis=axis, mode="mirror") for axis in (0, 1)]
        gy, gx = self.slopes
        self._products = [gy * gy, gy * gx, gx * gx]
        self._normal: Floats | None = None

    def normal(self, lost: tuple[int, int, int, int]) -> Floats:
        """Matrix N (2 n, 2 n) of the nodes, without the pixels `lost` at top, bottom, left and right."""
        if any(lost):
            return self._summed(lost)
        if self._normal is None:
            self._normal = self._summed(lost)
        return self._normal

    def _summed(self, lost: tuple[int, int, int, int]) -> Floats:
        height, width = self.image.shape
        y, x = slice(lost[0], height - lost[1]), slice(lost[2], width - lost[3])
        gy, gx, n = self.nodes.rows.size, self.nodes.columns.size, self.nodes.count
        blocks = []
        for product in self._products:
            sums = to_host(self.nodes.pairs[0][y].T @ product[y, x] @ self.nodes.pairs[1][x])
            blocks.append(sums.reshape(gy, gy, gx, gx).transpose(0, 2, 1, 3).reshape(n, n).astype(np.float64))
        return np.block([[blocks[0], blocks[1]], [blocks[1].T, blocks[2]]])

    def fitted(self, frame: Array, start: Floats) -> FieldFit:
        """Fit the field of a frame, starting from one that is right to about a pixel."""
        xp, nodes = array_namespace(frame), self.nodes
        field, bend = start.copy(), 1.0
        bending = np.kron(np.eye(2), nodes.bending)
        lost = _lost(start, nodes.shape)
        normal = self.normal(lost)
        settled, covariance, score = False, np.full((2 * nodes.count, 2 * nodes.count), np.inf), np.nan
        for step in range(_MOST_STEPS):
            residual, score, pixels = self._residual(frame, field, xp)
            # Smoothed noise: neighbours are alike, and add up.
            variance = float((residual * residual).sum()) / max(pixels, 1) * _alike(residual, xp)
            right = np.concatenate([nodes.sums(slope * residual).ravel() for slope in self.slopes])
            flat = field.ravel()
            variance = max(variance, 1e-12)
            matrix = normal / variance + bending / bend
            matrix[np.diag_indices_from(matrix)] += 1e-9 * np.trace(matrix) / len(matrix)
            covariance = np.linalg.inv(matrix)
            change = covariance @ (right / variance + bending @ flat / bend)
            field = (flat - change).reshape(field.shape)
            if nodes.bends:
                free = max(2 * nodes.bends - float((bending * covariance).sum()) / bend, 1e-3)
                energy = float(field.ravel() @ bending @ field.ravel())
                bend = float(np.clip(energy / free, _BENDS[0] ** 2, _BENDS[1] ** 2))
            if step and np.abs(change).max() < _SETTLED:
                settled = True
                break
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(field.shape)
        return FieldFit(field, sigma, score, settled)

    def _residual(self, frame: Array, field: Floats, xp: Any) -> tuple[Array, float, int]:
        """What frame and reference do not share (Y, X), zero where not compared; the score; the pixels compared."""
        places = self.nodes.displacement(field, xp) + self.nodes.pixels
        seen = linear_at(frame, places)
        inside = inside_frame(places, frame.shape, _RIM).astype(np.float32)
        pixels = float(inside.sum())
        if pixels < 64:
            return xp.zeros_like(seen), np.nan, 0
        reference = self.image
        means = [float((image * inside).sum()) / pixels for image in (seen, reference)]
        one, other = (seen - means[0]) * inside, (reference - means[1]) * inside
        products = [float((a * b).sum()) for a, b in ((one, other), (other, other), (one, one))]
        score = products[0] / np.sqrt(products[1] * products[2]) if products[1] > 0 and products[2] > 0 else np.nan
        gain = max(products[0] / products[1], _LEAST_GAIN) if products[1] > 0 else 1.0
        rest = one / np.float32(gain) - other
        rows, columns = self.nodes.hats
        weight = rows.T @ inside @ columns
        local = (rows.T @ rest @ columns) / xp.maximum(weight, 1.0)
        return rest - (rows @ local @ columns.T) * inside, score, int(pixels)


def _alike(residual: Array, xp: Any) -> float:
    """By how much neighbouring residuals that are alike add to the variance of a sum, at least one."""
    if xp is np:
        import cv2

        smooth = cv2.boxFilter(residual, -1, (_ALIKE, _ALIKE), normalize=False)
    else:
        smooth = ndimage_of(xp).uniform_filter(residual, _ALIKE, mode="constant") * _ALIKE**2
    power = float((residual * residual).sum())
    return max(float((residual * smooth).sum()) / power, 1.0) if power > 0 else 1.0


def _lost(field: Floats, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Rows and columns at the edges of the reference that the frame does not show, by the median of the field."""
    dy, dx = np.median(field.reshape(2, -1), axis=1)
    found = [int(np.clip(round(value), 0, size // 2)) for value, size in ((-dy, shape[0]), (dy, shape[0]))]
    found += [int(np.clip(round(value), 0, size // 2)) for value, size in ((-dx, shape[1]), (dx, shape[1]))]
    # A few pixels more or less change nothing, and the matrix of a frame that hardly moved is that of the others.
    top, bottom, left, right = (value if value > 3 else 0 for value in found)
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
