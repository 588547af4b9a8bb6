"""A smooth field of displacements, fitted to whole frames at once: the basis of values at the nodes of a grid.

The frame F shows at x + d(x) what the reference R shows at x; d is the cubic spline through its values at the nodes.
With the frame looked at through the field found so far, r = (F(x + d) - b(x)) / a - R(x) is the sum over nodes of G B e
to first order, G being the slopes of the reference, B the splines of the nodes, e what the values are off by, a the
frame's gain and b its local offset. So that no patch needs to move as one, and patches in which nothing can be seen
take part in nothing, all nodes are solved for together:

    (N / v + P / t^2) e = sum G B r / v + P d / t^2,    N = sum G G' B B',

v the variance of the residual and P the bending energy of the field over the nodes. The expected bend t is that of the
frame itself, by the evidence (MacKay 1992, doi 10.1162/neco.1992.4.3.415): where noise hides how a patch differs from
its neighbours it follows them, and where it does not it is free. The inverse of the matrix is the covariance of the
values. The slopes are those of the reference and stay the same, as in `gauss_newton`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.resample.warping import warp_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.solver.basis import slopes_of
from xcorr_app.registration.solver.gauss_newton import FEWEST, compared, dots
from xcorr_app.registration.warping.device_warp import ndimage_of, splines_of
from xcorr_app.registration.warping.grid import pixel_bases
from xcorr_app.registration.warping.warp import at_every_pixel, inside_frame, linear_at, places_of

Floats = NDArray[np.float64]
Sides = tuple[int, int, int, int]

_RIM = 2.0
"""Pixels along the edges of the frame that are not compared."""
_MAX_STEPS, _LAST_STEPS = 5, 2
"""At first, and after those on images of half the size."""
_CONVERGED = 0.004
"""Largest change of a node in pixels after which the field is settled."""
_NEAR, _THERE = 0.35, 0.7
"""Root mean square of the changes in standard errors from which the field is settled too, on images of half the size
and on the last: what is left is a fraction of that."""
_BENDS = (1e-3, 1e3)
"""Pixels between which the expected bend lies."""
_ROUNDED = 16
"""Pixels to which what the frame does not show of the reference is rounded down."""
_MAX_KEPT = 8
"""Sets of modes that a reference keeps, each for what frames do not show of it."""
_CORRELATED_SIDE = 5
"""Pixels a side of the square in which residuals are alike."""


class Nodes:
    """Nodes of a field in frames of one shape, and what depends on nothing else."""

    def __init__(self, rows: Floats, columns: Floats, shape: tuple[int, int], xp: Any) -> None:
        self.rows, self.columns, self.shape = rows, columns, shape
        bases = pixel_bases(rows, columns, shape)
        pairs = [(basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1) for basis in bases]
        # Linear splines, of local offsets.
        pixels = [np.arange(size, dtype=np.float64) for size in shape]
        hats = [
            np.stack([np.interp(at, nodes, row) for row in np.eye(nodes.size)], axis=1)
            for at, nodes in zip(pixels, (rows, columns), strict=True)
        ]
        self.bases, self.pairs, self.hats = (
            tuple(xp.asarray(each, dtype=np.float32) for each in both) for both in (bases, pairs, hats)
        )
        (first, second), (across, bent) = _differences(rows), _differences(columns)
        identity = [np.eye(each.size) for each in (rows, columns)]
        energy = np.kron(second.T @ second, identity[1]) + np.kron(identity[0], bent.T @ bent)
        energy += 2 * np.kron(first.T @ first, across.T @ across)
        self.bending: Floats = np.kron(np.eye(2), energy).astype(np.float64)
        """Quadratic form of both components: second differences of the field over its nodes, mixed ones twice."""
        self.bends = 2 * (rows.size * columns.size - 1 - int(rows.size > 1) - int(columns.size > 1))
        """In how many ways a field can bend: what is even or rises evenly does not."""

    def halved(self, xp: Any) -> Nodes:
        """The same nodes in frames of half the size."""
        rows, columns = ((nodes - 0.5) / 2 for nodes in (self.rows, self.columns))
        return Nodes(rows, columns, (self.shape[0] // 2, self.shape[1] // 2), xp)

    def sums(self, images: Array) -> Floats:
        """Sums (n, gy gx) of images times the spline of each node."""
        sums = to_host(self.bases[0].T @ images @ self.bases[1])
        return np.asarray(sums.reshape(len(images), -1), np.float64)

    def warped(self, frames: Array, field: Floats) -> tuple[Array, Array]:
        """Frames (n, Y, X) through fields (n, 2, gy, gx), and which of their pixels lie in the frame."""
        xp = array_namespace(frames)
        places = places_of(at_every_pixel(xp.asarray(field, dtype=np.float32), (self.bases[0], self.bases[1])))
        weight = inside_frame(places, self.shape, _RIM).astype(np.float32)
        if xp is np:
            warped = np.empty_like(frames)
            for each in zip(frames, places, warped, strict=True):
                linear_at(*each)
            return warped, weight
        splines = splines_of(xp.asarray(-np.moveaxis(field, 1, 3)), (self.rows, self.columns), self.shape)
        return warp_on_device(frames, splines, np.dtype(np.float32), "linear"), weight


class Modes(NamedTuple):
    """Fields that pixels and bending tell apart: with them as columns W, W' N W is one and W' P W is diagonal."""

    bends: Floats
    """(m,) bending energy of each."""
    shapes: Floats
    """(m, m)"""


@dataclass(frozen=True, eq=False)
class FieldReference:
    """Images that fields are fitted against, (1, Y, X) or one for each frame; they are smoothed and float32.

    `like` is a reference that differs by so little that its modes will do: they only set the length of a step and the
    standard errors.
    """

    images: Array
    nodes: Nodes
    like: FieldReference | None = None
    kept: dict[Sides, Modes] = field(default_factory=dict)
    """Modes by what is lost."""

    @cached_property
    def slopes(self) -> tuple[Array, Array]:
        """Along rows and columns."""
        return slopes_of(self.images)

    @cached_property
    def weight(self) -> float:
        """Trace of the matrix N of the nodes."""
        if self.like is not None:
            return self.like.weight
        rows, columns = ((basis * basis).sum(axis=1) for basis in self.nodes.bases)
        return max(float(sum(rows @ (slope[0] * slope[0]) @ columns for slope in self.slopes)), 1e-300)

    def modes(self, lost: Sides) -> Modes:
        """Modes of the nodes, without the pixels `lost` at top, bottom, left and right."""
        if self.like is not None:
            return self.like.modes(lost)
        if lost not in self.kept:
            if len(self.kept) >= _MAX_KEPT:
                self.kept.clear()
            normal = self._normal(lost)
            # What no pixel tells is left to the bending; its modes must be finite all the same.
            normal[np.diag_indices_from(normal)] += 1e-9 * max(float(np.trace(normal)) / len(normal), 1e-300)
            bends, shapes = scipy.linalg.eigh(self.nodes.bending, normal)
            self.kept[lost] = Modes(np.maximum(bends, 0.0), shapes)
        return self.kept[lost]

    def _normal(self, lost: Sides) -> Floats:
        """Matrix N (2 n, 2 n) of the nodes."""
        height, width = self.nodes.shape
        y, x = slice(lost[0], height - lost[1]), slice(lost[2], width - lost[3])
        gy, gx = self.nodes.rows.size, self.nodes.columns.size
        blocks = []
        for one, other in ((0, 0), (0, 1), (1, 1)):
            product = (self.slopes[one][0] * self.slopes[other][0])[y, x]
            sums = to_host(self.nodes.pairs[0][y].T @ product @ self.nodes.pairs[1][x])
            blocks.append(sums.reshape(gy, gy, gx, gx).transpose(0, 2, 1, 3).reshape(gy * gx, -1).astype(np.float64))
        return np.block([[blocks[0], blocks[1]], [blocks[1].T, blocks[2]]])


class FittedFields(NamedTuple):
    """One entry a frame."""

    field: Floats
    """(T, 2, gy, gx) rows, columns in pixels from a pixel of the reference to the place in the frame that shows it."""
    sigma: Floats
    """(T, 2, gy, gx) standard errors in pixels."""
    score: Floats
    """(T,) zero-mean normalised correlation of the frame seen through the field with the reference."""


def fitted(levels: list[FieldReference], sizes: list[Array], start: Floats, moved: Floats) -> FittedFields:
    """Fit the fields of frames, given like their reference at full size and perhaps at half; that is looked at first.

    They begin with `start` (T, 2, gy, gx); `moved` (T, 2) are the displacements of the frames as a whole.
    """
    if array_namespace(sizes[0]) is np and len(start) > 1:  # what one frame needs stays in the cache
        each = [slice(t, t + 1) for t in range(len(start))]
        parts = [fitted(levels, [size[part] for size in sizes], start[part], moved[part]) for part in each]
        return FittedFields(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    field, bend = start, np.ones(len(start))
    lost = _lost_at(moved, levels[0].nodes.shape)
    for number in range(len(levels) - 1, -1, -1):
        fine, last = number == 0, number == len(levels) - 1
        factor = 1.0 if fine else 0.5
        times = levels[number].weight / levels[0].weight
        modes = {sides: _of_more(levels[0].modes(sides), times) for sides in set(lost)}
        steps = _MAX_STEPS if last else _LAST_STEPS
        begin, near = (field * factor, bend * factor**2), _THERE if fine else _NEAR
        of_frames = [modes[sides] for sides in lost]
        field, bend, sigma, score = _stepped(levels[number], sizes[number], of_frames, begin, steps, near)
        field, bend = field / factor, bend / factor**2
    return FittedFields(field, sigma, score)


def _stepped(
    reference: FieldReference,
    frames: Array,
    modes_of: list[Modes],
    start: tuple[Floats, Floats],
    steps: int,
    near: float,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Steps from fields (T, 2, gy, gx) that are right to about a pixel, of frames of one size.

    They, and the expected squares of their bends (T,), are given and returned, with standard errors and scores.
    """
    nodes, count, shape = reference.nodes, len(frames), start[0].shape
    field, bend, alike = start[0].reshape(count, -1).copy(), start[1].copy(), np.ones(count)
    sigma, scores, going = np.full(field.shape, np.inf), np.full(count, np.nan), np.ones(count, dtype=bool)
    for step in range(steps):
        residual, score, pixels = _residual(reference, frames, field.reshape(shape))
        if step == 0:
            alike = _alike(residual)  # smoothed noise: neighbours are alike, and add up
        variance = np.maximum(dots(residual, residual) / np.maximum(pixels, 1) * alike, 1e-12)[:, None]
        right = np.concatenate([nodes.sums(slope * residual) for slope in reference.slopes], axis=1)
        scores[going] = score[going]
        old, before = field.copy(), bend[:, None].copy()
        for modes in {id(each): each for each in modes_of}.values():
            rows = going & np.array([each is modes for each in modes_of])
            spread = 1 / (1 / variance + modes.bends / before)
            force = (right / variance + old @ nodes.bending / before) @ modes.shapes
            field[rows] = (old - (spread * force) @ modes.shapes.T)[rows]
            sigma[rows] = np.sqrt(spread @ np.square(modes.shapes).T)[rows]
            if nodes.bends:
                free = np.maximum(nodes.bends - (modes.bends * spread / before).sum(axis=1), 1e-3)
                bend[rows] = (((field @ nodes.bending) * field).sum(axis=1) / free)[rows]
        bend = np.clip(bend, _BENDS[0] ** 2, _BENDS[1] ** 2)
        change = np.abs(field - old)
        going &= (change.max(axis=1) >= _CONVERGED) & (np.square(change / sigma).mean(axis=1) >= near**2)
        if not going.any():
            break
    return field.reshape(shape), bend, sigma.reshape(shape), scores


