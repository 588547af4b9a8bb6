"""The cases of ``python -m benchmarks correlation``: what is computed, its least arithmetic and traffic.

A full plane of an H x W left and an H' x W' right takes ``H W H' W'`` multiply-adds (FMA); a window takes one for every
shift and element of the smaller matrix, though shifts with a partial overlap need fewer. Bytes
are those of every input and output once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks.harness.case import Work
from xcorr_app.gpu.direct.problem import Problem

Task = Literal["plane", "peak", "zncc-peak"]
"""``plane``: plain sums; ``peak``: their largest, without the plane; ``zncc-peak``: the best score of every frame
against a reference."""

_PEAK_BYTES = 16  # of one result where no plane is asked for: a shift, a value


@dataclass(frozen=True, kw_only=True)
class Case(Work):
    """One row of the benchmark.

    Attributes
    ----------
    problem : Problem
        Sizes, window and pairing.
    task : Task
        What of the planes is wanted.
    left_type, right_type : str
        NumPy names of the matrices' types.
    """

    problem: Problem
    task: Task = "plane"
    left_type: str = "float32"
    right_type: str = "float32"

    @property
    def pairs(self) -> int:
        """Of the batch."""
        return self.problem.pairs

    @property
    def copies(self) -> int:
        """One: matrices that fit the cache stay there, as in the document, and arithmetic takes the time."""
        return 1

    @property
    def fma(self) -> float:
        """Multiply-adds of the whole batch, counted as in the module's docstring."""
        problem = self.problem
        left, right = (float(np.prod(shape)) for shape in (problem.left_shape, problem.right_shape))
        window = float(np.prod(problem.plane_shape)) * min(left, right)
        return problem.pairs * min(left * right, window)

    @property
    def moved_bytes(self) -> float:
        """Bytes of the inputs and outputs, each once."""
        problem = self.problem
        left = problem.lefts * np.prod(problem.left_shape) * np.dtype(self.left_type).itemsize
        right = problem.rights * np.prod(problem.right_shape) * np.dtype(self.right_type).itemsize
        planes = np.prod(problem.plane_shape) * 4 if self.task == "plane" else _PEAK_BYTES
        return float(left + right + problem.pairs * planes)


def _full(size: int, **batch: Any) -> Problem:
    return Problem.full_plane((size, size), (size, size), **batch)


def _window(size: int, most: int, **batch: Any) -> Problem:
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def _frames(count: int, size: int, shifts: int, element: str = "float32") -> Case:
    """Frames against one reference, over a window that whole tiles of the tensor cores cover."""
    problem = Problem((size, size), (size, size), (-shifts // 2, -shifts // 2), (shifts, shifts), **_many(count))
    frames = f"{'' if element == 'float32' else element + ' '}frame{'s' * (count > 1)}"
    name = f"registration {count} {frames} {size}^2 {shifts}x{shifts} zncc peak"
    return Case(name=name, problem=problem, task="zncc-peak", right_type=element)


def _many(count: int) -> dict[str, int]:
    """One left, many rights."""
    return {"rights": count, "rights_per_left": count}


def _each(count: int) -> dict[str, int]:
    """Pairs that share nothing."""
    return {"lefts": count, "rights": count}


def _all(lefts: int, rights: int) -> dict[str, int]:
    """Every left with every right."""
    return {"lefts": lefts, "rights": rights, "rights_per_left": rights}


def _named(name: str, problem: Problem, task: Task = "plane", **more: Any) -> Case:
    return Case(name=name, problem=problem, task=task, **more)


CASES: tuple[Case, ...] = (
    _named("n-to-m 16 x 16 256^2 full", _full(256, **_all(16, 16))),
    _named("ablation n-to-m 4 x 4 256^2 full", _full(256, **_all(4, 4))),
    _named("one-to-many 1 x 256 256^2 full", _full(256, **_many(256))),
    *(_named(f"one-to-one {size}^2 full", _full(size)) for size in (256, 16, 32, 64)),
    _named("registration 256 frames 512^2 +-8 zncc peak", _window(512, 8, **_many(256)), "zncc-peak"),
    _named("one-to-many 256 frames 512^2 +-8 plane", _window(512, 8, **_many(256))),
    _named("n-to-mn 16384 x 32^2 full peak", _full(32, **_each(16384)), "peak"),
    _named("n-to-mn 16384 x 64^2 +-16 peak", _window(64, 16, **_each(16384)), "peak"),
    _named("n-to-mn 16384 x 32^2 full plane", _full(32, **_each(16384))),
    _named("n-to-mn 16384 x 64^2 +-16 plane", _window(64, 16, **_each(16384))),
    _named("n-to-mn 4096 x 64^2 full", _full(64, **_each(4096))),
    _named("n-to-m 64 x 64 64^2 full", _full(64, **_all(64, 64))),
    _named("n-to-m 32 x 32 64^2 full", _full(64, **_all(32, 32))),
    _named("1000 uint16 frames 512^2 +-15 peak", _window(512, 15, **_many(1000)), "peak", right_type="uint16"),
    *(_frames(*sizes) for sizes in ((512, 512, 32), (512, 512, 32, "uint16"), (128, 1024, 32), (128, 1024, 64))),
    *(_frames(*sizes) for sizes in ((32, 2048, 32), (2048, 256, 32), (1, 1024, 32))),
    _named("off-grid one-to-one 100x37 45x101 full", Problem.full_plane((100, 37), (45, 101))),
    _named("off-grid n-to-mn 1000 x 24x40 window", Problem((24, 40), (24, 40), (-5, -9), (9, 22), **_each(1000))),
    _named("off-grid one-to-many 1 x 37 200x180", Problem((200, 180), (200, 180), (-12, -9), (25, 19), **_many(37))),
    _named("off-grid n-to-m 7 x 9 129x65 window", Problem((129, 65), (120, 70), (-20, -4), (24, 36), **_all(7, 9))),
)
"""Every case, in the order in which they are run."""
