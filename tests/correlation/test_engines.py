"""Engines give the plain sums of the definition, and are chosen by what is asked; blocks of an FFT, far windows."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.correlation import plain
from tests.pixels import pixels
from xcorr_app import ShiftWindow, cross_correlate
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.correlation.engines import (
    ENGINES,
    choose_engine,
    fft_device,
    overlapping,
)
from xcorr_app.correlation.engines.fft import FFTCorrelator
from xcorr_app.correlation.engines.fft_blocks import BlockFFTCorrelator, cut
from xcorr_app.correlation.engines.fft_device import DeviceFFTCorrelator
from xcorr_app.correlation.engines.fft_whole import WholeFFTCorrelator
from xcorr_app.correlation.forms import FORMS
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.limits import H200

ON_THE_HOST = ["fft", "definition"]
SHAPES = [
    ((1, 1), (1, 1)),
    ((1, 7), (1, 3)),
    ((2, 3), (3, 2)),
    ((3, 1), (1, 3)),
    ((31, 33), (32, 2)),
    ((32, 32), (32, 32)),
    ((33, 31), (33, 31)),
    ((5, 12), (12, 5)),
]


def full(left, right):
    return ShiftWindow.full(left.shape[-2:], right.shape[-2:])


def bound(left, right, eps):
    """Largest error allowed, for matrices or stacks of them."""
    energy = [np.sqrt((np.asarray(m, dtype=np.float64) ** 2).sum(axis=(-2, -1)).max()) for m in (left, right)]
    return 64 * eps * energy[0] * energy[1]


def random_values(rng, dtype):
    return lambda shape: pixels(rng, shape, dtype, 1.0)


def plain_sums(xp, left, right, engine, window=None, form="one-to-one"):
    if engine == "definition" and xp is not np:
        pytest.skip("the definition runs on the host only")
    return to_host(
        cross_correlate(xp.asarray(left), xp.asarray(right), form, window, normalization="none", engine=engine)
    )


@pytest.mark.parametrize("engine", ON_THE_HOST)
@pytest.mark.parametrize(("left_shape", "right_shape"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_full_plane(xp, rng, engine, left_shape, right_shape, dtype):
    random = random_values(rng, dtype)
    left, right = random(left_shape), random(right_shape)
    plane = plain_sums(xp, left, right, engine)
    assert plane.dtype == dtype
    expected = plain.sums(left, right, full(left, right))
    np.testing.assert_allclose(plane, expected, rtol=0, atol=bound(left, right, np.finfo(dtype).eps))


@pytest.mark.parametrize("engine", ON_THE_HOST)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("left_shape", "right_shape"), [((9, 8), (9, 8)), ((6, 11), (10, 4))])
def test_every_form(xp, rng, engine, form, left_shape, right_shape):
    left, right = plain.operands(form, left_shape, right_shape, random_values(rng, "float64"))
    window = full(left, right)
    planes = plain_sums(xp, left, right, engine, form=form)
    expected = plain.every_pair(left, right, form, lambda f, g: plain.sums(f, g, window))
    assert planes.shape == expected.shape
    np.testing.assert_allclose(planes, expected, rtol=0, atol=bound(left, right, np.finfo(float).eps))


@pytest.mark.parametrize("engine", ON_THE_HOST)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64", ">u2", ">f4", "uint32"])
def test_types_of_element(xp, rng, engine, dtype):
    if xp is not np and dtype.startswith(">"):
        pytest.skip("device arrays have the byte order of the machine")
    random = random_values(rng, dtype)
    left, right = random((14, 17)), random((13, 9))
    single = np.dtype(dtype).itemsize <= 2 or np.dtype(dtype).newbyteorder("=") == np.float32
    precision = np.float32 if single else np.float64
    plane = plain_sums(xp, left, right, engine)
    assert plane.dtype == precision
    expected = plain.sums(left, right, full(left, right))
    np.testing.assert_allclose(plane, expected, rtol=0, atol=bound(left, right, np.finfo(precision).eps))


@pytest.mark.parametrize("engine", ON_THE_HOST)
def test_largest_values_of_sixteen_bits_do_not_overflow(xp, engine):
    image = np.full((40, 40), 65535, dtype=np.uint16)
    plane = plain_sums(xp, image, image, engine, ShiftWindow.symmetric(1, 1))
    expected = np.outer([39, 40, 39], [39, 40, 39]) * 65535.0**2
    np.testing.assert_allclose(plane, expected, rtol=1e-5)


sides = st.integers(1, 12)
reaches = st.integers(-15, 15)


@settings(max_examples=60, deadline=None)
@given(
    left_shape=st.tuples(sides, sides),
    right_shape=st.tuples(sides, sides),
    rows=st.tuples(reaches, reaches),
    columns=st.tuples(reaches, reaches),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shapes_and_any_window(left_shape, right_shape, rows, columns, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=left_shape), rng.normal(size=right_shape)
    window = ShiftWindow(min(rows), max(rows), min(columns), max(columns))
    expected = plain.sums(left, right, window)
    for engine in ON_THE_HOST:
        plane = plain_sums(np, left, right, engine, window)
        np.testing.assert_allclose(plane, expected, rtol=0, atol=bound(left, right, np.finfo(float).eps))


def test_choice_of_engine(xp):
    assert choose_engine("auto", xp).name in ENGINES
    elsewhere = ("direct", "tensor") if xp is np else ("definition",)
    for name in ENGINES:
        if name in elsewhere:
            with pytest.raises(DeviceError, match=name):
                choose_engine(name, xp)
        else:
            assert choose_engine(name, xp).name == name
    with pytest.raises(ArgumentError, match=r"unknown engine 'guess'.*fft"):
        choose_engine("guess", xp)


FULL = Problem.full_plane
LEFT_300X200 = Problem((300, 200), (300, 200), (-11, -11), (23, 23), rights=50, rights_per_left=50)


def square(size, reach, **batch):
    return Problem((size, size), (size, size), (-reach, -reach), (2 * reach + 1, 2 * reach + 1), **batch)


def each(count):
    return {"lefts": count, "rights": count}


def many(count):
    return {"rights": count, "rights_per_left": count}


def of(decision):
    return {candidate.name: candidate.microseconds for candidate in decision.candidates}


@pytest.mark.parametrize(
    ("problem", "chosen"),
    [
        (LEFT_300X200, "direct:combined"),  # 114 us measured, 178 on tensor cores, 418 a call by the FFT
        (FULL((32, 32), (32, 32), **each(16384)), "direct:row-product"),  # 883 us measured, 1917 by the FFT
        (FULL((16, 16), (16, 16)), "direct:combined"),
        (FULL((64, 64), (64, 64)), "direct:combined"),
        (FULL((512, 512), (512, 512)), "fft"),
        (FULL((256, 256), (256, 256), **each(256)), "fft"),
        (FULL((96, 96), (96, 96), **each(1024)), "fft"),
        (square(512, 8, **many(256)), "direct:combined"),
        (square(512, 64, **many(256)), "fft"),
    ],
)
def test_planes(problem, chosen):
    assert decide_planes(problem, limits=H200).name == chosen


@pytest.mark.parametrize(
    ("how", "name", "reason"),
    [
        ({"limits": None}, "fft", "no GPU"),
        ({"limits": None, "engine": "definition"}, "definition", "asked for"),
        ({"dtypes": ("float64", "float64")}, "fft", "need float64"),
        ({"engine": "fft"}, "fft", "asked for"),
        ({"options": KernelOptions("multi-row")}, "direct:multi-row", "asked for"),
        ({"engine": "tensor"}, "tensor:hankel", "asked for"),
    ],
)
def test_what_was_asked_for_is_taken(how, name, reason):
    found = decide_planes(LEFT_300X200, **{"limits": H200, **how})
    assert found.name == name
    assert reason in found.reason


@pytest.mark.parametrize(
    ("problem", "normalize", "tensor"),
    [
        (square(1024, 16, **many(1)), True, True),
        (square(1024, 16, **many(2)), True, True),
        (square(512, 16, **many(3)), True, False),
        (square(512, 16, **many(64)), True, True),
        (square(64, 4, **many(1)), True, False),
        (square(128, 4, **many(1)), True, False),
        (square(512, 16, **each(16)), True, True),
        (square(64, 16, **each(16384)), False, False),  # fp16 does not decide among plain sums
    ],
)
def test_peaks(problem, normalize, tensor):
    assert (decide_peaks(problem, normalize=normalize, limits=H200).engine == "tensor") == tensor


@pytest.mark.parametrize("decide", [decide_planes, decide_peaks])
def test_an_engine_asked_for_by_a_name_of_its_own_is_not_replaced(decide):
    """Such a one checks that wrong values are found out: another in its place would be right."""
    assert decide(square(64, 9, **many(5)), engine="planted", limits=H200).engine == "planted"


CASES = [
    ((301, 203), (177, 264), ShiftWindow(-40, 13, -70, 35)),
    ((256, 255), (255, 257), ShiftWindow.symmetric(18, 18)),
    ((200, 211), (97, 64), ShiftWindow(0, 113, 3, 140)),
    ((211, 190), (203, 191), ShiftWindow(60, 75, -40, -20)),  # to one side
    ((300, 300), (300, 300), ShiftWindow(7, 7, -9, -9)),  # one shift
    ((141, 120), (119, 131), ShiftWindow(-11, 30, -9, 4)),
]


def correlator(left_shape, right_shape, window, counts):
    """Axes cut into so many blocks; one of rows is for whole transforms."""
    ends = (window.dy_min, window.dy_max), (window.dx_min, window.dx_max)
    axes = [cut(left_shape[i], right_shape[i], *ends[i], counts[i]) for i in (0, 1)]
    return (WholeFFTCorrelator if counts[0] == 1 else BlockFFTCorrelator)(window, tuple(axes))


def transformed(correlator, left, right):
    return correlator.sums(correlator.left(left), correlator.right(right))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("left_shape", "right_shape", "window"), CASES)
@pytest.mark.parametrize("counts", [(2, 1), (4, 3), (1, 1), (6, 5), (10, 1)])
def test_they_give_the_plain_sums(rng, left_shape, right_shape, window, dtype, counts):
    left, right = rng.normal(size=left_shape).astype(dtype), rng.normal(size=right_shape).astype(dtype)
    by = correlator(left_shape, right_shape, window, counts)
    plane = transformed(by, left[None, None], right[None, None])[0, 0]
    assert plane.dtype == dtype
    np.testing.assert_allclose(
        plane, plain.sums(left, right, window), rtol=0, atol=bound(left, right, np.finfo(dtype).eps)
    )


FAR = 10**6

OUTSIDE = [
    ShiftWindow(FAR, FAR + 3, FAR, FAR + 3),
    ShiftWindow(-FAR - 3, -FAR, -2, 2),
    ShiftWindow(-2, 2, FAR, FAR + 3),
    ShiftWindow(9, 9, 0, 3),  # touches the matrices from outside
]


@pytest.mark.parametrize("make", [DeviceFFTCorrelator, partial(FFTCorrelator, xp=np)], ids=["device", "host"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", OUTSIDE, ids=str)
def test_outside_there_are_zeros(monkeypatch, rng, make, window, dtype):
    """The correlator of devices is computed by NumPy and SciPy."""
    libraries = {"cupy": np, "cupyx.scipy.fft": scipy.fft}
    monkeypatch.setattr(fft_device, "importlib", SimpleNamespace(import_module=libraries.__getitem__))
    monkeypatch.setattr(fft_device, "_product", lambda: lambda left, right, scale: left * right.conj() * scale)
    shapes = (9, 8), (7, 6)
    lefts, rights = rng.normal(size=(2, 1, 9, 8)).astype(dtype), rng.normal(size=(2, 3, 7, 6)).astype(dtype)
    correlator = overlapping.over_overlaps(lambda part: make(*shapes, part), *shapes, window, np)
    planes = correlator.sums(correlator.left(lefts), correlator.right(rights))
    assert planes.shape == (2, 3, *window.shape)
    assert planes.dtype == dtype
    assert not planes.any()
