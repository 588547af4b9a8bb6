"""Problems on which engines and kernel variants are compared: a grid, and others beside it drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from xcorr_app.gpu.direct.fft_size import smallest_size
from xcorr_app.gpu.direct.problem import Problem

FULL_SIZES = (16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 512)
WINDOW_SIZES = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
REACHES = (4, 8, 16, 32, 64)
PAIRS = (1, 4, 16, 64, 256, 1024, 4096, 16384)

ODD_SIZES = (17, 21, 29, 35, 43, 51, 61, 75, 90, 101, 126, 150)
UNEQUAL_SHAPES = (
    ((32, 32), (64, 64)), ((128, 128), (32, 32)), ((20, 40), (160, 154)), ((24, 96), (24, 96)), ((96, 24), (96, 24)),
    ((48, 17), (48, 17)), ((64, 190), (50, 30)), ((256, 33), (200, 40)),
)  # fmt: skip
ODD_WINDOW_SIZES = (50, 75, 100, 150, 210, 300, 450, 600, 900)
ODD_REACHES = (3, 6, 12, 20, 28, 48)
OBLONG_SIZES = ((64, 256), (256, 64), (120, 513), (306, 31))
ODD_PAIRS = (1, 8, 32, 128, 512, 2048)

MAX_ELEMENTS = 4e8
"""Of all padded matrices and planes together: a few gigabytes of transforms."""

MAX_PRODUCTS = 6e11
"""Multiply-adds of a problem on which a kernel is still timed (a few tens of milliseconds)."""

TABLE_SEED, CHECK_SEED = 20261121, 20261122
"""Of random problems that go into the table, and of others that only check it."""


@dataclass(frozen=True)
class Case:
    """A problem, and whether its times go into the table (the grid) or only check it."""

    problem: Problem
    on_grid: bool


def pairing(form: str, pairs: int) -> dict[str, int]:
    """Batch of about `pairs` pairs in a form."""
    if form == "n-to-mn":
        return {"lefts": pairs, "rights": pairs}
    if form == "one-to-many":
        return {"rights": pairs, "rights_per_left": pairs}
    side = math.isqrt(pairs)
    return {"lefts": side, "rights": side, "rights_per_left": side}


def window(shape: tuple[int, int], reach: tuple[int, int], batch: dict[str, int]) -> Problem:
    """Problem of equal matrices and a symmetric window."""
    return Problem(shape, shape, (-reach[0], -reach[1]), (2 * reach[0] + 1, 2 * reach[1] + 1), **batch)


def elements(problem: Problem) -> float:
    """Elements of all zero-padded matrices and products, as the FFT needs them."""
    padded = math.prod(
        next_fast_len(smallest_size(left, right, first, first + size - 1), real=True)
        for left, right, first, size in zip(
            problem.left_shape, problem.right_shape, problem.first_shift, problem.plane_shape, strict=True
        )
    )
    return float(padded) * (problem.lefts + problem.rights + 2 * problem.pairs)


def grid() -> Iterator[Case]:
    """Full planes and windows of square matrices, in the forms that people use them in."""
    for pairs in PAIRS:
        forms = ("n-to-mn",) if pairs in (1, 4, 64, 1024, 16384) else ("n-to-mn", "one-to-many", "n-to-m")
        for form in forms:
            for size in FULL_SIZES:
                yield Case(Problem.full_plane((size, size), (size, size), **pairing(form, pairs)), on_grid=True)
        forms = ("one-to-many", "n-to-mn") if pairs in (16, 256, 4096) else ("one-to-many",)
        for form in forms:
            for size in WINDOW_SIZES:
                for reach in (reach for reach in REACHES if 2 * reach <= size):
                    yield Case(window((size, size), (reach, reach), pairing(form, pairs)), on_grid=True)


def odd_grid() -> Iterator[Case]:
    """Sizes that no transform and no 16-byte load likes, unequal and oblong matrices, other numbers of pairs."""
    for pairs in ODD_PAIRS:
        batch = pairing("n-to-mn", pairs)
        for shapes in (*(((size, size), (size, size)) for size in ODD_SIZES), *UNEQUAL_SHAPES):
            yield Case(Problem.full_plane(*shapes, **batch), on_grid=True)
        for i, size in enumerate(ODD_WINDOW_SIZES):
            batch = pairing(("one-to-many", "n-to-mn")[i % 2], pairs)
            for reach in (reach for reach in ODD_REACHES if 2 * reach <= size):
                yield Case(window((size, size), (reach, reach), batch), on_grid=True)
        for shape in OBLONG_SIZES:
            for reach in (5, 12, 31):
                yield Case(window(shape, (reach, reach), pairing("n-to-mn", pairs)), on_grid=True)


def draw(count: int, *, on_grid: bool) -> Iterator[Case]:
    """Random problems: any sizes, unequal matrices, windows to one side, any form and number of pairs."""
    rng = np.random.default_rng(TABLE_SEED if on_grid else CHECK_SEED)

    def size() -> int:
        return round(2 ** rng.uniform(4, 9.5))

    while count:
        left = size(), size()
        if rng.random() < 0.5:
            left = left[0], left[0]
        right = left if rng.random() < 0.6 else (size(), size())
        pairs = round(2 ** rng.uniform(0, 12))
        form = ("n-to-mn", "one-to-many", "n-to-m")[rng.integers(3)]
        batch = pairing(form, pairs)
        kind = rng.integers(3)
        if kind == 0:
            problem = Problem.full_plane(left, right, **batch)
        else:
            reach = [round(2 ** rng.uniform(1.5, 6.2)) for _ in range(2)]
            if kind == 1:
                reach[1] = reach[0]
            first = [-r if kind == 1 else -int(rng.integers(0, 2 * r + 1)) for r in reach]
            problem = Problem(left, right, (first[0], first[1]), (2 * reach[0] + 1, 2 * reach[1] + 1), **batch)
        if elements(problem) <= MAX_ELEMENTS and 1e4 < problem.products <= MAX_PRODUCTS:
            yield Case(problem, on_grid=on_grid)
            count -= 1


def cases(off_grid: int) -> list[Case]:
    """Everything that is measured, in an order that is cut short anywhere without losing one kind of problem."""
    found = [case for case in (*grid(), *odd_grid()) if elements(case.problem) <= MAX_ELEMENTS]
    found += [*draw(300, on_grid=True), *draw(off_grid, on_grid=False)]
    order = np.random.default_rng(1).permutation(len(found))
    return [found[i] for i in order]
