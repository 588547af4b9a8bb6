"""The cases of ``python -m benchmarks correlation``: what is computed, its least arithmetic and traffic.

A full plane of an H x W left and an H' x W' right takes ``H W H' W'`` multiply-adds (FMA); a window takes one for every
shift and element of the smaller matrix, as the goals count it, though shifts with a partial overlap need fewer. Bytes
are those of every input and output once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from benchmarks.harness.device_rates import DeviceRates
from xcorr_app.gpu.direct.problem import Problem

__all__ = ["CASES", "TASKS", "Case", "Task", "cases_named"]

Task = Literal["plane", "peak", "zncc-peak", "call"]
"""``plane``: plain sums; ``peak``: their largest, without the plane; ``zncc-peak``: the best score of every frame
against a reference; ``call``: one Python call to the finished plane."""
TASKS: tuple[str, ...] = get_args(Task)

_PEAK_BYTES = 16  # of one result where no plane is asked for: a shift, a value


@dataclass(frozen=True)
class Case:
    """One row of the benchmark.

    Attributes
    ----------
    name : str
        What the tables and ``--only`` call it.
    problem : Problem
        Sizes, window and pairing.
    task : Task
        What of the planes is wanted.
    left_type, right_type : str
        NumPy names of the matrices' types.
    goal : str
        What is to be reached, for the reader; empty where nothing is stated.
    group : str
        A word by which ``--only`` finds cases that belong together.
    """

    name: str
    problem: Problem
    task: Task = "plane"
    left_type: str = "float32"
    right_type: str = "float32"
    goal: str = ""
    group: str = ""

    @property
    def fma(self) -> float:
        """Multiply-adds of the whole batch, counted as in the module's docstring."""
        problem = self.problem
        left, right = (float(np.prod(shape)) for shape in (problem.left_shape, problem.right_shape))
        window = float(np.prod(problem.plane_shape)) * min(left, right)
        return problem.pairs * min(left * right, window)

    @property
    def products(self) -> float:
        """Multiply-adds that are left when elements outside the overlap of a shift are skipped."""
        return float(self.problem.products)

    @property
    def moved_bytes(self) -> float:
        """Bytes of the inputs and outputs, each once."""
        problem = self.problem
        left = problem.lefts * np.prod(problem.left_shape) * np.dtype(self.left_type).itemsize
        right = problem.rights * np.prod(problem.right_shape) * np.dtype(self.right_type).itemsize
        planes = np.prod(problem.plane_shape) * 4 if self.task in ("plane", "call") else _PEAK_BYTES
        return float(left + right + problem.pairs * planes)

    def floor_seconds(self, rates: DeviceRates) -> float:
        """Least time of the whole batch by direct arithmetic, at the rates measured in the same run."""
        return max(self.fma / rates.fma, self.moved_bytes / rates.copy)


def cases_named(text: str) -> Iterator[Case]:
    """Yield the cases whose name contains a text, or whose group it is.

    Parameters
    ----------
    text : str
        Empty for all of them.

    Yields
    ------
    Case
        In the order of the table.
    """
    yield from (case for case in CASES if text in case.name or text == case.group)


def _full(size: int, **batch: int) -> Problem:
    return Problem.full_plane((size, size), (size, size), **batch)


