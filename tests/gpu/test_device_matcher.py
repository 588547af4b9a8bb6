"""Registration on a device gives what the CPU gives, the same bits however many frames are there."""

import importlib
import sys

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.peaks.near_peak import near_peak_launches
from xcorr_app.gpu.runtime import arrays, download
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.registration.measuring.matcher import Matcher
from xcorr_app.registration.measuring.placement import Placement, coverage, entered, entering, means_without_each
from xcorr_app.registration.measuring.references import quotient
from xcorr_app.registration.stack import passes

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
    # Of peaks that tensor cores cannot tell apart by their rounding one frame may have such.
    assert sum(planes_made) <= (engine == "tensor")
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


FRAMES, SIDE = 150, 256
PLAIN = {"contrast": "none", "weighting": "none"}


@pytest.fixture(scope="module")
def stack():
    """Frames of one scene, moved by whole pixels, with noise."""
    rng = np.random.default_rng(8)
    scene = gaussian_filter(rng.normal(size=(SIDE + 40, SIDE + 40)), 2)
    scene = (scene - scene.min()) / np.ptp(scene) * 900 + 100
    frames = np.stack([scene[y : y + SIDE, x : x + SIDE] for y, x in rng.integers(12, 28, (FRAMES, 2))])
    return (frames + rng.normal(size=frames.shape) * 15).clip(0).astype(np.uint16)


@pytest.mark.parametrize(
    "how",
    [
        PLAIN,
        {**PLAIN, "engine": "tensor"},
        {**PLAIN, "engine": "direct"},
        {**PLAIN, "verify": "all"},
        {**PLAIN, "reference": "previous"},
        {"contrast": "none"},
        {},
    ],
    ids=["plain", "tensor", "direct", "checked", "previous", "weighted", "defaults"],
)
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_the_same_bits_however_much_memory_there_is(cupy, stack, monkeypatch, how, dtype):
    frames = cupy.asarray(stack.astype(dtype))
    whole = estimate_shifts(frames, max_shift=16, **how)
    assert np.isfinite(whole.shifts).all()
    for at_once in (64, 37, 1):
        pixels = at_once * SIDE * SIDE * passes._DEVICE_BYTES_PER_PIXEL
        monkeypatch.setattr(passes, "bytes_within_limit", lambda pixels=pixels: pixels)
        found = estimate_shifts(frames, max_shift=16, **how)
        for name in ("shifts", "score", "sigma", "peak_ratio", "fft_shifts"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=f"{name}, {at_once}")
        assert (found.flags, found.notes) == (whole.flags, whole.notes)


@pytest.mark.parametrize(("how", "launches", "waits"), [(PLAIN, 36, 4), ({}, 60, 15)], ids=["plain", "defaults"])
def test_launches_and_waits_of_a_call(cupy, stack, monkeypatch, how, launches, waits):
    frames = cupy.asarray(stack)
    estimate_shifts(frames, max_shift=16, **how)
    started, waited = [], []
    begin = BoundLaunch.__call__

    def counted(self, *given, **more):
        started.append(self)
        begin(self, *given, **more)

    monkeypatch.setattr(BoundLaunch, "__call__", counted)
    for original in (arrays.to_host, download.download):

        def told(array, original=original):
            if not isinstance(array, np.ndarray):
                waited.append(array.shape)
            return original(array)

        for name, module in list(sys.modules.items()):
            if name.startswith("xcorr_app.") and getattr(module, original.__name__, None) is original:
                monkeypatch.setattr(module, original.__name__, told)
    estimate_shifts(frames, max_shift=16, **how)
    assert 0 < len(started) <= launches
    assert 0 < len(waited) <= waits, waited


SHAPE = (23, 31)


def placed(count=7, spread=1.0):
    rng = np.random.default_rng(1)
    numbers = rng.uniform(40, 60, count), rng.normal(1000, 5, count), rng.uniform(0.2, 1, count)
    return Placement(np.round(rng.normal(0, 4, (count, 2)), 2) * spread, *numbers)


def images(dtype, count=7):
    return (np.random.default_rng(2).normal(size=(count, *SHAPE)) * 50 + 1000).astype(dtype)


def sums(frames, placed_at):
    rows, columns = coverage(placed_at, SHAPE)
    return entering(frames, placed_at).sum(axis=0, dtype=np.float64), rows.T @ columns


def by_steps(values, placed_at, total, weights):
    rows, columns = coverage(placed_at, SHAPE)
    return quotient(total - values, weights - rows[:, :, None] * columns[:, None])


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_pass_gives_the_bits_of_many(dtype, spread):
    cupy = importlib.import_module("cupy")
    there, placed_at = images(dtype), placed(spread=spread)
    # Not moved, though placed: a device interpolates by other roundings.
    still = placed(spread=0.0)
    rows, columns = coverage(placed_at, SHAPE)
    values = entering(there, still)
    values = values * (rows > 0)[:, :, None].astype(dtype) * columns[:, None].astype(dtype)
    total, weights = values.sum(axis=0, dtype=np.float64), sums(there, placed_at)[1]
    expected, where = by_steps(values, placed_at, total, weights)
    assert where.all() == (spread == 0)
    on_device = [cupy.asarray(each) for each in (there, rows, columns, total, weights)]
    found = entered(on_device[0], placed_at, *on_device[1:3])
    np.testing.assert_array_equal(to_host(found), values)
    means, known = means_without_each(on_device[0], placed_at, *on_device[1:3], tuple(on_device[3:]), 1e-9)
    np.testing.assert_array_equal(to_host(known), where)
    np.testing.assert_array_equal(to_host(means)[where], expected[where])
    assert not to_host(means)[~where].any()
