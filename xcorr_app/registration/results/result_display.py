"""A measurement of shifts as one line, and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xcorr_app.registration.results.results import ShiftResult

_SHOWN = 24
"""Frames of a table; of a longer stack its first and last ones."""
_COLUMNS = ("frame", "dy", "dx", "sigma y", "sigma x", "score", "flags")


def described(result: ShiftResult) -> str:
    """Number of frames, how many are trusted, and how far these moved."""
    frames, known = len(result.flags), result.shifts[result.trusted]
    counted = f"{frames} frame{'' if frames == 1 else 's'}, {len(known) or 'none'} trusted"
    reach = f", largest shift {np.abs(known).max():.2f} px" if known.size else ""
    return f"ShiftResult({counted}{reach}, reference {result.reference}, {result.engine})"


def as_html(result: ShiftResult) -> str:
    """Write a table with a row for each frame."""
    return html_table(described(result), result.shifts, result.sigma, result.score, result.flags)


def html_table(
    title: str,
    shifts: NDArray[np.float64],
    sigma: NDArray[np.float64],
    score: NDArray[np.float64],
    flags: Sequence[tuple[str, ...]],
) -> str:
    """Write a table of frames; of many, the first and the last ones."""
    count = len(flags)
    numbers = list(range(count))
    if count > _SHOWN:
        numbers = [*numbers[: _SHOWN // 2], -1, *numbers[-_SHOWN // 2 :]]
    rows = []
    for frame in numbers:
        if frame < 0:
            cells = ["&#8942;"] * len(_COLUMNS)
        else:
            values = (*shifts[frame], *sigma[frame])
            cells = [str(frame), *(f"{value:.3f}" for value in values), f"{score[frame]:.3f}"]
            cells.append(escape(", ".join(flags[frame])))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{''.join(rows)}</table>"
