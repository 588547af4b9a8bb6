"""Matching on a device without planes gives what the FFT engine gives; frames it cannot do are matched by planes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.peaks.near_peak import near_peak_launches
from xcorr_app.registration.measuring.matcher import Matcher

pytestmark = NEEDS_DEVICE

DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6), (2.25, 2.75), (0.5, -5)])


@pytest.fixture
def planes_made(monkeypatch):
    """Numbers of frames that were matched by planes."""
    counts = []
    original = Matcher.planes

    def counted(self, reference, frames):
        if self.on_device is not None:
            counts.append(len(frames))
        return original(self, reference, frames)

    monkeypatch.setattr(Matcher, "planes", counted)
    return counts


def stack_of(dtype):
    stack = drifting(DRIFT)
    stack = (stack - stack.min()) / np.ptp(stack)
    return (stack * 200).round().astype(dtype) if dtype != "float32" else stack.astype(dtype)


@pytest.fixture(params=["direct", "tensor", "tensor, as many frames"])
def engine(request, monkeypatch):
    name, _, as_many = request.param.partition(", ")
    if as_many:  # the nearest values of most, all of the others
        monkeypatch.setattr("xcorr_app.gpu.peaks.near_peak._FEW", 0)
    near_peak_launches.cache_clear()
    yield name
    near_peak_launches.cache_clear()


def assert_same(cupy, stack, reference="first", max_shift=10, engine="direct", **options):
    """Compare with the FFT engine; return the result of the kernels."""
    on_device = cupy.asarray(stack)
    ours = estimate_shifts(on_device, reference, max_shift, engine=engine, verify="all", **options)
    options.pop("kernel_options", None)
    fft = estimate_shifts(on_device, reference, max_shift, engine="fft", **options)
    np.testing.assert_allclose(ours.shifts, fft.shifts, atol=2e-3)
    np.testing.assert_allclose(ours.score, fft.score, atol=1e-5)
    np.testing.assert_allclose(ours.peak_ratio, fft.peak_ratio, rtol=1e-3)
    assert ours.flags == fft.flags
    return ours


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("reference", ["first", "previous", "mean", "template"])
def test_every_type_and_reference(cupy, planes_made, engine, dtype, reference):
    result = assert_same(cupy, stack_of(dtype), reference, engine=engine, weighting="none")
    assert not planes_made
    if reference == "first":
        np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.06)


@pytest.mark.parametrize("subpixel", ["gaussian", "quadratic", "parabolic", "none", "dft"])
def test_every_subpixel_method(cupy, planes_made, engine, subpixel):
    assert_same(cupy, stack_of("float32"), engine=engine, subpixel=subpixel, weighting="none")
    assert not planes_made  # dft is never matched here: it needs the plane


@pytest.mark.parametrize("max_shift", [4, (6, 3), (0, 9), 2, 24])
def test_peaks_at_the_edge_of_the_window_go_by_planes(cupy, planes_made, engine, max_shift):
    result = assert_same(cupy, stack_of("uint16"), engine=engine, max_shift=max_shift, weighting="none")
    if max_shift == 4:
        assert sum(planes_made) >= sum("edge" in flags for flags in result.flags) > 0


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("flat", [(2,), (0, 5), (0, 1, 2, 3, 4, 5)])
def test_flat_frames_are_told_with_the_others(cupy, planes_made, engine, dtype, flat):
    stack = stack_of(dtype)
    stack[list(flat)] = stack[0, 0, 0]
    result = estimate_shifts(cupy.asarray(stack), max_shift=10, engine=engine, weighting="none", contrast="none")
    on_host = estimate_shifts(stack, max_shift=10, weighting="none", contrast="none")
    assert not planes_made
    assert result.flags == on_host.flags
    assert [("flat" in flags) for flags in result.flags] == [number in flat for number in range(len(stack))]
    np.testing.assert_allclose(result.shifts, on_host.shifts, atol=2e-3)


def test_values_that_would_round_badly_go_by_planes(cupy, planes_made, engine):
    stack = np.repeat(stack_of("float32")[:1], 5, axis=0)
    stack[2:] = stack_of("float32")[2]
    stack[1] += 1e5
    stack[2] *= 1e30
    stack[3] *= 1e-30
    stack[4] = 0.25
    on_device = cupy.asarray(stack)
    # No search for a fixed pattern: frames of such brightness bend it by more than the engines differ.
    how = {"weighting": "none", "contrast": "none"}
    ours = estimate_shifts(on_device, "first", 10, engine=engine, **how)
    fft = estimate_shifts(on_device, "first", 10, engine="fft", **how)
    np.testing.assert_allclose(ours.shifts, fft.shifts, atol=2e-3)
    assert sum(planes_made) == 3
    assert "flat" in ours.flags[4]


def test_a_region_and_a_prefilter(cupy, planes_made):
    assert_same(cupy, stack_of("uint16"), roi=(slice(5, 60), slice(9, 70)), weighting="none")
    assert_same(cupy, stack_of("uint16"), prefilter="gaussian:1", weighting="none")
    assert not planes_made


def test_a_variant_that_was_asked_for(cupy, planes_made):
    assert_same(cupy, stack_of("uint8"), weighting="none", kernel_options=KernelOptions("multi-row"))
    assert not planes_made


def test_noisy_frames_are_weighted(cupy, engine):
    added = np.random.default_rng(2).normal(scale=0.2, size=stack_of("float32").shape)
    assert_same(cupy, (stack_of("float32") + added).astype("float32"), engine=engine)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_the_whole_of_it(cupy, dtype, deviation):
    """All defaults on a device give what they give on the host."""
    drift = np.cumsum(np.random.default_rng(4).normal(0, 1.2, (30, 2)), axis=0)
    stack = drifting(drift, (131, 143), width=0.06)
    stack = np.clip(1000 + 60 * (stack + noise(stack, deviation)), 0, None).astype(dtype)
    ours, theirs = (estimate_shifts(each, "first", 14, verify=4) for each in (cupy.asarray(stack), stack))
    np.testing.assert_allclose(ours.shifts, theirs.shifts, atol=2e-3)
    np.testing.assert_allclose(ours.score, theirs.score, atol=1e-4)
    np.testing.assert_allclose(ours.sigma, theirs.sigma, rtol=0.03, atol=1e-4)
    assert ours.flags == theirs.flags
    assert ours.notes == theirs.notes