def _residual(reference: FieldReference, frames: Array, field: Floats) -> tuple[Array, Floats, Floats]:
    """What frames and references do not share (T, Y, X), zero where not compared; scores; pixels compared."""
    xp, (rows, columns) = array_namespace(frames), reference.nodes.hats
    warped, weight = reference.nodes.warped(frames, field)
    found = compared(reference.images, warped, weight, attenuated=True)
    local = rows.T @ found.residual @ columns / xp.maximum(rows.T @ weight @ columns, 1.0)
    residual = found.residual
    residual -= weight * (rows @ local @ columns.T)
    enough = found.pixels >= FEWEST
    if not enough.all():
        residual *= xp.asarray(enough.astype(np.float32))[:, None, None]
    return residual, np.where(enough, found.score, np.nan), found.pixels


def _of_more(modes: Modes, times: float) -> Modes:
    """Modes where N is so many times as large, as of the same image at half the size."""
    return Modes(modes.bends / times, modes.shapes / np.sqrt(times))


def _differences(nodes: Floats) -> tuple[Floats, Floats]:
    """Matrices of first and second differences of values at nodes, as of nodes at their mean distance."""
    steps = np.diff(nodes) / (np.diff(nodes).mean() if nodes.size > 1 else 1.0)
    slopes = np.diff(np.eye(nodes.size), axis=0) / steps[:, None]
    middle = (steps[1:] + steps[:-1]) / 2
    return slopes, np.diff(slopes, axis=0)[: middle.size] / middle[:, None]