def _window(size: int, most: int, **batch: int) -> Problem:
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def _frames(count: int, size: int, shifts: int, goal: str, *, element: str = "float32") -> Case:
    """Frames against one reference, over a window that whole tiles of the tensor cores cover."""
    problem = Problem((size, size), (size, size), (-shifts // 2, -shifts // 2), (shifts, shifts), **_many(count))
    frames = f"{'' if element == 'float32' else element + ' '}frame{'s' * (count > 1)}"
    name = f"registration {count} {frames} {size}^2 {shifts}x{shifts} zncc peak"
    return Case(name, problem, "zncc-peak", right_type=element, goal=goal, group="tensor")


def _many(count: int) -> dict[str, int]:
    """One left, many rights."""
    return {"rights": count, "rights_per_left": count}


def _each(count: int) -> dict[str, int]:
    """Pairs that share nothing."""
    return {"lefts": count, "rights": count}


def _all(lefts: int, rights: int) -> dict[str, int]:
    """Every left with every right."""
    return {"lefts": lefts, "rights": rights, "rights_per_left": rights}


CASES: tuple[Case, ...] = (
    Case("n-to-m 16 x 16 256^2 full", _full(256, **_all(16, 16)), goal="0.75 F"),
    Case("ablation n-to-m 4 x 4 256^2 full", _full(256, **_all(4, 4))),
    Case("one-to-many 1 x 256 256^2 full", _full(256, **_many(256)), goal="0.70 F"),
    Case("one-to-one 256^2 full", _full(256), goal="0.50 F"),
    Case("one-to-one 16^2 full", _full(16), goal="2.0 us"),
    Case("one-to-one 32^2 full", _full(32), goal="3.5 us"),
    Case("one-to-one 64^2 full", _full(64), goal="8 us"),
    Case(
        "registration 256 frames 512^2 +-8 zncc peak",
        _window(512, 8, **_many(256)),
        task="zncc-peak",
        goal="0.60 F, 1.8x PyTorch FFT",
    ),
    Case("one-to-many 256 frames 512^2 +-8 plane", _window(512, 8, **_many(256)), goal="0.60 F"),
    Case(
        "n-to-mn 16384 x 32^2 full peak",
        _full(32, **_each(16384)),
        task="peak",
        goal="1.8x FFT + argmax, tensor 3x",
        group="tensor",
    ),
    Case(
        "n-to-mn 16384 x 64^2 +-16 peak",
        _window(64, 16, **_each(16384)),
        task="peak",
        goal="1.5x FFT + argmax, tensor 5x",
        group="tensor",
    ),
    Case("n-to-mn 16384 x 32^2 full plane", _full(32, **_each(16384))),
    Case("n-to-mn 16384 x 64^2 +-16 plane", _window(64, 16, **_each(16384))),
    Case("n-to-mn 4096 x 64^2 full", _full(64, **_each(4096)), goal="auto takes the FFT where it wins"),
    Case("n-to-m 64 x 64 64^2 full", _full(64, **_all(64, 64)), goal="auto takes the FFT where it wins"),
    Case(
        "n-to-m 32 x 32 64^2 full",
        _full(64, **_all(32, 32)),
        goal="tensor fp16 1.5x batched cuFFT",
        group="tensor",
    ),
    Case(
        "1000 uint16 frames 512^2 +-15 peak",
        _window(512, 15, **_many(1000)),
        task="peak",
        right_type="uint16",
        goal="beside the strongest FFT",
    ),
    _frames(512, 512, 32, "1.0 us a frame"),
    _frames(512, 512, 32, "not slower than float32", element="uint16"),
    _frames(128, 1024, 32, "5x PyTorch FFT"),
    _frames(128, 1024, 64, "2x PyTorch FFT"),
    _frames(32, 2048, 32, "4x PyTorch FFT"),
    _frames(2048, 256, 32, "0.5 us a frame"),
    _frames(1, 1024, 32, "3x PyTorch FFT"),
    Case("off-grid one-to-one 100x37 45x101 full", Problem.full_plane((100, 37), (45, 101))),
    Case("off-grid n-to-mn 1000 x 24x40 window", Problem((24, 40), (24, 40), (-5, -9), (9, 22), **_each(1000))),
    Case("off-grid one-to-many 1 x 37 200x180", Problem((200, 180), (200, 180), (-12, -9), (25, 19), **_many(37))),
    Case("off-grid n-to-m 7 x 9 129x65 window", Problem((129, 65), (120, 70), (-20, -4), (24, 36), **_all(7, 9))),
    Case("call one pair 16^2", _full(16), task="call", goal="5x PyTorch FFT and cupyx correlate"),
    Case("call one pair 32^2", _full(32), task="call", goal="5x PyTorch FFT and cupyx correlate"),
    Case("call one pair 64^2", _full(64), task="call", goal="5x PyTorch FFT and cupyx correlate"),
)
"""Every case, in the order in which they are run."""
