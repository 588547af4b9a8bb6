"""What the family works on: frames of one size, and a grid of nodes whose cells are cut into tiles."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ShapeError

__all__ = ["NODES", "TILE_ROWS", "FieldAxis", "FieldProblem", "parts_of", "tile_of"]

NODES = 4
"""Coefficients of the splines along an axis that a pixel depends on."""
TILE_ROWS = 64
"""Of a tile at most."""
_WIDE, _NARROW = 64, 32


@dataclass(frozen=True, eq=False)
class FieldAxis:
    """One axis of a grid over frames of one size: arrays of the device that hold it, or of the host before they do."""

    parts: Any
    """(parts, 4) of int32: first pixel and one after the last, cell, first coefficient."""
    first_parts: Any
    """(cells + 1,) of int32: first part of each cell, and the number of parts."""
    cells: Any
    """(size,) of int32: the node at or before each pixel, but for the last node."""
    weights: Any
    """(size, 4) of float32: weights of four coefficients."""
    behind: Any
    """(size,) of float32: weight of the node behind, of what is linear between the nodes."""
    to_splines: Any
    """(coefficients, nodes) of float64."""

    def on(self, xp: Any) -> FieldAxis:
        """The same on a device."""
        return FieldAxis(*(xp.asarray(part) for part in vars(self).values()))


def parts_of(
    cells: npt.NDArray[np.int32], count: int, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Runs of pixels of one of `count` cells, cut evenly into at most `most`: (parts, 3) first, stop and cell.

    Also the first part of each cell, and the number of parts.
    """
    parts: list[tuple[int, int, int]] = []
    first_parts = []
    for cell in range(count):
        first_parts.append(len(parts))
        first, stop = np.searchsorted(cells, [cell, cell + 1])
        edges = np.linspace(first, stop, -(-(stop - first) // most) + 1).round().astype(int)
        parts += [(int(a), int(b), cell) for a, b in itertools.pairwise(edges)]
    return np.array(parts, np.int32).reshape(-1, 3), np.array([*first_parts, len(parts)], np.int32)


def tile_of(column_cells: npt.NDArray[np.int32]) -> tuple[int, int]:
    """Most rows and columns of a tile: narrow where most cells are."""
    return TILE_ROWS, _NARROW if np.median(np.bincount(column_cells)) <= _NARROW else _WIDE


@dataclass(frozen=True)
class FieldProblem:
    """A chunk of frames, each with a field of its own."""

    shape: tuple[int, int]
    count: int
    parts: tuple[int, int]
    """Tiles along rows and columns."""
    nodes: tuple[int, int]
    splines: tuple[int, int]
    """Coefficients along rows and columns."""
    columns: int = _WIDE
    """Of a tile at most."""
    own_references: bool = False
    """Whether every frame has a reference of its own."""

    def __post_init__(self) -> None:
        if min(*self.shape, self.count, *self.parts) < 1 or min(self.splines) < NODES or min(self.nodes) < 2:
            raise ShapeError(f"fields need a frame, two nodes and {NODES} coefficients along an axis: {self}")

    @property
    def tiles(self) -> int:
        """Tiles of a frame."""
        return self.parts[0] * self.parts[1]