def _alike(residual: Array) -> Floats:
    """By how much (n,) neighbouring residuals that are alike add to the variance of a sum, at least one."""
    if (xp := array_namespace(residual)) is np:
        import cv2

        how: dict[str, Any] = {"normalize": False, "borderType": cv2.BORDER_CONSTANT}
        smooth = np.stack([cv2.boxFilter(each, -1, (_CORRELATED_SIDE, _CORRELATED_SIDE), **how) for each in residual])
    else:
        smooth = (
            ndimage_of(xp).uniform_filter(residual, (1, _CORRELATED_SIDE, _CORRELATED_SIDE), mode="constant")
            * _CORRELATED_SIDE**2
        )
    return np.maximum(dots(residual, smooth) / np.maximum(dots(residual, residual), 1e-300), 1.0)


def _lost_at(moved: Floats, shape: tuple[int, int]) -> list[Sides]:
    """Rows and columns at top, bottom, left and right that frames `moved` (T, 2) do not show of a reference."""
    lost = np.stack([-moved[:, 0], moved[:, 0], -moved[:, 1], moved[:, 1]], axis=1)
    # A few pixels more or less change nothing: frames that moved alike share the matrix.
    whole = np.clip(lost, 0, np.repeat(shape, 2) // 2).astype(np.intp) // _ROUNDED * _ROUNDED
    return [(top, bottom, left, right) for top, bottom, left, right in whole.tolist()]
