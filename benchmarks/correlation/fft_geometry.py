"""How peers lay matrices out for an FFT: padded by the window only, with the window at the plane's corner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from scipy.fft import next_fast_len

from benchmarks.harness.contender import index_at, plane_at
from xcorr_app.gpu.direct.problem import Problem


@dataclass(frozen=True)
class Layout:
    """Roles, grid and places of the matrices of a problem.

    A spectrum is conjugated for the matrices that play ``fixed``: the single left, where many rights share one left,
    else the rights. With the roles exchanged the plane comes out turned by 180 degrees, which costs nothing to read.

    Attributes
    ----------
    moving_shape, fixed_shape : tuple of int
        (height, width) by role.
    grid : tuple of int
        Size of the transform, free of wrap-around within the window.
    moving_at, fixed_at : tuple of int
        Where the matrices lie in it, so that the window begins at the plane's first element.
    plane_shape : tuple of int
        Of the window.
    moving, fixed, fixed_per_moving : int
        Counts by role.
    turned : bool
        Whether the roles are exchanged.
    """

    moving_shape: tuple[int, int]
    fixed_shape: tuple[int, int]
    grid: tuple[int, int]
    moving_at: tuple[int, int]
    fixed_at: tuple[int, int]
    plane_shape: tuple[int, int]
    moving: int
    fixed: int
    fixed_per_moving: int
    turned: bool

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        """Lay out a problem of any form, window and sizes, on the smallest grid of good lengths."""
        turned = problem.lefts == 1 and problem.rights > 1
        shapes = problem.left_shape, problem.right_shape
        first, counts = problem.first_shift, (problem.lefts, problem.rights, problem.rights_per_left)
        if turned:
            shapes = shapes[1], shapes[0]
            first = 1 - first[0] - problem.plane_shape[0], 1 - first[1] - problem.plane_shape[1]
            counts = (problem.rights, 1, 1)
        least = [
            max(left, right, n, left - f, right + f + n - 1, right + f)
            for left, right, f, n in zip(*shapes, first, problem.plane_shape, strict=True)
        ]
        grid = tuple(next_fast_len(n, real=True) for n in least)
        moving_at, fixed_at = (max(0, -first[0]), max(0, -first[1])), (max(0, first[0]), max(0, first[1]))
        return cls(*shapes, (grid[0], grid[1]), moving_at, fixed_at, problem.plane_shape, *counts, turned)

    def on_grids(self, count: int) -> Iterator[Layout]:
        """Yield this layout, then the same on the next larger grids whose lengths have no prime factor above 11."""
        yield self
        larger = ((n for n in range(size + 2, 2 * size, 2) if _is_good(n)) for size in self.grid)
        for grid in islice(zip(*larger, strict=False), count - 1):
            yield replace(self, grid=(grid[0], grid[1]))

    def by_role(self, lefts: Any, rights: Any) -> tuple[Any, Any]:
        """Return the moving and the fixed matrices."""
        return (rights, lefts) if self.turned else (lefts, rights)

    def chunks(self, most: int) -> Iterator[tuple[slice, slice]]:
        """Yield moving matrices, at most so many at a time, and the fixed ones that each of them is correlated with."""
        shared = self.fixed == self.fixed_per_moving
        for start in range(0, self.moving, most):
            stop = min(start + most, self.moving)
            mine = slice(start * self.fixed_per_moving, stop * self.fixed_per_moving)
            yield slice(start, stop), slice(None) if shared else mine

    def cut(self, planes: Any) -> Any:
        """Return the window, as a view, of planes (..., grid rows, grid columns)."""
        return planes[..., : self.plane_shape[0], : self.plane_shape[1]]

    def read_plane(self, result: Any, pair: int) -> Any:
        """Read one plane, the right way round."""
        plane = plane_at(result, pair)
        return plane[::-1, ::-1] if self.turned else plane

    def read_index(self, result: Any, pair: int) -> int:
        """Read one peak's flat index in the plane the right way round."""
        index = index_at(result, pair)
        return self.plane_shape[0] * self.plane_shape[1] - 1 - index if self.turned else index

    @staticmethod
    def place(into: Any, matrices: Any, at: tuple[int, int]) -> None:
        """Write matrices into zeros of the grid's size, at `moving_at` or `fixed_at`."""
        height, width = matrices.shape[-2:]
        into[: matrices.shape[0], at[0] : at[0] + height, at[1] : at[1] + width] = matrices


def _is_good(length: int) -> bool:
    for prime in (2, 3, 5, 7, 11):
        while length % prime == 0:
            length //= prime
    return length == 1
