"""Wrong arguments raise the project's exceptions, and the message names the argument."""

import math

import numpy as np
import pytest
from skimage.data import camera

import xcorr_app as xc
from xcorr_app import apply_shifts, assess, estimate_motion, estimate_shifts, phase_cross_correlation
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError, XcorrError
from xcorr_app.registration.moving.apply import common_area
from xcorr_app.registration.patches.patch_fit import PatchOptions
from xcorr_app.registration.results.doubtful_frames import applied_shifts
from xcorr_app.registration.stack.prefilter import Prefilter
from xcorr_app.registration.warping.warp import warp_frames

STACK = np.random.default_rng(0).normal(size=(3, 12, 14))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"stack": STACK[0]}, ShapeError, r"stack has shape \(12, 14\)"),
        ({"stack": STACK[:0]}, ShapeError, r"stack has shape \(0, 12, 14\)"),
        ({"stack": STACK[:, :, :0]}, ShapeError, r"stack has shape \(3, 12, 0\)"),
        ({"max_shift": "5"}, ArgumentError, "max_shift is '5'"),
        ({"mask": np.full(STACK.shape[1:], np.nan)}, ArgumentError, "no pixel counts"),
        ({"stack": STACK + 1j}, DataTypeError, "complex128"),
        ({"stack": np.ma.masked_array(STACK, STACK > 2), "mask": "finite"}, ArgumentError, "give one of them"),
        ({"reference": np.ma.masked_array(STACK[0], STACK[0] > 2)}, DataTypeError, "masked"),
        ({"reference": np.ones(STACK.shape[1:])}, ArgumentError, "reference image has the same value everywhere"),
        ({"reference": np.full(STACK.shape[1:], np.nan)}, ArgumentError, "reference image has .* no finite value"),
        ({"reference": "best"}, ArgumentError, "unknown reference 'best'"),
        ({"reference": 3}, ArgumentError, "reference frame 3 does not exist.*0 to 2"),
        ({"reference": -4}, ArgumentError, "reference frame -4"),
        ({"reference": STACK[0, :5]}, ShapeError, r"reference image has shape \(5, 14\)"),
        ({"reference": [[1, 2], [3]]}, ShapeError, "cannot be made an array"),
        ({"reference": STACK[0] + 1j}, DataTypeError, "complex128"),
        ({"max_shift": -2}, ArgumentError, "max_shift is -2"),
        ({"max_shift": float("nan")}, ArgumentError, "max_shift is nan"),
        ({"max_shift": (1, 2, 3)}, ArgumentError, "max_shift is"),
        ({"max_shift": "far"}, ArgumentError, "max_shift is 'far'"),
        ({"normalization": "best"}, ArgumentError, "unknown normalization 'best'"),
        ({"subpixel": "best"}, ArgumentError, "unknown subpixel method 'best'"),
        ({"weighting": "best"}, ArgumentError, "unknown weighting 'best'"),
        ({"engine": "best"}, ArgumentError, "unknown engine 'best'"),
        ({"engine": ["fft"]}, ArgumentError, r"unknown engine \['fft'\]"),
        ({"kernel_options": "combined"}, ArgumentError, "kernel_options is 'combined': give xcorr_app.KernelOptions"),
        ({"min_overlap": "half"}, ArgumentError, "min_overlap is 'half'"),
        ({"min_score": None}, ArgumentError, "min_score is None"),
        ({"tolerance": "small"}, ArgumentError, "tolerance is 'small'"),
        ({"upsample": 0}, ArgumentError, "upsample is 0"),
        ({"upsample": 10**6}, ArgumentError, "upsample is 1000000"),
        ({"upsample": "100"}, ArgumentError, "upsample is '?100"),
        ({"min_overlap": -0.1}, ArgumentError, "min_overlap is -0.1"),
        ({"min_overlap": float("nan")}, ArgumentError, "min_overlap is nan"),
        ({"min_score": 2}, ArgumentError, "min_score is 2"),
        ({"tolerance": 0}, ArgumentError, "tolerance is 0"),
        ({"tolerance": float("nan")}, ArgumentError, "tolerance is nan"),
        ({"max_sigma": 0}, ArgumentError, "max_sigma is 0"),
        ({"verify": "some"}, ArgumentError, "verify is 'some'"),
        ({"verify": -1}, ArgumentError, "verify is -1"),
        ({"verify": True}, ArgumentError, "verify is True"),
        ({"verify": 1.5}, ArgumentError, "verify is 1.5"),
        ({"prefilter": 5}, ArgumentError, "prefilter is 5: give its name and numbers as text"),
        ({"prefilter": ["sobel"]}, ArgumentError, r"prefilter is \['sobel'\]"),
        ({"prefilter": b"sobel"}, ArgumentError, "prefilter is b'sobel'"),
        ({"prefilter": "best"}, ArgumentError, "unknown prefilter 'best'"),
        ({"roi": (slice(0, 13), slice(0, 5))}, ArgumentError, "roi rows 0:13"),
        ({"roi": (slice(0, 5), slice(4, 4))}, ArgumentError, "roi columns 4:4"),
        ({"roi": (slice(-3, None), slice(None))}, ArgumentError, "roi rows -3:12"),
        ({"roi": (slice(0, 12, 2), slice(None))}, ArgumentError, "roi .* without a step"),
        ({"roi": ((0, 5), (0, 5))}, ArgumentError, "roi"),
        ({"roi": 3}, ArgumentError, "roi is 3"),
        ({"roi": (slice(0, 5),)}, ArgumentError, "roi"),
        ({"roi": (slice(0.0, 5.0), slice(None))}, ArgumentError, "roi .* whole pixels"),
    ],
    ids=lambda value: str(value)[:40].replace("\n", " ") if isinstance(value, str) else None,
)
def test_wrong_arguments_are_named(arguments, error, message):
    assert issubclass(error, XcorrError)
    assert issubclass(error, TypeError)
    with pytest.raises(error, match=message):
        estimate_shifts(**{"stack": STACK, **arguments})


