"""Which engine ``auto`` takes in registration, where tensor cores are the faster way to peaks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.registration import measurement

DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)])


class Asked(Exception):  # noqa: N818 - it ends the measurement
    pass


@pytest.fixture
def asked(monkeypatch):
    """Name of the engine that a measurement asks for; tensor cores are said to be there and faster."""

    def matcher(self, dtype, engine, kernel):
        raise Asked(engine)

    monkeypatch.setattr(measurement, "finds_sooner_by_halves", lambda *_: True)
    monkeypatch.setattr(measurement.Measurement, "_matcher", matcher)

    def engine_of(stack, **options):
        with pytest.raises(Asked) as found:
            estimate_shifts(stack, max_shift=8, verify="none", **options)
        return found.value.args[0]

    return engine_of


def test_tensor_cores_where_frames_share_a_reference(asked):
    stack = drifting(DRIFT).astype(np.float32)
    assert asked(stack, weighting="none") == "tensor"
    assert asked(stack, weighting="none", engine="fft") == "fft"
    assert asked(stack, weighting="none", reference="previous") == "fft"
    assert asked(stack.astype(np.float64), weighting="none") == "fft"


def test_weighted_frames_need_planes(asked):
    stack = drifting(DRIFT)
    noise = np.random.default_rng(2).normal(scale=2 * stack.std(), size=stack.shape)
    assert asked((stack + noise).astype(np.float32)) == "fft"
