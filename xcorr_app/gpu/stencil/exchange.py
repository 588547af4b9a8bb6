"""The published kernel of column and row reuse: its options, and how a launch is cut into warps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.launch import WARP, ceil_div
from xcorr_app.gpu.stencil.problem import FilterProblem

LARGEST_DOUBLE = 48
"""Most rows of taps whose float64 sums stay in registers."""
_EDGE_SHARE = 256
"""Elements of a warp at the edges; also in ``exchange.cu``."""
_MAX_ROWS, _MAX_WARPS = 2**20, 8
_MACROS = {
    "rows": "BLOCK_ROWS",
    "warps": "WARPS",
    "column_reuse": "COLUMN_REUSE",
    "row_reuse": "ROW_REUSE",
    "shared_taps": "SHARED_TAPS",
    "share_last": "SHARED_LAST",
    "edges_apart": "EDGES_APART",
}
"""Option -> the macro that it sets."""


@dataclass(frozen=True)
class ExchangeOptions:
    """The published kernel of column and row reuse, every step of which can be switched off; as published by default.

    A warp computes a sub-block of 32 columns, a lane a column. All options give the same bits.

    Parameters
    ----------
    rows : int
        Most rows of a sub-block, 1 to 2**20: the document's k.
    warps : int
        Warps of a block, 1 to 8.
    column_reuse : bool
        A lane loads two elements of every sub-filter of three or five columns and gets the others from its neighbours
        by shuffles; otherwise it loads all.
    row_reuse : bool
        A row is loaded once, and multiplied with every filter row that needs it; otherwise once for each of them.
    shared_taps : bool
        Taps are staged in shared memory; otherwise they are operands from constant memory.
    share_last : bool
        The elements of the last sub-block of a row, of fewer than 32 columns, are divided among all lanes and computed
        directly; otherwise lanes without a column are idle.
    edges_apart : bool
        Results that need something outside the image are computed directly by warps of their own; otherwise
        sub-blocks cover all results.

    Raises
    ------
    ArgumentError
        For a value out of range.

    Examples
    --------
    >>> ExchangeOptions(rows=28, row_reuse=False).tuning()["BLOCK_ROWS"]
    28
    """

    rows: int = 56
    warps: int = 4
    column_reuse: bool = True
    row_reuse: bool = True
    shared_taps: bool = True
    share_last: bool = True
    edges_apart: bool = True

    def __post_init__(self) -> None:
        for name, most in (("rows", _MAX_ROWS), ("warps", _MAX_WARPS)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 1 <= value <= most:
                raise ArgumentError(f"{name} is {value!r}: kernel 'exchange' takes 1 to {most}")

    def tuning(self) -> dict[str, int]:
        """Macro values for the launch."""
        return {macro: int(getattr(self, name)) for name, macro in _MACROS.items()}


PUBLISHED: Mapping[str, int] = ExchangeOptions().tuning()
"""Macros of the kernel as the document has it."""


def warps_of(problem: FilterProblem, chosen: Mapping[str, int], rows: int) -> int:
    """Count the warps of a launch: sub-blocks of so many rows, and what computes the edges."""
    height, width = problem.result_shape
    inner_height, inner_width = height, width
    if chosen["EDGES_APART"]:
        sizes = zip(problem.image_shape, problem.filter_shape, strict=True)
        inner_height, inner_width = (max(0, size - taps + 1) for size, taps in sizes)
    sub_blocks = ceil_div(inner_width, WARP) * ceil_div(inner_height, rows)
    return problem.count * (sub_blocks + ceil_div(height * width - inner_height * inner_width, _EDGE_SHARE))


def shared_bytes(problem: FilterProblem, chosen: Mapping[str, int], is_double: bool) -> int:
    """Bytes of shared memory of a block: those of the taps."""
    rows, columns = problem.filter_shape
    return rows * columns * (8 if is_double else 4) if chosen["SHARED_TAPS"] else 0
