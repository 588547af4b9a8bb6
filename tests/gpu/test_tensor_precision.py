"""Planes of engine ``tensor`` in the precisions that can be asked for, each within its stated bound."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting
from xcorr_app import KernelOptions, cross_correlate

pytestmark = NEEDS_DEVICE

FORMS = {
    "one-to-one": ((70, 64), (65, 80)),
    "one-to-many": ((70, 64), (5, 65, 80)),
    "n-to-mn": ((2, 70, 64), (2, 3, 65, 80)),
    "n-to-m": ((3, 70, 64), (5, 65, 80)),
}


def tensor(cupy, left, right, form="one-to-one", **options):
    return cross_correlate(cupy.asarray(left), cupy.asarray(right), form, engine="tensor", **options)


def exact(left, right, form="one-to-one", **options):
    return cross_correlate(left.astype(np.float64), right.astype(np.float64), form, engine="fft", **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("precision", "bound"), [("fp16", 1e-3), ("fp16x2", 1e-6), (None, 1e-6)])
def test_plain_sums(cupy, rng, form, precision, bound):
    left, right = (rng.normal(3, 1, shape).astype(np.float32) for shape in FORMS[form])
    planes = tensor(cupy, left, right, form, normalization="none", kernel_options=KernelOptions(precision=precision))
    assert planes.dtype == np.float32
    norms = [np.sqrt((stack.astype(np.float64) ** 2).sum(axis=(-2, -1)).max()) for stack in (left, right)]
    error = abs(planes.get() - exact(left, right, form, normalization="none")).max() / np.prod(norms)
    assert error < bound


@pytest.mark.parametrize("scale", [1, 1e30, 1e-30])
@pytest.mark.parametrize(("precision", "bound"), [("fp16", 1e-3), ("fp16x2", 3e-6)])
def test_scores(cupy, precision, bound, scale):
    stack = (drifting([(0, 0), (2, -3), (-4, 1)], (100, 90)) * scale).astype(np.float32)
    options = KernelOptions(precision=precision)
    scores = tensor(cupy, stack[0], stack, "one-to-many", max_shift=12, kernel_options=options)
    np.testing.assert_allclose(scores.get(), exact(stack[0], stack, "one-to-many", max_shift=12), rtol=0, atol=bound)


@pytest.mark.parametrize("scales", [(1e30, 1e-30), (1e-30, 1e30), (1e30, 1)])
def test_values_far_from_one_against_others(cupy, rng, scales):
    left, right = (
        (rng.normal(size=shape) * scale).astype(np.float32)
        for shape, scale in zip(FORMS["one-to-many"], scales, strict=True)
    )
    planes = tensor(cupy, left, right, "one-to-many", normalization="none")
    norms = [np.sqrt((stack.astype(np.float64) ** 2).sum(axis=(-2, -1)).max()) for stack in (left, right)]
    error = abs(planes.get() - exact(left, right, "one-to-many", normalization="none")).max() / np.prod(norms)
    assert error < 1e-6
