"""What moves frames, and why; and that the plans of single shifts and of many agree."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.registration.moving.interpolation import METHODS, ORDERS, inside, inside_each, snap, snap_each
from xcorr_app.registration.moving.moving_choice import decide_moving

H200 = KNOWN_DEVICES["h200"]


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_an_engine_on_a_device_and_on_the_cpu(order):
    there, here = (decide_moving((512, 512), 512, "uint16", order, limits) for limits in (H200, None))
    assert (there.engine, there.kernel) == (("fft", "") if order == "fourier" else ("resample", METHODS[order]))
    assert here.engine == {0: "numpy", "fourier": "fft"}.get(order, "opencv")
    for decision in (there, here):
        assert decision.reason
        assert decision.name in {candidate.name for candidate in decision.candidates}


def test_the_expected_time_grows_with_the_frames():
    few, many = (decide_moving((512, 512), count, "uint16", 1, H200).candidates[0].microseconds for count in (1, 512))
    assert 0 < few < many


def test_unknown_orders_are_refused():
    with pytest.raises(ArgumentError, match="order=2"):
        decide_moving((8, 8), 1, "uint16", 2, None)


def test_single_shifts_and_many_agree(rng):
    shifts = rng.uniform(-30, 30, 400)
    shifts[::4] = np.rint(shifts[::4]) + rng.choice([0, 1e-12, -1e-12, 9e-4, -9e-4, 1.1e-3], 100)
    shifts[:3] = 1e300, -1e300, 0.5
    assert snap_each(shifts).tolist() == [snap(shift) for shift in shifts.tolist()]
    first, stop = inside_each(17, shifts)
    for i, shift in enumerate(shifts.tolist()):
        assert ((first[i], stop[i]) if first[i] < stop[i] else (0, 0)) == inside(17, shift)
