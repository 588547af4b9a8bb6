"""Precisions of engine ``tensor``: which kernels do the work, and what becomes of their sums; here without a device.

The kernels are stood in for by the definition in float64, which is exact for bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import KernelOptions, ShiftWindow, cross_correlate, estimate_shifts
from xcorr_app.correlation.definition import correlate_by_definition
from xcorr_app.correlation.engines import tensor, tensor_bytes
from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.registration.measuring import matcher
from xcorr_app.registration.settings import Settings

DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)])
INT8 = KernelOptions(precision="int8")
FORMS = {
    "one-to-one": ((17, 20), (15, 22)),
    "one-to-many": ((17, 20), (3, 15, 22)),
    "n-to-mn": ((2, 17, 20), (2, 3, 15, 22)),
    "n-to-m": ((2, 17, 20), (3, 15, 22)),
}


def planes_of(problem, lefts, rights):
    (dy, dx), (ny, nx) = problem.first_shift, problem.plane_shape
    window = ShiftWindow(dy, dy + ny - 1, dx, dx + nx - 1)
    return np.stack(
        [
            correlate_by_definition(
                lefts[pair // problem.rights_per_left].astype(np.float64),
                rights[pair % problem.rights].astype(np.float64),
                window=window,
            )
            for pair in range(problem.pairs)
        ]
    )


class NoTables:
    cells = (1, 1)

    def __init__(self, problem):
        pass


@pytest.fixture(autouse=True)
def splits(monkeypatch):
    """Numbers of fp16 that stood for a value, one a call of the kernels that take them."""
    found = []

    def plain_sums(problem, lefts, rights, tables, kernel, *, split, out):
        found.append(split)
        out[...] = planes_of(problem, lefts, rights)

    def exact_sums(problem, lefts, rights):
        assert lefts.dtype == rights.dtype == np.uint8
        return planes_of(problem, lefts, rights).astype(np.int64)

    monkeypatch.setattr(tensor.TensorEngine, "unavailable", lambda self, xp: None)
    monkeypatch.setattr(tensor, "tables_for", NoTables)
    monkeypatch.setattr(tensor, "plain_sums", plain_sums)
    monkeypatch.setattr(tensor, "_limits", lambda: KNOWN_DEVICES["h200"])
    monkeypatch.setattr(tensor_bytes, "exact_sums", exact_sums)
    return found


def stack_of(dtype):
    stack = drifting(DRIFT)
    stack = (stack - stack.min()) / np.ptp(stack)
    return (stack * 200).round().astype(dtype) if dtype != "float32" else stack.astype(dtype)


@pytest.mark.share(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ["tensor", "auto"])
def test_plain_sums_of_bytes_are_exact(rng, form, engine):
    left, right = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in FORMS[form])
    planes = cross_correlate(left, right, form, normalization="none", engine=engine, kernel_options=INT8)
    assert planes.dtype == np.float64
    wide = left.astype(np.float64), right.astype(np.float64)
    np.testing.assert_array_equal(planes, cross_correlate(*wide, form, normalization="none", engine="definition"))


@pytest.mark.parametrize("brightness", [0, 250])
def test_scores_of_bytes_are_those_of_double_precision(rng, brightness):
    left, right = (brightness + rng.integers(0, 6, (40, 40))).astype(np.uint8), np.zeros((40, 40), np.uint8)
    right[:-2, 3:] = left[2:, :-3]
    scores = cross_correlate(left, right, max_shift=6, kernel_options=INT8)
    exact = cross_correlate(left.astype(np.float64), right.astype(np.float64), max_shift=6, engine="definition")
    np.testing.assert_allclose(scores, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["uint16", "int8", "float32", "float64"])
def test_bytes_alone_are_taken(dtype):
    left, right = np.ones((8, 8), np.uint8), np.ones((8, 8), dtype)
    with pytest.raises(DataTypeError, match=f"'int8' multiplies the bytes of uint8 images, these are {dtype}: give"):
        cross_correlate(left, right, normalization="none", kernel_options=INT8)


@pytest.mark.share(3)
@pytest.mark.parametrize("reference", ["first", "previous", 2])
@pytest.mark.parametrize("weighting", ["none", "auto"])
def test_registration_of_bytes(reference, weighting):
    stack = stack_of("uint8")
    if weighting == "auto":
        noise = np.random.default_rng(2).normal(scale=20, size=stack.shape)
        stack = (stack + noise).clip(0, 255).astype(np.uint8)
    options = {"max_shift": 8, "weighting": weighting, "verify": "all"}
    ours = estimate_shifts(stack, reference, engine="tensor", kernel_options=INT8, **options)
    exact = estimate_shifts(stack.astype(np.float64), reference, engine="fft", **options)
    assert ours.engine == "tensor"
    np.testing.assert_allclose(ours.shifts, exact.shifts, atol=1e-4)
    np.testing.assert_allclose(ours.score, exact.score, atol=1e-5)
    assert ours.flags == exact.flags


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("uint16", {}),
        ("uint8", {"reference": "mean"}),
        ("uint8", {"reference": "template"}),
        ("uint8", {"prefilter": "highpass:3"}),
    ],
)
def test_registration_takes_bytes_alone(dtype, options):
    with pytest.raises(DataTypeError, match="give uint8 images, measure them without a prefilter and against a frame"):
        estimate_shifts(stack_of(dtype), max_shift=8, kernel_options=INT8, **options)


def test_noise_is_judged_as_for_other_engines(rng):
    noisy = (stack_of("uint8") / 2 + rng.normal(scale=20, size=stack_of("uint8").shape)).clip(0, 255).astype(np.uint8)

    def clean(engine, options):
        settings = Settings(engine=engine, kernel_options=options)
        compared = matcher.Matcher(noisy.shape[1:], ShiftWindow.symmetric(8, 8), settings, np.float32, engine, None, np)
        return compared.prepare_reference(noisy[:1]).clean, compared.compare(
            compared.prepare_reference(noisy[:1]), noisy
        ).clean

    for ours, theirs in zip(clean("tensor", INT8), clean("fft", None), strict=True):
        assert (theirs > 0.1).all()
        assert (theirs < 0.95).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_flat_frames_of_bytes():
    stack = stack_of("uint8")
    stack[1] = 7
    assert "flat" in estimate_shifts(stack, max_shift=8, kernel_options=INT8).flags[1]
    flat = estimate_shifts(np.full_like(stack, 7), max_shift=8, kernel_options=INT8)
    assert all("flat" in flags for flags in flat.flags)
