"""Where moved frames cover a mean."""

import numpy as np
import pytest

from xcorr_app.registration.measuring.placement import Placement, coverage


@pytest.mark.parametrize("shift", [0.0, 2.0, -3.0, 1.5, -0.25, -2.75, 0.01, 30.0, -30.5, 1e-12])
def test_a_frame_covers_what_it_can_tell_by_cubic_interpolation(shift):
    """All of itself where it is moved by whole pixels, else all but a pixel of its rim."""
    placement = Placement(np.array([[shift, -shift]]), np.ones(1), np.zeros(1), np.full(1, 0.5))
    rows, columns = coverage(placement, (12, 14))
    for side, moved, weight in ((rows[0], shift, 0.5), (columns[0], -shift, 1.0)):
        places = np.arange(side.size) - moved  # in the frame
        rim = 0.0 if abs(moved - round(moved)) < 1e-6 else 1.0
        inside = (places >= rim - 1e-6) & (places <= side.size - 1 - rim + 1e-6)
        np.testing.assert_array_equal(side, weight * inside)
