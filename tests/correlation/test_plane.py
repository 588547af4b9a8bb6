"""Planes: windows, normalisation, overlaps, and what is refused."""

import numpy as np
import pytest

from tests.correlation import plain
from xcorr_app import ShiftWindow, cross_correlate
from xcorr_app.correlation.forms import FORMS
from xcorr_app.correlation.overlap import overlap_counts, overlap_slices, overlap_sums
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import to_host

TOLERANCE = {"float32": 1e-4, "float64": 1e-11}
"""Largest error of a score where the overlap keeps a tenth of the variance or more."""


def normalised(xp, left, right, form="one-to-one", max_shift=None, **options):
    return to_host(cross_correlate(xp.asarray(left), xp.asarray(right), form, max_shift, **options))


def assert_same_plane(plane, expected, tolerance):
    np.testing.assert_array_equal(np.isnan(plane), np.isnan(expected))
    np.testing.assert_allclose(plane, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("engine", ["fft", "definition"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("min_overlap", [0.0, 0.25, 0.9, 1.0])
@pytest.mark.parametrize(("left_shape", "right_shape"), [((33, 20), (33, 20)), ((20, 31), (9, 40)), ((1, 30), (1, 30))])
def test_zncc_is_the_correlation_of_the_overlap(rng, engine, dtype, min_overlap, left_shape, right_shape):
    left, right = rng.normal(size=left_shape).astype(dtype), rng.normal(size=right_shape).astype(dtype)
    window = ShiftWindow.full(left_shape, right_shape)
    expected = plain.zncc(left, right, window, max(min_overlap, 0.02))
    plane = normalised(np, left, right, engine=engine, min_overlap=max(min_overlap, 0.02))
    assert plane.dtype == dtype
    assert_same_plane(plane, expected, TOLERANCE[dtype])


def test_constant_overlaps_have_no_score(xp, rng):
    left = rng.normal(size=(16, 16))
    left[:8] = 3.0
    right = rng.normal(size=(16, 16))
    right[:, 10:] = -1.0
    window = ShiftWindow.full((16, 16), (16, 16))
    expected = plain.zncc(left, right, window, 0.02)
    assert np.isnan(expected[:5]).all()  # the test has its constant overlaps
    assert_same_plane(normalised(xp, left, right, min_overlap=0.02), expected, 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_ignore_scale_and_offset(xp, rng, dtype):
    left, right = rng.normal(size=(24, 24)).astype(dtype), rng.normal(size=(24, 24)).astype(dtype)
    reference = normalised(xp, left, right, max_shift=6)
    for scale in (1e-30, 1e-12, -1.0, 1e12, 1e30):
        plane = normalised(xp, (left * scale).astype(dtype), right, max_shift=6)
        np.testing.assert_allclose(plane, np.sign(scale) * reference, atol=TOLERANCE[dtype])
    offset = normalised(xp, left + np.dtype(dtype).type(1000), right, max_shift=6)
    np.testing.assert_allclose(offset, reference, atol=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_at_the_ends_of_the_type(xp, rng, dtype):
    left, right = rng.random((16, 16)) + 0.1, rng.random((16, 16)) + 0.1
    reference = normalised(xp, left, right, max_shift=4)
    for scale in (1e-36, 1e38) if dtype == "float32" else (1e-300, 1e300):
        plane = normalised(xp, (left * scale).astype(dtype), (right * scale).astype(dtype), max_shift=4)
        np.testing.assert_allclose(plane, reference, atol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_phase_peaks_at_the_displacement(xp, rng, dtype):
    canvas = (255 * rng.random((90, 100))).astype(dtype)
    right, left = canvas[10:74, 12:76], canvas[6:70, 17:81]  # left[y + 4, x - 5] == right[y, x]
    plane = normalised(xp, left, right, max_shift=(8, 9), normalization="phase")
    assert plane.shape == (17, 19)
    assert np.unravel_index(plane.argmax(), plane.shape) == (4 + 8, -5 + 9)
    assert normalised(xp, left, left, normalization="phase").max() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_phase_of_a_pair_does_not_depend_on_its_neighbours(xp, rng, form):
    left, right = plain.operands(form, (24, 20), (24, 20), lambda shape: rng.normal(size=shape))
    # A wave has all its power in one place of the spectrum, a point has it everywhere.
    wave = np.cos(2 * np.pi * np.arange(20) / 20) * np.ones((24, 1))
    point = rng.normal(size=(24, 20)) * 1e-3
    point[5, 5] = 1.0
    if right.ndim > 2:
        right[..., 0, :, :], right[..., 1, :, :] = point, wave
    planes = normalised(xp, left, right, form, normalization="phase")
    alone = plain.every_pair(left, right, form, lambda f, g: normalised(xp, f, g, normalization="phase"))
    np.testing.assert_allclose(planes, alone, rtol=0, atol=1e-9)


def test_max_shift_is_rounded_up_and_never_beyond_the_matrices(xp, rng):
    left, right = rng.normal(size=(8, 6)), rng.normal(size=(5, 9))
    assert normalised(xp, left, right, max_shift=2.1).shape == (7, 7)
    assert normalised(xp, left, right, max_shift=(0, 3)).shape == (1, 7)
    assert normalised(xp, left, right, max_shift=1e9).shape == (2 * 7 + 1, 2 * 8 + 1)
    assert normalised(xp, left, right).shape == (8 + 5 - 1, 6 + 9 - 1)


SMALL = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"left": [object()]}, DataTypeError, "not numbers"),
        ({"left": SMALL + 1j}, DataTypeError, "complex128"),
        ({"left": np.ma.masked_array(SMALL, SMALL > 3)}, DataTypeError, "masked"),
        ({"left": SMALL[None]}, ShapeError, "left has shape"),
        ({"right": SMALL[None]}, ShapeError, "right has shape"),
        ({"right": SMALL[:0]}, ShapeError, "no elements"),
        ({"left": SMALL[None], "right": np.zeros((2, 1, 3, 4)), "form": "n-to-mn"}, ShapeError, "1 left.*2 sets"),
        ({"form": "many"}, ArgumentError, "unknown form 'many'"),
        ({"normalization": "best"}, ArgumentError, "unknown normalization 'best'"),
        ({"engine": "best"}, ArgumentError, "unknown engine 'best'"),
        ({"engine": "definition", "normalization": "phase"}, ArgumentError, "'phase' exists only in engine 'fft'"),
        ({"right": SMALL.T, "normalization": "phase"}, ArgumentError, "one shape"),
        ({"left": np.where(SMALL == 3, np.inf, SMALL)}, ArgumentError, "left holds NaN or infinite"),
        ({"right": np.where(SMALL == 3, np.nan, SMALL)}, ArgumentError, "right holds NaN or infinite"),
        ({"min_overlap": 1.5}, ArgumentError, "min_overlap is 1.5"),
        ({"min_overlap": float("nan")}, ArgumentError, "min_overlap is nan"),
        ({"min_overlap": None}, ArgumentError, "min_overlap is None"),
        ({"form": ["n-to-m"]}, ArgumentError, r"form is \['n-to-m'\]"),
        ({"engine": ["fft"]}, ArgumentError, r"engine \['fft'\]"),
        ({"kernel_options": {}}, ArgumentError, r"kernel_options is {}: give xcorr_app.KernelOptions"),
        ({"kernel_options": "combined"}, ArgumentError, "kernel_options is 'combined'"),
        ({"max_shift": -1}, ArgumentError, "max_shift is -1"),
        ({"max_shift": float("nan")}, ArgumentError, "max_shift is nan"),
        ({"max_shift": float("inf")}, ArgumentError, "max_shift is inf"),
        ({"max_shift": (1, 2, 3)}, ArgumentError, "max_shift is \\(1, 2, 3\\)"),
        ({"max_shift": "wide"}, ArgumentError, "max_shift is 'wide'"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else None,
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        cross_correlate(**{"left": SMALL, "right": SMALL, **arguments})


@pytest.mark.parametrize(
    ("dtype", "size", "wider"), [("float32", 1e25, "convert them to float64"), ("float64", 1e200, "")]
)
@pytest.mark.parametrize("engine", ["fft", "definition"])
def test_sums_that_do_not_fit_their_type_are_told_in_words(xp, rng, engine, dtype, size, wider):
    if xp is not np and engine == "definition":
        engine = "auto"
    image = xp.asarray((rng.random((6, 7)) * size).astype(dtype))
    with pytest.raises(ArgumentError, match=f"sums of left times right do not fit {dtype}: scale.*{wider}"):
        cross_correlate(image, image, normalization="none", engine=engine)
    assert float(xp.nanmax(cross_correlate(image, image, normalization="zncc"))) == pytest.approx(1, abs=1e-5)
    assert cross_correlate(image, image, normalization="none", check_finite=False).shape == (11, 13)


def test_shifts_and_shape():
    window = ShiftWindow(-2, 1, 3, 3)
    assert window.shape == (4, 1)
    np.testing.assert_array_equal(window.dys, [-2, -1, 0, 1])
    np.testing.assert_array_equal(window.dxs, [3])
    assert ShiftWindow.symmetric(2, 0) == ShiftWindow(-2, 2, 0, 0)
    assert window.grown(2) == ShiftWindow(-4, 3, 1, 5)


def test_full_window_holds_every_shift_with_a_common_element_and_no_other():
    window = ShiftWindow.full((4, 2), (3, 5))
    assert window == ShiftWindow(-2, 3, -4, 1)
    assert (overlap_counts((4, 2), (3, 5), window) >= 1).all()
    grown = overlap_counts((4, 2), (3, 5), window.grown(1))
    assert (grown[0] == 0).all()
    assert (grown[-1] == 0).all()
    assert (grown[:, 0] == 0).all()
    assert (grown[:, -1] == 0).all()


@pytest.mark.parametrize("bound", [0.5, -1.0, float("nan"), None, "3"])
@pytest.mark.parametrize("which", range(4))
def test_a_window_is_made_of_whole_pixels(bound, which):
    bounds = [-1, 1, -1, 1]
    bounds[which] = bound
    with pytest.raises(ArgumentError, match="whole pixels"):
        ShiftWindow(*bounds)
    bounds[which] = np.int64(0)
    assert ShiftWindow(*bounds).dys.dtype.kind == "i"


WINDOWS = [
    ShiftWindow.symmetric(3, 5),
    ShiftWindow.symmetric(0, 0),
    ShiftWindow(2, 9, -7, -4),
    ShiftWindow.symmetric(22, 30),
    ShiftWindow(-60, -40, -3, 60),
    ShiftWindow(-3, 3, 40, 70),
    ShiftWindow(80, 90, 0, 2),
    ShiftWindow(-50, 4, 3, 3),
]
SHAPES = [((47, 61), (47, 61)), ((47, 61), (20, 33)), ((20, 33), (47, 61)), ((1, 61), (1, 9))]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_all_overlaps(window, shapes, dtype, rng):
    images = [(rng.normal(size=(2, *shape)) + 0.3).astype(dtype) for shape in shapes]
    found = [overlap_sums(image, *shapes, window, of_right=side == 1) for side, image in enumerate(images)]
    for i, dy in enumerate(window.dys):
        for j, dx in enumerate(window.dxs):
            for side, part in enumerate(overlap_slices(*shapes, dy, dx)):
                values = images[side][:, *part].astype(np.float64)
                exact = values.sum(axis=(1, 2)), (values**2).sum(axis=(1, 2))
                largest = (images[side].astype(np.float64) ** 2).sum()
                for moment in (0, 1):
                    error = abs(found[side][moment][:, i, j] - exact[moment]).max()
                    assert error <= (3e-7 if dtype == np.float32 else 1e-14) * largest
