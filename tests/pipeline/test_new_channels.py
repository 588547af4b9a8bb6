"""Axes and calibration of a result whose axis became channels."""

import numpy as np
import pytest

from xcorr_app.io import StackMetadata
from xcorr_app.pipeline.new_channels import with_new_channels

OLD = {"pixel_size": (0.1, 0.2), "unit": "µm", "z_step": 0.5, "z_unit": "nm", "time_increment": 2.0, "time_unit": "s"}
SIZES = {"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}


@pytest.mark.parametrize("kind", ["ome", "imagej", "tiff"])
@pytest.mark.parametrize(
    ("order", "axis"),
    [("TZC", "C"), ("ZCT", "C"), ("CZT", "C"), ("ZT", "Z"), ("ZT", "T"), ("TZ", "T"), ("TZ", "Z"), ("T", "T")],
)
@pytest.mark.parametrize("count", [1, 3])
def test_the_other_axes_stay_in_their_order(kind, order, axis, count):
    old = StackMetadata(order + "YX", tuple(SIZES[a] for a in order + "YX"), np.dtype(np.uint8), kind, **OLD)
    names = tuple("ABC"[:count])
    found = with_new_channels(old, axis, count, names, np.dtype(np.float32))
    others = [other for other in order if other != axis]
    if kind == "imagej":
        others = [other for other in "TZ" if other in others]
    assert found.axes == "".join(others) + ("C" if count > 1 else "") + "YX"
    assert found.shape == tuple({**SIZES, "C": count}[a] for a in found.axes)
    assert (found.dtype, found.channel_names, found.kind) == (np.dtype(np.float32), names, kind)
    assert (found.pixel_size, found.unit) == ((0.1, 0.2), "µm")
    assert (found.time_increment, found.time_unit) == ((None, None) if axis == "T" else (2.0, "s"))
    assert (found.z_step, found.z_unit) == ((None, None) if axis == "Z" else (0.5, "nm"))
