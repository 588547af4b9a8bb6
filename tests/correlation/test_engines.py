"""Every engine returns the plain sums: against loops, for all forms, shapes, windows and types of element.

Error bound: the error of an engine working in precision eps is at most ``64 eps`` times the largest value a plane can
take, the root of the product of both matrices' sums of squares. A transform of n points loses about eps log2(n).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.correlation import plain
from xcorr_app import ShiftWindow, cross_correlate, estimate_shifts
from xcorr_app.correlation.definition import correlate_by_definition
from xcorr_app.correlation.engines import ENGINE_NAMES, ENGINES, canonical_engine, choose_engine
from xcorr_app.correlation.forms import FORMS
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.settings import Settings

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
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return lambda shape: rng.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return lambda shape: rng.integers(
        limits.min, limits.max, shape, dtype=dtype.newbyteorder("="), endpoint=True
    ).astype(dtype)


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


def test_the_oracle_equals_the_loops(rng):
    left, right = rng.normal(size=(6, 9)), rng.normal(size=(8, 4))
    window = full(left, right).grown(1)
    np.testing.assert_allclose(
        correlate_by_definition(left, right, window), plain.sums(left, right, window), atol=1e-12
    )


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


def test_the_former_name_of_an_engine_is_understood():
    assert canonical_engine("warp-shuffle") == "direct"
    assert [canonical_engine(name) for name in (*ENGINE_NAMES, "auto", "guess")] == [*ENGINE_NAMES, "auto", "guess"]
    assert set(ENGINE_NAMES) == set(ENGINES)
    assert Settings(engine="warp-shuffle").engine == "direct"
    left = np.ones((8, 8), np.float32)
    with pytest.raises(DeviceError, match="engine 'direct' cannot run on numpy arrays"):
        cross_correlate(left, left, engine="warp-shuffle")
    with pytest.raises(DeviceError, match="engine 'direct' cannot run on numpy arrays"):
        estimate_shifts(np.ones((2, 8, 8), np.float32), engine="warp-shuffle")
