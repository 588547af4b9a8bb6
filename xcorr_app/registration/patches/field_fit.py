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

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.patches.field_nodes import Nodes
from xcorr_app.registration.warping.displacement import linear_at, product
from xcorr_app.registration.warping.ndimage import ndimage_of
from xcorr_app.registration.warping.warp import inside_frame

Floats = NDArray[np.float64]
_Sides = tuple[int, int, int, int]

_RIM = 2.0
"""Pixels along the edges of the frame that are not compared."""
MAX_STEPS, LAST_STEPS = 5, 2
"""At first, and after those on images of half the size."""
_SETTLED = 0.004
"""Largest change of a node in pixels after which the field is settled."""
NEAR, THERE = 0.35, 0.7
"""Root mean square of the changes in standard errors from which the field is settled too, on images of half the size
and on the last: what is left is a fraction of that."""
_BENDS = (1e-3, 1e3)
"""Pixels between which the expected bend lies."""
_MIN_GAIN = 0.02
_ROUNDED = 16
"""Pixels to which what the frame does not show of the reference is rounded down."""
_MAX_KEPT = 8
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


def fitted(levels: list[FieldReference], frames: list[Array], start: Floats, moved: Floats) -> FieldFit:
    """Fit the field of a frame, given like its reference at full size and perhaps at half; that is looked at first.

    `moved` (2,) is the displacement of the frame as a whole.
    """
    field, bend = start, 1.0
    modes = levels[0].modes(lost_at(moved[None], levels[0].nodes.shape)[0])
    if len(levels) > 1:
        of_half = modes.of_more(levels[1].weight / levels[0].weight)
        coarse = levels[1].steps(frames[1], start / 2, bend / 4, of_half, MAX_STEPS, NEAR)
        field, bend = 2 * coarse.field, 4 * coarse.bend
    return levels[0].steps(frames[0], field, bend, modes, LAST_STEPS if len(levels) > 1 else MAX_STEPS, THERE)


@dataclass(frozen=True)
class Modes:
    """Fields that pixels and bending tell apart: with them as columns W, W' N W is one and W' P W is diagonal."""

    bends: Floats
    """(m,) bending energy of each."""
    shapes: Floats
    """(m, m)"""

    def of_more(self, times: float) -> Modes:
        """Modes where N is so many times as large, as of the same image at half the size."""
        return Modes(self.bends / times, self.shapes / np.sqrt(times))

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
        self.weight: float = like.weight if like else self._weight()
        """Trace of the matrix N of the nodes."""
        self._like = like
        self._modes: dict[_Sides, Modes] = {}
        self._seen: dict[_Sides, Floats] = {}
        self._one_at_a_time = threading.Lock()

    def modes(self, lost: NDArray[np.intp]) -> Modes:
        """Modes of the nodes, without the pixels `lost` (4,) at top, bottom, left and right."""
        if self._like is not None:
            return self._like.modes(lost)
        with self._one_at_a_time:  # threads that need the same wait for them
            return self._modes_without(_sides(lost))

    def see(self, lost: NDArray[np.intp]) -> None:
        """Bring to the host what `modes` are made of, so that a device can go on with other work."""
        if self._like is not None:
            self._like.see(lost)
        elif _sides(lost) not in self._modes:
            self._seen[_sides(lost)] = self._normal(_sides(lost))

    def _modes_without(self, lost: _Sides) -> Modes:
        if lost not in self._modes:
            if len(self._modes) >= _MAX_KEPT:
                self._modes.clear()
            normal = self._seen.pop(lost, None)
            normal = self._normal(lost) if normal is None else normal
            # What no pixel tells is left to the bending; its modes must be finite all the same.
            normal[np.diag_indices_from(normal)] += 1e-9 * max(float(np.trace(normal)) / len(normal), 1e-300)
            solve = scipy.linalg.eigh  # which loads SciPy's BLAS
            with one_blas_thread():
                bends, shapes = solve(self.nodes.bending, normal)
            self._modes[lost] = Modes(np.maximum(bends, 0.0), shapes)
        return self._modes[lost]

    def _weight(self) -> float:
        rows, columns = ((basis * basis).sum(axis=1) for basis in self.nodes.bases)
        return max(float(rows @ (self._products[0] + self._products[2]) @ columns), 1e-300)

    def _normal(self, lost: _Sides) -> Floats:
        """Matrix N (2 n, 2 n) of the nodes."""
        height, width = self.image.shape
        y, x = slice(lost[0], height - lost[1]), slice(lost[2], width - lost[3])
        gy, gx, n = self.nodes.rows.size, self.nodes.columns.size, self.nodes.count
        blocks = []
        for image in self._products:
            sums = to_host(product(product(self.nodes.pairs[0][y].T, image[y, x]), self.nodes.pairs[1][x]))
            blocks.append(sums.reshape(gy, gy, gx, gx).transpose(0, 2, 1, 3).reshape(n, n).astype(np.float64))
        return np.block([[blocks[0], blocks[1]], [blocks[1].T, blocks[2]]])

    def steps(self, frame: Array, start: Floats, bend: float, modes: Modes, most: int, near: float) -> FieldFit:
        """Take at most so many steps from a field that is right to about a pixel, to `near` of standard errors."""
        xp, nodes = array_namespace(frame), self.nodes
        field: Floats = start.ravel()
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
        gain = max(products[0] / products[1], _MIN_GAIN) if products[1] > 0 else 1.0
        one *= np.float32(1 / gain)
        one -= other
        rows, columns = self.nodes.hats
        weight = product(product(rows.T, inside), columns)
        local = product(product(rows.T, one), columns) / xp.maximum(weight, 1.0)
        inside *= product(product(rows, local), columns.T)
        one -= inside
        return one, score, pixels


def _sides(lost: NDArray[np.intp]) -> _Sides:
    top, bottom, left, right = lost.tolist()
    return top, bottom, left, right


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

        square, nothing = (_ALIKE, _ALIKE), cv2.BORDER_CONSTANT
        smooth = cv2.boxFilter(residual, -1, square, normalize=False, borderType=nothing)
    else:
        smooth = ndimage_of(xp).uniform_filter(residual, _ALIKE, mode="constant") * _ALIKE**2
    power = _dot(residual, residual, xp)
    return max(_dot(residual, smooth, xp) / power, 1.0) if power > 0 else 1.0


def lost_at(moved: Floats, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Rows and columns (T, 4) at top, bottom, left and right that frames `moved` (T, 2) do not show of a reference."""
    lost = np.stack([-moved[:, 0], moved[:, 0], -moved[:, 1], moved[:, 1]], axis=1)
    # A few pixels more or less change nothing: frames that moved alike share the matrix.
    return np.clip(lost, 0, np.repeat(shape, 2) // 2).astype(np.intp) // _ROUNDED * _ROUNDED


def kinds_lost(moved: Floats, shape: tuple[int, int]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The different rows (k, 4) of `lost_at`, and which of them is that of each frame (T,)."""
    lost = lost_at(moved, shape)
    base = max(shape) // _ROUNDED + 1  # one number for each row: rows are slow to sort
    numbers = lost // _ROUNDED @ base ** np.arange(4)
    _, first, of_frame = np.unique(numbers, return_index=True, return_inverse=True)
    return lost[first], of_frame.ravel().astype(np.int32)