def test_a_shift_without_a_standard_error_is_not_trusted():
    lines = np.random.default_rng(0).normal(size=(3, 512, 1))
    result = estimate_shifts(lines, max_shift=5)
    assert np.isnan(result.sigma).any(axis=1).tolist() == [True] * 3
    assert not result.trusted.any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gaussian", "write gaussian:SIGMA"),
        ("gaussian:", "write gaussian:SIGMA"),
        ("gaussian:0", "above 0"),
        ("gaussian:-1", "above 0"),
        ("gaussian:nan", "above 0"),
        ("gaussian:inf", "above 0"),
        ("gaussian:two", "no number"),
        ("gaussian:1,2", "write gaussian:SIGMA"),
        ("dog:1", "write dog:SMALL-SIGMA,LARGE-SIGMA"),
        ("dog:3,1", "first sigma must be smaller"),
        ("sobel:1", "write sobel"),
        ("Gaussian:1", "unknown prefilter 'Gaussian'"),
        ("", "unknown prefilter ''"),
        *((text, f"prefilter '{text}': (sigma|the size)") for text in ("gaussian:251", "log:0.01", "unsharp:300,1")),
        ("box:2.5", "prefilter 'box:2.5': (sigma|the size)"),
    ],
)
def test_wrong_prefilters_are_explained(text, message):
    with pytest.raises(ArgumentError, match=message):
        Prefilter.parse(text)


@pytest.mark.parametrize("text", ["none", "gaussian:1.5", "highpass:4", "dog:1,3.5", "log:2", "median:3", "sobel"])
def test_a_prefilter_writes_itself_as_it_was_read(text):
    assert str(Prefilter.parse(text)) == text
    assert Prefilter.parse(None) == Prefilter.parse("none")


IMAGE = np.random.default_rng(9).normal(size=(60, 70))
FRAMES = np.zeros((2, 40, 40), np.float32)
NOISE = np.random.default_rng(0).normal(size=(2, 40, 48)).astype(np.float32)
MOVIE = np.random.default_rng(1).random((2, 50, 60)) + 0.1
BYTES = np.zeros((2, 4, 4), np.uint8)
ONES = np.ones((5, 5))
THREE = np.zeros((3, 8, 9))
TYX = np.random.default_rng(2).random((3, 12, 14))
TZCYX = np.random.default_rng(3).random((3, 2, 2, 12, 14))


def of_field(**options):
    return lambda: xc.displacement_field(IMAGE, IMAGE, **options)


def of_mask(**options):
    return lambda: estimate_shifts(MOVIE, **options)


def moved(stack=BYTES, shifts=((0, 0), (0.5, 0)), **options):
    return lambda: apply_shifts(stack, shifts, **options)


def paired(left, right, **options):
    return lambda: phase_cross_correlation(left, right, **options)


