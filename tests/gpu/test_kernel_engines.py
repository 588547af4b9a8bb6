"""The engines that hand correlations to the CUDA kernels, against the definition and through registration."""

from __future__ import annotations

import numpy as np
import pytest

from tests.correlation import plain
from tests.registration.scenes import drifting
from xcorr_app import ShiftWindow, cross_correlate, estimate_shifts
from xcorr_app.correlation.forms import FORMS

pytestmark = pytest.mark.gpu
WINDOWS = [None, 0, 3, 40, ShiftWindow(-2, 9, 4, 11), ShiftWindow(-40, -20, 30, 45)]


ENGINES = ["direct", "tensor"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("left_shape", "right_shape"), [((33, 20), (17, 31)), ((1, 1), (1, 1)), ((64, 63), (64, 63))])
def test_plain_sums(cupy, rng, engine, form, window, left_shape, right_shape):
    left, right = plain.operands(form, left_shape, right_shape, lambda shape: rng.normal(size=shape).astype(np.float32))
    result = cross_correlate(cupy.asarray(left), cupy.asarray(right), form, window, normalization="none", engine=engine)
    expected = cross_correlate(left, right, form, window, normalization="none", engine="definition")
    energy = np.sqrt(
        (left.astype(float) ** 2).sum(axis=(-2, -1)).max() * (right.astype(float) ** 2).sum(axis=(-2, -1)).max()
    )
    np.testing.assert_allclose(result.get(), expected, rtol=0, atol=1e-5 * energy)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reference", ["first", "previous", "mean", "template"])
def test_registration_agrees_with_the_fft(cupy, engine, reference):
    stack = cupy.asarray(drifting(np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)])).astype(np.float32))
    ours = estimate_shifts(stack, reference, 10, engine=engine, verify="all")
    fft = estimate_shifts(stack, reference, 10, engine="fft")
    assert ours.engine == engine
    np.testing.assert_allclose(ours.shifts, fft.shifts, atol=1e-3)
    assert not any("disagrees" in flags for flags in ours.flags)
