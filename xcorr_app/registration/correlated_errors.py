"""Are the errors of neighbouring parts of a picture alike? Then shifts are less sure than its tiles say one by one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.measuring.measured import ShiftColumns, spread
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.references import FixedImage
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.turned_frames import edges
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.standard_error.correlated_tiles import contributions_of, excess_variance

_SAMPLED_FRAMES, _AT_ONCE = 12, 4
"""Frames."""
_SAME = 2.0
"""Standard errors by which a part that was left out moves the shift of a frame at most, as a rule."""
_OF_ANOTHER_LAYER = 0.01
"""Variance of a shift over that by tiles, below which what tiles share is another layer, to which phases are blind: of
haze it is 0.003, of frames that grow 0.03 and more, seen through air a half."""
_MAX_DISTANCE = 0.75
"""Pixels by which the edges of frames that turn may move: tiles are compared where they are but for the shift."""


def same_shifts(one: ShiftColumns, other: ShiftColumns) -> bool:
    """Whether shifts of most frames of which `one` left a part out are those of `other`, as far as `one` is sure.

    The other's own errors do not count: a part with a motion of its own makes them as large as what it changes.
    """
    known = one.partial & np.isfinite(one.shifts + other.shifts).all(axis=1) & (one.sigma > 0).all(axis=1)
    errors = np.hypot(one.sigma, 0.0 if one.shared is None else one.shared)[known]
    beyond = np.abs(one.shifts - other.shifts)[known] - _SAME * errors
    return bool(known.any() and np.median(beyond.max(axis=1)) < 0)


def excess(
    measurement: Measurement, reference: str | int | np.integer[Any], measured: ShiftColumns, *, in_parts: bool = True
) -> NDArray[np.float64]:
    """Pixels (T, 2) that standard errors lack, to be added in squares; zero where there is no reference frame.

    A frame of the stack is the reference, and is sure of itself. Parts that shifts were measured without are left out,
    unless not `in_parts`.
    """
    count, settings = len(measured.sigma), measurement.settings
    number, trusted, by = frame_number(reference, count), measured.trusted(settings), np.zeros_like(measured.sigma)
    sampled = trusted & (np.arange(count) != number)
    if measured.linear is not None:
        linear = np.where(np.isfinite(measured.linear), measured.linear, np.eye(2))
        sampled &= edges(linear - np.eye(2), measurement.shape) < _MAX_DISTANCE
    if number is None or not trusted[number] or not sampled.any():
        return by
    few, shifts = spread(np.flatnonzero(sampled), _SAMPLED_FRAMES), measured.shifts
    (images,) = measurement.prepared.usable((number,))
    parted = in_parts and measured.partial.any() and masks.some_differ(measured.tiles)
    out = masks.Parts(masks.left_out(measured.tiles), shifts) if parted else None

    def pairs() -> Iterator[tuple[Array, Array, NDArray[np.float64]]]:
        for start in range(0, few.size, _AT_ONCE):
            some = few[start : start + _AT_ONCE]
            frames = array_namespace(images).concatenate(measurement.prepared.usable(tuple(some.tolist())))
            yield *(out.leave_out(images, frames, some, noisy=False) if out else (images, frames)), shifts[some]

    found = contributions_of(pairs(), measurement.kernel(FixedImage(images[0])), images.shape[1:], shifts[few])
    if found is None:
        return by
    # Of frames that grow or turn a little tiles are off alike, and the middle is not; most share nothing beyond that.
    beyond = excess_variance(found, linear=True)
    of_all = np.minimum(beyond, excess_variance(found)) if beyond.any() else beyond
    shares = measured.sigma**2 > _OF_ANOTHER_LAYER * (found.errors**2).sum(axis=2).mean(axis=0)
    return np.where(shares & (np.arange(count) != number)[:, None], np.sqrt(of_all), 0.0)
