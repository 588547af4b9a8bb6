"""Sums over all overlaps of a window on the host, by summed-area tables (Crow 1984, doi 10.1145/964965.808600).

Overlaps differ by a few lines along the rim of an image. All that they have in common counts as one line: the table is
then as small as the window, and nothing is done to most pixels but to add them up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray


class _Part(NamedTuple):
    """Lines of an image, and the line or lines of the collapsed one that they become."""

    to: slice
    of: slice
    is_sum: bool


@dataclass(frozen=True)
class CollapsedAxis:
    """One axis of an image whose lines are added up that no overlap is without."""

    size: int
    """Lines that are left."""
    parts: tuple[_Part, ...]
    runs: tuple[tuple[slice, slice, slice], ...]
    """Shifts through which both ends of the overlap move evenly, and where these are: triples of slices."""

    @classmethod
    def of(cls, start: NDArray[np.intp], stop: NDArray[np.intp]) -> CollapsedAxis:
        """Collapse for overlaps from `start` to `stop`, one entry a shift; equal where there is none."""
        there = stop > start
        if not there.any():
            return cls(0, (), tuple(_runs(np.zeros_like(start), np.zeros_like(stop))))
        low, high = int(start[there].min()), int(stop[there].max())
        inner, outer = int(start[there].max()), int(stop[there].min())
        if outer - inner < 2:  # nothing, or a single line, is common to all
            inner = outer = high
        before, common = inner - low, int(outer > inner)
        size = before + common + high - outer
        ends = [0, before, before + common, size]
        parts = [
            _Part(slice(*to), slice(*of), is_sum)
            for to, of, is_sum in zip(
                pairwise(ends), pairwise([low, inner, outer, high]), (False, True, False), strict=True
            )
            if of[1] > of[0]
        ]
        edges = [np.where(ends > inner, ends - outer + inner + common, ends) - low for ends in (start, stop)]
        edges = [np.where(there, at, 0) for at in edges]
        return cls(size, tuple(parts), tuple(_runs(*edges)))


def sums_by_tables(
    images: NDArray[np.floating], rows: CollapsedAxis, columns: CollapsedAxis
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of images (..., h, w) and of their squares over all overlaps, two arrays (..., ny, nx)."""
    counts = [sum(part.stop - part.start for part, _, _ in axis.runs) for axis in (rows, columns)]
    results = [np.empty((*images.shape[:-2], *counts)) for _ in range(2)]
    of_rows = np.empty((counts[0], columns.size + 1))
    for index, tables in zip(np.ndindex(images.shape[:-2]), _tables(images, rows, columns), strict=True):
        for table, result in zip(tables, results, strict=True):
            for at, start, stop in rows.runs:
                np.subtract(table[stop], table[start], out=of_rows[at])
            for at, start, stop in columns.runs:
                np.subtract(of_rows[:, stop], of_rows[:, start], out=result[index][:, at])
    return results[0], results[1]


def _tables(
    images: NDArray[np.floating], rows: CollapsedAxis, columns: CollapsedAxis
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Summed-area tables of every image and of its square, each in the place of the one before."""
    of_values, of_squares = (np.zeros((rows.size + 1, columns.size + 1)) for _ in range(2))
    values, squares = (np.empty((rows.size, columns.size)) for _ in range(2))
    is_whole = not any(part.is_sum for part in (*rows.parts, *columns.parts))
    for index in np.ndindex(images.shape[:-2]):
        image = images[index]
        if rows.size and columns.size:
            if is_whole:
                part = image[rows.parts[0].of, columns.parts[0].of]
                cv2.integral2(part, of_values, of_squares, cv2.CV_64F, cv2.CV_64F)
            else:
                _collapse(image, rows, columns, values, squares)
                cv2.integral(values, of_values, cv2.CV_64F)
                cv2.integral(squares, of_squares, cv2.CV_64F)
        yield of_values, of_squares


def _collapse(
    image: NDArray[np.floating],
    rows: CollapsedAxis,
    columns: CollapsedAxis,
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Write the collapsed image (h, w) and its collapsed square."""
    high = rows.parts[-1].of.stop
    for to_x, of_x, sum_x in columns.parts:
        part = image[:high, of_x]
        if sum_x:
            # One sum a row, in the precision of the image: those of many rows are added in double precision.
            lines = _dots(part, np.ones(part.shape[1], part.dtype)), _dots(part, part)
        else:
            exact = part.astype(np.float64)
            lines = exact, exact * exact
        for to_y, of_y, sum_y in rows.parts:
            for found, each in zip((values, squares), lines, strict=True):
                # Rows of few elements: NumPy's own sum takes three times as long.
                down = cv2.reduce(each[of_y], 0, cv2.REDUCE_SUM, dtype=cv2.CV_64F) if sum_y else each[of_y]
                found[to_y, to_x] = down[..., None] if sum_x else down


def _dots(lines: NDArray[np.floating], others: NDArray[np.floating]) -> NDArray[np.floating]:
    """Products (h,) of lines (h, w) with others, each by itself: BLAS leaves that to one thread."""
    products: NDArray[np.floating] = (lines[:, None] @ others[..., None])[:, 0, 0]
    return products


def _runs(start: NDArray[np.intp], stop: NDArray[np.intp]) -> Iterator[tuple[slice, slice, slice]]:
    steps = np.diff([start, stop], axis=1)
    turns = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 2
    leaps = np.flatnonzero((abs(steps) > 1).any(axis=0)) + 1
    for first, last in pairwise(np.unique([0, *turns, *leaps, start.size])):
        part = slice(int(first), int(last))
        yield part, _run_or_one(start[part]), _run_or_one(stop[part])


def _run_or_one(numbers: NDArray[np.intp]) -> slice:
    """Slice of numbers that follow each other; of one that stays as it is, of one element, which broadcasts."""
    return run(numbers[:1] if numbers[0] == numbers[-1] else numbers)


def run(numbers: NDArray[np.intp]) -> slice:
    """Slice of consecutive numbers, which rise or fall."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last >= first else slice(first, last - 1 if last else None, -1)