OTHERS = [
    # Fields of displacements.
    (of_field(window=64), ShapeError, "do not fit"),
    (lambda: xc.displacement_field(IMAGE, IMAGE[1:]), ShapeError, "one shape"),
    (lambda: xc.displacement_field(IMAGE, np.ones_like(IMAGE)), ArgumentError, "flat"),
    (lambda: xc.displacement_field(np.where(IMAGE > 2, np.nan, IMAGE), IMAGE), ArgumentError, "NaN"),
    (lambda: xc.displacement_field(IMAGE + 1j, IMAGE + 1j), DataTypeError, None),
    (of_field(mask=np.zeros_like(IMAGE)), ArgumentError, "zero everywhere"),
    *(
        (of_field(**wrong), ArgumentError, None)
        for wrong in (
            {"window": 7}, {"window": 16.0}, {"step": 0}, {"passes": 0}, {"passes": 21}, {"refine": "best"},
            {"max_displacement": 0}, {"max_displacement": -1}, {"max_displacement": 70.5}, {"median_threshold": 0},
        )
    ),
    # Motion that is more than a shift.
    (lambda: estimate_motion(FRAMES, "elastic"), ArgumentError, "unknown model"),
    (lambda: estimate_motion(FRAMES, reference="best"), ArgumentError, "unknown reference"),
    (lambda: estimate_motion(FRAMES, reference=5), ArgumentError, "frame 5 does not exist"),
    (lambda: estimate_motion(FRAMES, max_sigma=0), ArgumentError, "max_sigma"),
    (lambda: estimate_motion(FRAMES, reference=np.zeros((3, 3))), ShapeError, None),
    (lambda: estimate_motion(np.zeros((2, 8, 40))), ShapeError, None),
    (lambda: estimate_motion(np.zeros((40, 40))), (ShapeError, DataTypeError), None),
    (lambda: warp_frames(FRAMES, np.full((2, 3, 3), np.nan)), ArgumentError, "finite"),
    (lambda: estimate_motion(NOISE[:1], "rigid", "template"), ArgumentError, "fewer than two frames"),
    (lambda: estimate_motion(NOISE, "patches"), ShapeError, "smaller patch"),
    (lambda: estimate_motion(NOISE, "patches", "previous", patch=32), ArgumentError, "unknown reference"),
    *(
        (lambda wrong=wrong: estimate_motion(NOISE, "patches", **{"patch": 32, **wrong}), ArgumentError, None)
        for wrong in ({"patch": 8}, {"patch_overlap": 1.0}, {"max_deviation": 0})
    ),
    *(
        (lambda wrong=wrong: PatchOptions(**wrong), ArgumentError, None)
        for wrong in (
            {"patch": 15}, {"patch": 32.0}, {"overlap": 1.0}, {"overlap": -0.01}, {"max_deviation": 0.0},
            {"max_deviation": 128.1}, {"max_deviation": math.nan},
        )
    ),
    # Frames to be moved.
    (moved(shifts=[(0, 0), (np.nan, 0)]), ArgumentError, r"shifts\[1\].*not finite"),
    (moved(shifts=[(0, 0)] * 3), ShapeError, r"expected \(2, 2\)"),
    (moved(shifts="left"), ArgumentError, "expected numbers"),
    (moved(interpolation=2), ArgumentError, "interpolation=2"),
    (moved(interpolation=True), ArgumentError, "interpolation=True"),
    (moved(border="crop"), ArgumentError, "border='crop'"),
    (moved(cval=256), ArgumentError, "from 0 to 255"),
    (moved(cval=0.5), ArgumentError, "whole number"),
    (moved(cval=np.nan), ArgumentError, "whole number"),
    (moved(["1", "2"]), DataTypeError, "not numbers"),
    (moved(np.ma.masked_array(np.zeros((2, 4, 4)))), DataTypeError, "mask"),
    (moved(np.zeros((2, 4, 4), dtype=complex)), DataTypeError, "complex128"),
    (moved(np.full((2, 4, 4), 2**60)), DataTypeError, r"int64 holds values beyond 2\*\*53"),
    (moved(np.zeros((2, 4, 4), np.int64), cval=0.5), ArgumentError, "whole number"),
    (moved(np.zeros((2, 0, 4))), ShapeError, "no pixel"),
    (moved(np.zeros(4)), ShapeError, "shape"),
    (lambda: applied_shifts(np.zeros((3, 2)), np.ones(3, bool), "guess"), ArgumentError, "interpolate, apply, leave"),
    (moved(order=1), ArgumentError, "'order' is 'interpolation' now"),
    (lambda: common_area((10, 10), [(6, 0), (-5, 0)]), ArgumentError, "no row is inside all 2 shifted frames"),
    *(
        (lambda bounds=bounds: xc.ShiftWindow(*bounds), ArgumentError, "empty shift window")
        for bounds in ((1, 0, 0, 0), (0, 0, 5, 4))
    ),
    # A number that is equal to one, and was kept for it.
    (lambda: [estimate_shifts(TYX, max_shift=most) for most in (1, True)], ArgumentError, "max_shift is True"),
    # What is said of a result, pairs of images, contrast, masks, references.
    (lambda: assess(THREE, THREE[:2]), ShapeError, "after has"),
    (lambda: assess(THREE[0], THREE[0]), ShapeError, None),
    (lambda: assess(THREE.astype(complex), THREE), DataTypeError, "complex"),
    (paired(ONES, np.ones((5, 5, 1))), ValueError, "skimage.registration measures volumes"),
    (paired(ONES, np.ones((4, 4))), ValueError, "give each a mask"),
    (paired(np.ones((0, 5)), np.ones((0, 5))), ValueError, "with pixels"),
    (paired(ONES, np.full((5, 5), np.nan)), ValueError, "reference_mask"),
    (paired(ONES, np.ones((4, 4)), reference_mask=ONES), ValueError, "a mask each"),
    (paired(ONES, ONES, space="frank"), ValueError, "'real' or 'fourier'"),
    (paired(ONES, ONES, normalization="nonexisting"), ValueError, "'phase' or None"),
    (paired(camera(), camera(), space="fourier"), ValueError, "no spectrum of a real image"),
    *(
        (lambda text=text: estimate_shifts(np.zeros((2, 8, 8)), contrast=text), ArgumentError, "contrast is")
        for text in ("local", "local:", "local:x", "local:0", "local:nan", "global:3", "", 8, None)
    ),
    (of_mask(mask="dark"), ArgumentError, "is no rule"),
    (of_mask(mask="threshold:x"), ArgumentError, "no rule: use"),
    (of_mask(mask=np.zeros((50, 60), bool)), ArgumentError, "no pixel counts"),
    (of_mask(mask="nonzero", reference="template"), ArgumentError, "takes no mask: use first"),
    (of_mask(mask="nonzero", normalization="phase"), ArgumentError, "use 'zncc'"),
    (of_mask(mask="nonzero", prefilter="gaussian:1"), ArgumentError, "would smear"),
    (of_mask(mask="nonzero", subpixel="phase"), ArgumentError, "'phase' takes no mask"),
    (of_mask(mask="nonzero", mask_moves=True), ArgumentError, "is one image"),
    (of_mask(mask="threshold:1e9"), ArgumentError, "of the reference counts"),
    (of_mask(mask=np.ones((10, 10), bool)), ShapeError, "mask is 10 x 10"),
    (lambda: xc.estimate_motion(MOVIE, "patches", mask=np.ones((50, 60))), ArgumentError, "patches take none"),
    (of_mask(reference="pairs"), ArgumentError, "write pairs:N"),
    (of_mask(reference="pairs:x"), ArgumentError, "write pairs:N"),
    (of_mask(reference="pairs:0"), ArgumentError, "from 1 to"),
    (of_mask(reference="mean:3"), ArgumentError, "unknown reference"),
    (of_mask(reference="sideways"), ArgumentError, "template, pairs:N"),
    *((of_mask(smooth_time=length), ArgumentError, "smooth_time") for length in (0, 2.5, 5000)),
    # Axes.
    *((lambda axes=axes: estimate_shifts(TYX, axes=axes), ArgumentError, "axes is") for axes in ("TYY", "TCY", "TAYX")),
    (lambda: estimate_shifts(TYX, axes=""), ArgumentError, "axes is"),
    (lambda: apply_shifts(TYX, (0, 1), axes="TCYX"), ShapeError, "the array has 3"),
    (lambda: estimate_shifts(TZCYX, axes="TZCYX", channel=2), ArgumentError, "channel 2 does not exist"),
    (lambda: estimate_shifts(TYX, channel=1), ArgumentError, "give axes"),
    (
        lambda: estimate_shifts(pytest.importorskip("xarray").DataArray(TZCYX, dims=("time", "z", "phase", "y", "x"))),
        ArgumentError,
        "not all say",
    ),
    (lambda: apply_shifts(TZCYX, [(0, 1), (1, 0)], axes="TZCYX"), ShapeError, r"expected \(3, 2\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), OTHERS)
def test_what_other_calls_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()
