"""Calls on device arrays: types, layouts, devices, options, engines and precisions; no waiting for the device."""

import numpy as np
import pytest

from tests.correlation.plain import operands
from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting
from xcorr_app import KernelOptions, ShiftWindow, cross_correlate, estimate_shifts
from xcorr_app.correlation.engines import direct
from xcorr_app.correlation.forms import FORMS
from xcorr_app.errors import ArgumentError, DataTypeError, DeviceError

pytestmark = NEEDS_DEVICE

SIZES = (16, 32, 64)


def plain(left, right, **options):
    return cross_correlate(left, right, normalization="none", **options)


def expected(left, right, **options):
    return plain(np.asarray(left, np.float64), np.asarray(right, np.float64), engine="definition", **options)


@pytest.fixture
def handed_over(monkeypatch):
    """Arrays that reach the kernels."""
    seen = []

    def run_plan(plan, lefts, rights, shape, out=None):
        seen.append((lefts, rights))
        return kept(plan, lefts, rights, shape, out)

    kept = direct.run_plan
    monkeypatch.setattr(direct, "run_plan", run_plan)
    return seen


@pytest.mark.parametrize("left_type", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("right_type", ["uint8", "int16", "float32"])
def test_matrices_reach_the_kernels_as_they_are(cupy, rng, handed_over, left_type, right_type):
    left, right = rng.integers(0, 99, (21, 33)).astype(left_type), rng.integers(0, 99, (18, 30)).astype(right_type)
    on_device = cupy.asarray(left), cupy.asarray(right)
    plane = plain(*on_device, engine="direct")
    np.testing.assert_array_equal(plane.get(), expected(left, right))
    assert [array.data.ptr for array in handed_over[0]] == [array.data.ptr for array in on_device]
    assert [str(array.dtype) for array in handed_over[0]] == [left_type, right_type]


LAYOUTS = {
    "reversed rows": lambda a: a[::-1],
    "reversed columns": lambda a: a[:, ::-1],
    "reversed both": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "every other": lambda a: a[::2, 1::2],
    "a crop": lambda a: a[3:-2, 1:-4],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape) if isinstance(a, np.ndarray) else a[:1].repeat(a.shape[0], 0),
}


@pytest.mark.parametrize("engine", ["direct", "fft", "auto"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_layouts(cupy, rng, engine, layout, dtype):
    left, right = (rng.integers(0, 50, (30, 24)).astype(dtype) for _ in range(2))
    view = LAYOUTS[layout]
    plane = plain(view(cupy.asarray(left)), view(cupy.asarray(right)), engine=engine)
    np.testing.assert_allclose(plane.get(), expected(view(left), view(right)), rtol=0, atol=2)


@pytest.mark.parametrize("size", SIZES)
def test_a_call_does_not_wait(cupy, size):
    left, right = (cupy.random.random((size, size), dtype=cupy.float32) for _ in range(2))

    def call():
        return plain(left, right, engine="direct", check_finite=False)

    before = call().get()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        call()
        stream.synchronize()
        stream.begin_capture()  # nothing that waits for the device can be recorded
        plane = call()
        graph = stream.end_capture()
        plane.fill(np.nan)
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(plane.get(), before)


def test_values_are_checked_unless_told_otherwise(cupy):
    left, right = cupy.ones((8, 8), "float32"), cupy.ones((8, 8), "float32")
    right[3, 3] = cupy.nan
    with pytest.raises(ArgumentError, match="right holds NaN"):
        plain(left, right)
    plain(left, right, engine="direct", check_finite=False)


def test_float64_is_summed_by_the_fft(cupy, rng):
    left, right = cupy.asarray(rng.normal(size=(16, 16))), cupy.asarray(rng.normal(size=(16, 16)))
    np.testing.assert_allclose(plain(left, right).get(), expected(left.get(), right.get()), atol=1e-10)
    with pytest.raises(DataTypeError, match="float32"):
        plain(left, right, engine="direct")


def test_without_distribution_every_run_gives_the_same_bits(cupy, rng):
    left, right = (cupy.asarray(rng.normal(size=(200, 190)), "float32") for _ in range(2))
    options = KernelOptions("warp-shuffle-distributed", distribution="none")
    first = plain(left, right, kernel_options=options).get()
    for _ in range(5):
        np.testing.assert_array_equal(plain(left, right, kernel_options=options).get(), first)


@pytest.fixture
def other_device(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is only one device")
    return cupy.cuda.Device(1)


@pytest.mark.parametrize("engine", ["auto", "direct", "fft"])
@pytest.mark.parametrize("normalization", ["none", "zncc"])
def test_the_arrays_device_does_the_work(cupy, rng, other_device, engine, normalization):
    left, right = rng.normal(size=(40, 30)).astype("float32"), rng.normal(size=(40, 30)).astype("float32")
    with other_device:
        there = cupy.asarray(left), cupy.asarray(right)
    here = cross_correlate(cupy.asarray(left), cupy.asarray(right), normalization=normalization, engine=engine)
    plane = cross_correlate(*there, normalization=normalization, engine=engine)
    assert plane.device == other_device
    assert cupy.cuda.Device().id == 0
    with other_device:
        np.testing.assert_array_equal(plane.get(), here.get())


def test_a_stack_on_another_device(cupy, rng, other_device):
    stack = rng.normal(size=(4, 64, 64)).astype("float32")
    with other_device:
        there = cupy.asarray(stack)
    found = estimate_shifts(there, max_shift=8)
    np.testing.assert_array_equal(found.shifts, estimate_shifts(cupy.asarray(stack), max_shift=8).shifts)


def test_arrays_on_two_devices_are_refused(cupy, other_device):
    left = cupy.ones((8, 8), "float32")
    with other_device:
        right = cupy.ones((8, 8), "float32")
    with pytest.raises(DeviceError, match=r"left is on device cuda:0, right on cuda:1"):
        plain(left, right)


WINDOWS = [None, 0, 3, 40, ShiftWindow(-2, 9, 4, 11), ShiftWindow(-40, -20, 30, 45)]


ENGINES = ["direct", "tensor"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("left_shape", "right_shape"), [((33, 20), (17, 31)), ((1, 1), (1, 1)), ((64, 63), (64, 63))])
def test_plain_sums(cupy, rng, engine, form, window, left_shape, right_shape):
    left, right = operands(form, left_shape, right_shape, lambda shape: rng.normal(size=shape).astype(np.float32))
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


TENSOR_FORMS = {
    "one-to-one": ((70, 64), (65, 80)),
    "one-to-many": ((70, 64), (5, 65, 80)),
    "n-to-mn": ((2, 70, 64), (2, 3, 65, 80)),
    "n-to-m": ((3, 70, 64), (5, 65, 80)),
}


def tensor(cupy, left, right, form="one-to-one", **options):
    return cross_correlate(cupy.asarray(left), cupy.asarray(right), form, engine="tensor", **options)


def exact(left, right, form="one-to-one", **options):
    return cross_correlate(left.astype(np.float64), right.astype(np.float64), form, engine="fft", **options)


@pytest.mark.parametrize("form", TENSOR_FORMS)
@pytest.mark.parametrize(("precision", "bound"), [("fp16", 1e-3), ("fp16x2", 1e-6), (None, 1e-6)])
def test_plain_sums_in_a_precision(cupy, rng, form, precision, bound):
    left, right = (rng.normal(3, 1, shape).astype(np.float32) for shape in TENSOR_FORMS[form])
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
