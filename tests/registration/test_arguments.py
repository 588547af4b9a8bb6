"""Wrong arguments raise the project's exceptions, and the message names the argument."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app import estimate_shifts
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError, XcorrError
from xcorr_app.registration.stack.prefilter import Prefilter

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
        ({"roi": (slice(0, 5),)}, ArgumentError, "roi"),
        ({"roi": (slice(0.0, 5.0), slice(None))}, ArgumentError, "roi .* whole pixels"),
    ],
    ids=lambda value: str(value)[:40].replace("\n", " ") if isinstance(value, str) else None,
)
def test_wrong_arguments_are_named(arguments, error, message):
    assert issubclass(error, XcorrError)
    assert issubclass(error, (ValueError, TypeError))
    with pytest.raises(error, match=message):
        estimate_shifts(**{"stack": STACK, **arguments})


def test_what_is_no_number_is_a_type_error_too():
    for arguments in ({"max_shift": "5"}, {"tolerance": "x"}, {"roi": 3}):
        with pytest.raises(TypeError):
            estimate_shifts(STACK, **arguments)


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
    ],
)
def test_wrong_prefilters_are_explained(text, message):
    with pytest.raises(ArgumentError, match=message):
        Prefilter.parse(text)


@pytest.mark.parametrize("text", ["none", "gaussian:1.5", "highpass:4", "dog:1,3.5", "log:2", "median:3", "sobel"])
def test_a_prefilter_writes_itself_as_it_was_read(text):
    assert str(Prefilter.parse(text)) == text
    assert Prefilter.parse(None) == Prefilter.parse("none")
