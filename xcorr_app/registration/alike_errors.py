"""Are the errors of neighbouring parts of a picture alike? Then shifts are less sure than its tiles say one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import array_namespace
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.reference.strategies import Estimation
from xcorr_app.registration.standard_error.alike_tiles import CommonTiles, excess_variance

_LOOKED_AT, _AT_ONCE, _FEWEST = 16, 4, 4


def excess(estimation: Estimation, reference: str | int | np.integer[Any], measured: Measured) -> NDArray[np.float64]:
    """Pixels (T, 2) that standard errors lack, to be added in squares; zero where there is no reference frame.

    A frame of the stack is the reference, and is sure of itself.
    """
    nothing, count = np.zeros_like(measured.sigma), len(measured.sigma)
    number = frame_number(reference, count)
    if number is None:
        return nothing
    whole = measured.trusted(estimation.settings) & ~measured.partial
    others = np.flatnonzero(whole & (np.arange(count) != number))
    if others.size < _FEWEST or not whole[number]:
        return nothing
    few, measurement = spread(others, _LOOKED_AT), estimation.measurement
    (image,) = measurement.prepared.usable((number,))
    tiles = CommonTiles(image[0], measurement.kernel_for(image[0]), measured.shifts[few])
    if tiles.are_few:
        return nothing
    for start in range(0, few.size, _AT_ONCE):
        some = few[start : start + _AT_ONCE]
        frames = measurement.prepared.usable(tuple(some.tolist()))
        tiles.add(array_namespace(image).concatenate(frames), measured.shifts[some])
    found = tiles.contributions()
    if found is None:
        return nothing
    return np.where((np.arange(count) != number)[:, None], np.sqrt(excess_variance(found)), 0.0)
