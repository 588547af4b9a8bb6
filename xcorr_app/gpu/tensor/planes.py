"""Planes of plain sums on the device's tensor cores."""

from __future__ import annotations

from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.search import integer_macros
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.tensor.sums import prepared_sums


def plain_sums(
    problem: Problem, lefts: Any, rights: Any, window: SummedAreaTables, kernel: str, *, split: int = 2, out: Any
) -> Any:
    """Sum products over a window of shifts by a kernel of the family, in split fp16 nearly in single precision."""
    tables = window.left(lefts), window.right(rights)
    prepared_sums(problem, lefts.dtype, rights.dtype, window.cells, kernel, split=split)(lefts, rights, tables, out)
    launch = uncentre_launch(problem, (lefts.dtype.kind != "f", rights.dtype.kind != "f"))
    start(launch, (out, *tables, window.rows, window.columns), (*problem.arguments(), *window.sizes, 1))
    return out


def uncentre_launch(problem: Problem, centred: tuple[bool, bool]) -> Launch:
    """Launch what turns planes of sums of centred products into plain sums, in place."""
    threads = 256
    blocks = problem.pairs * ceil_div(problem.plane_shape[0] * problem.plane_shape[1], threads)
    return Launch("tensor/uncentre", {"THREADS": threads, **integer_macros(centred)}, blocks, threads)
