"""How much work a correlation is for the FFT and for the kernels that may win it: counts, no times, no device."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcorr_app.gpu.direct.fft_size import fast_length, smallest_size
from xcorr_app.gpu.direct.problem import Problem

__all__ = ["FFTWork", "KernelWork", "fft_work"]


@dataclass(frozen=True)
class KernelWork:
    """What the blocks of a kernel do, in instructions of a warp where not said otherwise.

    Attributes
    ----------
    all_products : float
        Of all blocks: multiply-adds and the loads that feed them.
    longest_products : float
        Of the warp that has the most, which a launch of few blocks waits for.
    blocks, warps : int
        Blocks of a launch, warps of a block.
    waves : float
        Blocks over the number that the device holds at a time.
    staged, scattered : float
        Elements that a block copies into shared memory: four at a time, and those that are not aligned for that.
    chunks : float
        How many times a block stages.
    sums : int
        Results of a thread.
    code : int
        Instructions in a row of the innermost loop's body, which a launch must fetch before it runs at full speed.
    writes : float
        Elements that all threads write, or add, to the plane.
    launches : int
        One after the other, of equal size.
    passes : int
        Further passes over the plane, to zero it or to add up segments.
    passed_bytes : float
        Bytes that these move.
    """

    all_products: float
    longest_products: float
    blocks: int
    warps: int
    waves: float
    staged: float
    scattered: float
    chunks: float
    sums: int
    code: int
    writes: float
    launches: int
    passes: int
    passed_bytes: float

    def coordinates(self) -> tuple[float, ...]:
        """Where the work lies among others: close points take about the same share of the model's time."""
        return (
            math.log2(self.waves),
            0.7 * math.log2(self.longest_products + 1),
            math.log2(self.sums),
            0.3 * math.log2(self.all_products + 1),
            0.7 * math.log2(self.warps),
            float(self.passes),
            2.0 * (self.scattered > 0),
        )


@dataclass(frozen=True)
class FFTWork:
    """What the transforms move, of all matrices or pairs together.

    Attributes
    ----------
    rows, columns : int
        Transform size.
    matrices : float
        Elements of the matrices.
    padded : float
        Elements of the padded matrices.
    spectra : float
        Complex elements of the matrices' spectra.
    products : float
        Complex elements of the pairs' spectra.
    planes : float
        Elements of the padded planes.
    shifts : float
        Elements of the planes.
    pieces : int
        In how many the window is copied out of a padded plane.
    """

    rows: int
    columns: int
    matrices: float
    padded: float
    spectra: float
    products: float
    planes: float
    shifts: float
    pieces: int

    def coordinates(self) -> tuple[float, ...]:
        """Where the work lies among others."""
        return (
            math.log2(self.rows),
            math.log2(self.columns),
            0.5 * math.log2(self.spectra),
            0.5 * math.log2(self.products),
            0.3 * math.log2(self.shifts),
        )


def fft_work(problem: Problem) -> FFTWork:
    """Count the work of engine ``fft``."""
    rows, columns = (
        fast_length(smallest_size(left, right, first, first + count - 1))
        for left, right, first, count in zip(
            problem.left_shape, problem.right_shape, problem.first_shift, problem.plane_shape, strict=True
        )
    )
    half = columns // 2 + 1
    count = problem.lefts + problem.rights
    left, right = math.prod(problem.left_shape), math.prod(problem.right_shape)
    return FFTWork(
        rows,
        columns,
        matrices=float(problem.lefts * left + problem.rights * right),
        padded=float(count * rows * columns),
        spectra=float(count * rows * half),
        products=float(problem.pairs * rows * half),
        planes=float(problem.pairs * rows * columns),
        shifts=float(problem.pairs * math.prod(problem.plane_shape)),
        pieces=math.prod(
            1 + (first < 0 <= first + size - 1)
            for first, size in zip(problem.first_shift, problem.plane_shape, strict=True)
        ),
    )
