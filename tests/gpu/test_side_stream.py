"""Work in a stream of its own, on a device."""

from __future__ import annotations

import numpy as np

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.side_stream import SideStream


def test_a_job_reads_what_was_there_before_and_is_read_after(cupy):
    values = cupy.zeros((4096, 4096), np.float64)
    for _ in range(20):
        values += 1
    started = SideStream(lambda: values.sum(axis=0) * 2)
    other = cupy.ones((2048, 2048)) @ cupy.ones((2048, 2048))
    found = started.result() + 1
    np.testing.assert_array_equal(found.get(), np.full(4096, 20 * 4096 * 2 + 1.0))
    assert float(other[0, 0]) == 2048


def test_checks_beside_the_measurement_are_those_of_the_host(cupy):
    """Again and again, with other work in between: whatever a stream did too early would show."""
    drift = np.cumsum(np.random.default_rng(8).normal(0, 0.7, (70, 2)), axis=0)
    stack = drifting(drift, (201, 223), width=0.06)
    stack = np.clip(1000 + 60 * (stack + noise(stack, 0.05)), 0, None).astype(np.uint16)
    expected = estimate_shifts(stack, "first", 16, verify="all", contrast="none")
    frames = cupy.asarray(stack)
    for _ in range(5):
        found = estimate_shifts(frames, "first", 16, verify="all", contrast="none")
        np.testing.assert_allclose(found.fft_shifts, expected.fft_shifts, atol=1e-6)
        assert found.flags == expected.flags
