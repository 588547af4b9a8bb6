"""What frames that were moved before have been filled with: rows and columns of one value, or of none, at the rim."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.settings import Roi
from xcorr_app.registration.stack.frames import Frames

_RIM = 1
"""Pixels beside a border that interpolation made of it and the scene."""
SURE = 2
"""Rows or columns of a border in some frame: a scene, such as a lattice, may have one of one value by itself."""
_OF_BORDER = 0.5
"""Share of the row or column inside a border that may have the border's value: more is the scene's own dark."""
_LOOKED_AT = 16
"""Frames that lack the most."""
_MIN_AREA, _OF_LINE = 0.6, 0.25
"""Share of the picture that is left at least, less is better measured by all pixels that count; and of a row or column
at the rim that is missing, below which it is kept: a caption in a corner costs no rows."""


def in_borders(frames: Array, at_least: int = 1) -> Array:
    """Pixels of frames (n, h, w) in borders of one value, and what interpolation made of them and the scene."""
    xp = array_namespace(frames)
    found = xp.zeros(frames.shape, dtype=bool)
    for lines, hidden in ((frames, found), (frames.transpose(0, 2, 1), found.transpose(0, 2, 1))):
        uniform = (lines == lines[:, :, :1]).all(axis=2)
        for order in (slice(None), slice(None, None, -1)):
            value, last = lines[:, order, 0], lines.shape[1] - 1
            same = uniform[:, order] & (value == value[:, :1])
            width = xp.cumprod(same.astype(np.int32), axis=1).sum(axis=1)
            beside = lines[:, order][xp.arange(len(lines)), xp.minimum(width + _RIM, last)]
            width = xp.where((beside == value[:, :1]).mean(axis=1) < _OF_BORDER, width, 0)
            outside = xp.arange(last + 1) < xp.where(width >= at_least, width + _RIM, 0)[:, None]
            hidden[:, order] |= outside[:, :, None]
    return found


def finite_part(frames: Frames, lacking: NDArray[np.integer], roi: Roi | None) -> Roi | None:
    """Rows and columns in which frames have values but for a few; None where that is most of none, or all of them.

    `lacking` (T,) are the pixels that each frame lacks, within `roi`.
    """
    rows, columns = (part.indices(size)[:2] for part, size in zip(roi or _WHOLE, frames.shape, strict=True))
    missing = np.zeros((rows[1] - rows[0], columns[1] - columns[0]), dtype=bool)
    # A frame that is lost, or half of it, says nothing of the others.
    counted = np.where(lacking <= (1 - _MIN_AREA) * missing.size, lacking, 0)
    for number in np.argsort(-counted, kind="stable")[:_LOOKED_AT].tolist():
        if counted[number]:
            missing |= ~np.isfinite(to_host(frames.read(number, number + 1).frames[0, slice(*rows), slice(*columns)]))
    inner = without_rims(missing)
    if inner is None:
        return None
    top, left = rows[0], columns[0]
    return slice(top + inner[0].start, top + inner[0].stop), slice(left + inner[1].start, left + inner[1].stop)


def without_rims(missing: NDArray[np.bool_]) -> Roi | None:
    """Rectangle of a picture (Y, X) that is left without the rows and columns at its rim that lack the most.

    None where that is all of it, or too little.
    """
    ends = np.array([(0, size) for size in missing.shape])
    while True:
        part = missing[slice(*ends[0]), slice(*ends[1])]
        if part.size < _MIN_AREA * missing.size:
            return None
        shares = [line.mean() for line in (part[0], part[-1], part[:, 0], part[:, -1])]
        side = int(np.argmax(shares))
        if shares[side] < _OF_LINE:
            break
        ends[divmod(side, 2)] += (1, -1)[side % 2]
    return None if part.size == missing.size else (slice(*ends[0].tolist()), slice(*ends[1].tolist()))


def note(part: Roi) -> str:
    """Say where frames were measured."""
    (top, bottom), (left, right) = ((each.start, each.stop) for each in part)
    where = f"rows {top} to {bottom} and columns {left} to {right}"
    return f"Measured within {where}: beyond them some frames have no values."


_WHOLE: Roi = (slice(None), slice(None))
