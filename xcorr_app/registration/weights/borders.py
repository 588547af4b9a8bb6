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
_SAMPLED_FRAMES = 16
"""Frames that lack the most."""
_MIN_AREA, _OF_LINE = 0.6, 0.25
"""Share of the picture that is left at least, less is better measured by all pixels that count; and of a row or column
that is missing, from which it is left out: a caption in a corner costs no rows."""
_WHOLE: Roi = (slice(None), slice(None))


def in_borders(frames: Array, at_least: int = 1) -> Array:
    """Pixels of frames (n, h, w) in borders of one value, and what interpolation made of them and the scene."""
    xp = array_namespace(frames)
    found = xp.zeros(frames.shape, dtype=bool)
    for lines, hidden in ((frames, found), (frames.transpose(0, 2, 1), found.transpose(0, 2, 1))):
        for order in (slice(None), slice(None, None, -1)):
            inwards = lines[:, order]
            width, last = _first_of_one_value(inwards), lines.shape[1] - 1
            beside = inwards[xp.arange(len(lines)), xp.minimum(width + _RIM, last)]
            width = xp.where((beside == inwards[:, 0, :1]).mean(axis=1) < _OF_BORDER, width, 0)
            width = xp.where(width >= at_least, width + _RIM, 0)
            hidden[:, order][:, : int(width.max())] |= (xp.arange(int(width.max())) < width[:, None])[:, :, None]
    return found


def _first_of_one_value(lines: Array, looked_at: int = 4) -> Array:
    """How many of the first lines of frames (n, lines, pixels) have the value of the first pixel throughout.

    A few are looked at before others are: few frames have borders, and fewer have wide ones.
    """
    same = (lines[:, :looked_at] == lines[:, :1, :1]).all(axis=2)
    width = array_namespace(lines).cumprod(same.astype(np.int32), axis=1).sum(axis=1)
    is_known = looked_at >= lines.shape[1] or int(width.max()) < looked_at
    return width if is_known else _first_of_one_value(lines, 4 * looked_at)


def finite_part(frames: Frames, lacking: NDArray[np.integer], roi: Roi | None) -> Roi | None:
    """Rows and columns in which frames have values but for a few; None where that is most of none, or all of them.

    `lacking` (T,) are the pixels that each frame lacks, within `roi`.
    """
    missing = np.zeros(frames.shape, dtype=bool)
    inside = missing[roi or _WHOLE]
    # A frame that is lost, or half of it, says nothing of the others.
    counted = np.where(lacking <= (1 - _MIN_AREA) * inside.size, lacking, 0)
    for number in np.argsort(-counted, kind="stable")[: min(_SAMPLED_FRAMES, np.count_nonzero(counted))].tolist():
        missing |= ~np.isfinite(to_host(frames.read(number, number + 1).frames[0]))
    return without_rims(missing, roi)


def without_rims(missing: NDArray[np.bool_], roi: Roi | None = None) -> Roi | None:
    """Rectangle of a picture (Y, X) without the rows and columns at its rim that lack much; None for all, or little."""
    first = [each.indices(size)[0] for each, size in zip(roi or _WHOLE, missing.shape, strict=True)]
    part, ends = missing[roi or _WHOLE], [slice(0, 0), slice(0, 0)]
    for axis in (0, 1):
        # Rows by their middle, where columns at the rim are not, and columns by the rows that are left.
        across = part[:, part.shape[1] // 4 : -(-3 * part.shape[1] // 4)] if axis == 0 else part[ends[0]]
        kept = np.flatnonzero(across.mean(axis=1 - axis) < _OF_LINE)
        if not kept.size:
            return None
        ends[axis] = slice(kept[0], kept[-1] + 1)
    left = part[tuple(ends)].size
    if left < _MIN_AREA * part.size or left == part.size:
        return None
    rows, columns = (slice(int(at + end.start), int(at + end.stop)) for at, end in zip(first, ends, strict=True))
    return rows, columns


def note(part: Roi) -> str:
    """Say where frames were measured."""
    where = " and ".join(
        f"{name} {each.start} to {each.stop}" for name, each in zip(("rows", "columns"), part, strict=True)
    )
    return f"Measured within {where}: beyond them some frames have no values."
