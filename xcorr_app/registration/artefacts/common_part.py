"""The part of a picture that every frame shows, where frames lack pixels at their rims.

Frames that another program has moved end in borders of NaN or of one value, and films in black bars. Filled, these are
edges that stand where each frame was moved to, or still, and pull its shift there; a window without them is compared
as any other is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.settings import Roi
from xcorr_app.registration.stack.frames import Frames

_LOOKED_AT = 16
"""Frames that lack the most."""
_MIN_AREA = 0.6
"""Of the picture, that is left at least: less is better measured by all pixels that count."""
_OF_LINE = 0.25
"""Share of a row or column at the rim that is missing, below which it is kept: a caption in a corner costs no rows."""


def finite_part(frames: Frames, lacking: NDArray[np.integer], roi: Roi | None) -> Roi | None:
    """Rows and columns in which frames have values but for a few; None where that is most of none, or all of them.

    `lacking` (T,) are the pixels that each frame lacks, within `roi`.
    """
    rows, columns = (part.indices(size)[:2] for part, size in zip(roi or _WHOLE, frames.shape, strict=True))
    missing = np.zeros((rows[1] - rows[0], columns[1] - columns[0]), dtype=bool)
    # A frame that is lost, or half of it, says nothing of the others.
    counted = np.where(lacking <= (1 - _MIN_AREA) * missing.size, lacking, 0)
    for number in np.argsort(-counted, kind="stable")[:_LOOKED_AT]:
        chunk = frames.read(int(number), int(number) + 1)
        if not counted[number] or chunk.unreadable:
            continue
        missing |= ~np.isfinite(to_host(chunk.frames[0, slice(*rows), slice(*columns)]))
    inner = without_rims(missing)
    if inner is None:
        return None
    top, left = rows[0], columns[0]
    return slice(top + inner[0].start, top + inner[0].stop), slice(left + inner[1].start, left + inner[1].stop)


def without_rims(missing: NDArray[np.bool_]) -> Roi | None:
    """Rectangle of a picture (Y, X) that is left without the rows and columns at its rim that lack the most."""
    first, last = [0, 0], list(missing.shape)
    while True:
        part = missing[first[0] : last[0], first[1] : last[1]]
        if part.size < _MIN_AREA * missing.size:
            return None
        lines = (part[0], part[-1], part[:, 0], part[:, -1])
        shares = [float(line.mean()) for line in lines]
        side = int(np.argmax(shares))
        if shares[side] < _OF_LINE:
            break
        axis, at_end = divmod(side, 2)
        if at_end:
            last[axis] -= 1
        else:
            first[axis] += 1
    if part.size == missing.size:
        return None
    return slice(first[0], last[0]), slice(first[1], last[1])


def note(part: Roi) -> str:
    """Say where frames were measured."""
    (top, bottom), (left, right) = ((each.start, each.stop) for each in part)
    where = f"rows {top} to {bottom} and columns {left} to {right}"
    return f"Measured within {where}: beyond them some frames have no values."


_WHOLE: Roi = (slice(None), slice(None))
