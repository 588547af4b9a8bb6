"""A glance at lines of a few frames in device memory, which says of most series that nothing is wrong with them.

Both whether odd rows lie beside the others and whether lines have offsets of their own is told by sums over lines: one
launch makes them, and one wait brings all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.line_sums import line_sums
from xcorr_app.gpu.runtime.arrays import is_device_array
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.measuring.measured import spread
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Frames

OF_SWEPT, OF_LEVELS = 5, 4
"""Frames that are looked at, spread over the series, where a glance leaves open whether they are as they should be."""
MIN_ROWS, MAX_ROWS = 64, 256
"""Rows and columns below which no kernel is asked, and rows in the middle of a frame that tell as a rule."""


@dataclass(frozen=True)
class LineGlance:
    """Sums over lines: of two frames (2, pairs) of odd rows, of another means of parts of its lines (n, 16)."""

    shared: NDArray[np.float64]
    """Slope of the mean of the rows beside an odd one, times by how much that differs, and"""
    own: NDArray[np.float64]
    """the slope squared."""
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]


def glance(frames: Frames, usable: NDArray[np.intp], settings: Settings) -> LineGlance | None:
    """Look at frames among the usable ones, once; None where they are no integers on a device, measured as stored."""
    is_plain = settings.prefilter.name is None and settings.contrast.sigma is None and settings.roi is None
    if not isinstance(frames, ArrayFrames) or not is_plain or frames.dtype.kind not in "iu":
        return None
    if usable.size < OF_SWEPT or min(frames.shape) < MIN_ROWS:
        return None
    numbers = (*spread(usable, OF_SWEPT)[1:3].tolist(), int(spread(usable, OF_LEVELS)[1]))
    if numbers not in frames.glances:
        images = [frames.read(number, number + 1).frames[0] for number in numbers]
        if not is_device_array(images[0]) or name_of(frames.dtype) not in INPUT_TYPES:
            return None
        middle = middle_rows(frames.shape[0])
        pairs = (min(middle.stop, frames.shape[0]) - middle.start - 1) // 2
        (shared, own), (rows, columns) = line_sums((images[0], images[1]), images[2], middle.start, pairs)
        frames.glances[numbers] = LineGlance(shared, own, rows, columns)
    found: LineGlance = frames.glances[numbers]
    return found


def middle_rows(rows: int) -> slice:
    """At most `MAX_ROWS` rows in the middle of an image."""
    first = max(rows - MAX_ROWS, 0) // 2
    return slice(first, first + MAX_ROWS)
