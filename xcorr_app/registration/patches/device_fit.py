"""The fit of `field_fit` for a chunk of frames at once, by ``kernels/field``: the same steps, batched."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.field.launches import step_bytes
from xcorr_app.gpu.field.problem import FieldAxis, parts_of, tile_of
from xcorr_app.gpu.field.run import FieldModes, FieldState, SizedReference, take_steps
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.registration.patches.field_fit import LAST_STEPS, MAX_STEPS, NEAR, THERE, FieldReference, kinds_lost
from xcorr_app.registration.patches.field_nodes import Nodes
from xcorr_app.registration.warping.grid import local_splines

Floats = NDArray[np.float64]


def cells_of(nodes: Floats, size: int) -> NDArray[np.int32]:
    """The node at or before each of `size` pixels, but for the last node."""
    return np.clip(np.searchsorted(nodes, np.arange(size), "right") - 1, 0, nodes.size - 2).astype(np.int32)


def axis_of(nodes: Floats, size: int, most: int) -> FieldAxis:
    """Tables of an axis of `size` pixels, whose tiles have at most so many of them."""
    to_splines, starts, weights = local_splines(nodes, size)
    pixels, cells = np.arange(size, dtype=np.float64), cells_of(nodes, size)
    behind = np.clip((pixels - nodes[cells]) / np.diff(nodes)[cells], 0, 1).astype(np.float32)
    parts, first_parts = parts_of(cells, nodes.size - 1, most)
    # Of a cell all pixels depend on the same coefficients; at a knot, one of them by nothing.
    first = np.array([starts[a:b].min() for a, b, _ in parts], np.int32)
    of_pixel = np.repeat(first, parts[:, 1] - parts[:, 0])
    dense = np.zeros((size, len(to_splines)), np.float32)
    four = np.arange(weights.shape[1])
    np.put_along_axis(dense, starts[:, None] + four, weights, axis=1)
    weights = np.take_along_axis(dense, of_pixel[:, None] + four, axis=1)
    return FieldAxis(np.column_stack([parts, first]), first_parts, cells, weights, behind, to_splines)


class DeviceNodes:
    """Nodes of fields in frames of one size, as the kernels take them."""

    def __init__(self, nodes: Nodes, xp: Any) -> None:
        rows, columns = (nodes.rows, nodes.columns)
        most = tile_of(cells_of(columns, nodes.shape[1]))
        self.columns, self.ways_to_bend = most[1], nodes.bends
        axes = (axis_of(at, size, tile) for at, size, tile in zip((rows, columns), nodes.shape, most, strict=True))
        first, second = axes
        self.axes = first.on(xp), second.on(xp)
        self.step_bytes = step_bytes((rows.size, columns.size), (len(first.to_splines), len(second.to_splines)))
        down, across = nodes.differences
        bending = (down[1].T @ down[1], down[0].T @ down[0], across[1].T @ across[1], across[0].T @ across[0])
        self.bending = tuple(xp.asarray(np.ascontiguousarray(matrix)) for matrix in bending)

    def reference(self, images: Sequence[FieldReference], xp: Any) -> SizedReference:
        """What frames are compared with: one image for all, or one for each."""
        if len(images) == 1:
            image, slopes = images[0].image, xp.stack(images[0].slopes, axis=-1)
        else:
            image = xp.stack([each.image for each in images])
            slopes = xp.stack([xp.stack(each.slopes, axis=-1) for each in images])
        image, slopes = xp.ascontiguousarray(image), xp.ascontiguousarray(slopes)
        bending = (self.bending[0], self.bending[1], self.bending[2], self.bending[3])
        return SizedReference(self.axes, self.columns, image, slopes, bending, self.ways_to_bend)


@functools.lru_cache(maxsize=16)
def _on_device(nodes: Nodes, xp: Any) -> DeviceNodes:
    """Tables of nodes that are themselves kept, on the device that holds them."""
    return constants(xp, lambda: DeviceNodes(nodes, xp))


def room_of(xp: Any) -> int:
    """Bytes of shared memory that a block may have: not all devices have as much."""
    return (DeviceLimits() if xp is np else device_limits(current_device())).shared_bytes


class DeviceFit:
    """Fits the fields of frames at full size and perhaps at half."""

    def __init__(self, levels: Sequence[Nodes], xp: Any) -> None:
        self._levels, self._xp = levels, xp
        self._nodes = [_on_device(nodes, xp) for nodes in levels]
        self.fits = all(nodes.step_bytes <= room_of(xp) for nodes in self._nodes)
        """Whether a block of the device holds the nodes."""
        self._kept: dict[int, tuple[FieldReference, SizedReference]] = {}

    def see(self, reference: FieldReference, moved: Floats) -> None:
        """Bring to the host what the modes of frames displaced by `moved` (T, 2) are made of."""
        for each in kinds_lost(moved, reference.nodes.shape)[0]:
            reference.see(each)

    def fitted(
        self, references: Sequence[Sequence[FieldReference]], frames: Sequence[Array], starts: Array, moved: Floats
    ) -> FieldState:
        """Fields of frames, (T, Y, X) at each size, that begin with `starts` (T, 2, gy, gx) on the device.

        `references` are, at each size, one for all frames or one for each; `moved` (T, 2) are the displacements of the
        frames as a whole.
        """
        state, last = FieldState.of(starts), len(self._levels) - 1
        whole = self._modes(references[0][0], moved)
        for level in range(last, -1, -1):
            modes = whole.of_more(references[level][0].weight / references[0][0].weight)
            reference = self._reference(level, references[level])
            coarse = level > 0
            most = LAST_STEPS if level < last else MAX_STEPS
            scale = 1 if coarse else 4 if last else 2
            near = NEAR if coarse else THERE
            take_steps(frames[level], reference, modes, state, scale=scale, most=most, near=near)
        return state

    def _reference(self, level: int, images: Sequence[FieldReference]) -> SizedReference:
        if len(images) > 1:
            return self._nodes[level].reference(images, self._xp)
        # Of all frames, or of the only one of a chunk that has its own.
        if level not in self._kept or self._kept[level][0] is not images[0]:
            self._kept[level] = images[0], self._nodes[level].reference(images, self._xp)
        return self._kept[level][1]

    def _modes(self, reference: FieldReference, moved: Floats) -> FieldModes:
        """Modes of all frames, each kind of them once."""
        lost, of_frame = kinds_lost(moved, reference.nodes.shape)
        kinds = [reference.modes(each) for each in lost]
        shapes = np.stack([each.shapes for each in kinds]).astype(np.float32)
        bends = np.stack([each.bends for each in kinds])
        arrays = (shapes, shapes.transpose(0, 2, 1), bends, of_frame)
        return FieldModes(*(self._xp.asarray(np.ascontiguousarray(each)) for each in arrays))
