"""What runs where on a device, and in which precision: rules without a device."""

from typing import Any

import numpy as np
import pytest

import xcorr_app as xc
from xcorr_app.decision import Decision
from xcorr_app.filtering.choice import decide_filter
from xcorr_app.filtering.precision import needs_double
from xcorr_app.filtering.request import Request, checked_request
from xcorr_app.gpu.runtime.limits import H200, DeviceLimits


def request(taps: Any, image_type: str = "float32", **options: Any) -> Request:
    asked = {"cval": 0.0, "origin": 0, "dtype": "same", "flip": False, **options}
    mode = asked.pop("mode", "reflect")
    return checked_request((200, 200), np.dtype(image_type), taps, mode, **asked)


def decided(
    taps: Any,
    image_type: str = "float32",
    *,
    limits: Any = H200,
    kernel: str = "auto",
    images: Any = (200, 200),
    **more: Any,
) -> Decision:
    asked = request(taps, image_type, **more)
    return decide_filter(asked, taps, images, np.dtype(image_type), limits, named=kernel)


def engine_on_device(taps: Any, kernel: str = "auto") -> str:
    return decided(taps, kernel=kernel, limits=DeviceLimits()).engine


def full_rank(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).standard_normal(shape)


SMOOTH = np.full((3, 3), 1 / 9)


@pytest.mark.parametrize(
    ("taps", "image_type", "options", "double"),
    [
        (SMOOTH, "uint8", {}, False),
        (SMOOTH, "uint16", {}, False),
        (2 * SMOOTH, "uint16", {}, True),
        (2 * SMOOTH, "int16", {}, False),
        (3 * SMOOTH, "int16", {}, True),
        (2 * SMOOTH, "uint16", {"dtype": "float32"}, False),
        (300 * SMOOTH, "uint8", {}, False),
        (400 * SMOOTH, "uint8", {}, True),
        (9 * SMOOTH, "float32", {}, False),
        (2 * SMOOTH, "float64", {}, False),
        (xc.filters.sobel("y"), "uint16", {}, False),  # whole numbers: nothing rounds
        (xc.filters.sobel("y").taps / 8, "uint16", {}, False),
        (100 * xc.filters.sobel("y").taps, "uint16", {}, True),
        (np.full((3, 3), 1 / 3.0), "uint8", {"mode": "constant", "cval": 1e6}, True),
        (1e35 * SMOOTH, "float32", {}, True),
        (1e-35 * SMOOTH, "float32", {}, True),
        (np.zeros((3, 3)), "uint16", {}, False),
        (1e300 * SMOOTH, "uint16", {}, True),
    ],
)
def test_where_float32_sums_are_not_exact_enough(taps: Any, image_type: str, options: Any, double: bool) -> None:
    asked = request(taps, image_type, **options)
    engine = decided(taps, image_type, **options).engine
    assert needs_double(asked, np.dtype(image_type), engine) is double


def test_terms_that_cancel_are_summed_in_float64() -> None:
    """Terms that were given; those that are found in dense taps do not cancel."""
    for made, double in (
        (xc.filters.dog(2, 30), False),
        (xc.filters.dog(20, 20.5), True),
        (xc.filters.dog(2, 2.05), False),
    ):
        asked = request(made)
        assert decided(made).engine == "separable"
        assert needs_double(asked, np.dtype("float32"), "separable") is double


def test_what_is_chosen_is_the_first_candidate_and_all_have_names_of_their_own() -> None:
    for taps in (np.ones((3, 3)), full_rank(9, 9), full_rank(70, 70), xc.filters.gaussian(2), xc.filters.gaussian(90)):
        for limits in (H200, None):
            found = decided(taps, limits=limits)
            names = [candidate.name for candidate in found.candidates]
            assert names[0] == found.name
            assert len(set(names)) == len(names)
            assert found.reason
