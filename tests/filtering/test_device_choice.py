"""What runs where on a device, and in which precision: rules without a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcorr_app as xc
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.choice import decide_filter, is_cheaper_apart, slides
from xcorr_app.filtering.precision import needs_double
from xcorr_app.filtering.request import Request, checked_request
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits

H200 = KNOWN_DEVICES["h200"]


def request(taps: Any, image_type: str = "float32", **options: Any) -> Request:
    asked = {"cval": 0.0, "origin": 0, "dtype": "same", "engine": "auto", "flip": False, **options}
    mode = asked.pop("mode", "reflect")
    return checked_request((200, 200), np.dtype(image_type), taps, mode, **asked)


def decided(
    taps: Any,
    image_type: str = "float32",
    *,
    limits: Any = H200,
    engine: str = "auto",
    kernel: str = "auto",
    images: Any = (200, 200),
    **more: Any,
) -> Decision:
    asked = request(taps, image_type, **more)
    return decide_filter(asked, taps, images, np.dtype(image_type), limits, engine, named=kernel)


def engine_on_device(taps: Any, engine: str = "auto") -> str:
    return decided(taps, engine=engine, limits=DeviceLimits()).engine


def full_rank(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).standard_normal(shape)


@pytest.mark.parametrize(
    ("taps", "engine"),
    [
        (np.ones((3, 3)), "reuse"),
        (np.ones((7, 7)), "reuse"),
        (np.ones((7, 8)), "separable"),
        (np.ones((1, 63)), "reuse"),
        (np.ones((1, 64)), "separable"),
        (np.ones((300, 300)), "separable"),
        (xc.filters.sobel("x"), "reuse"),
        (xc.filters.log(1.0), "separable"),
        (xc.filters.gaussian(1), "separable"),
        (xc.filters.gaussian(100), "sliding"),
        (full_rank(9, 9), "reuse"),
        (full_rank(63, 63), "reuse"),
        (full_rank(64, 5), "fft"),
        (full_rank(70, 70), "fft"),
        (Filter("three", tuple((np.arange(70.0) ** n, np.ones(70) / (n + 1)) for n in range(3))), "fft"),
    ],
)
def test_what_auto_takes(taps: Any, engine: str) -> None:
    assert engine_on_device(taps) == engine


def test_the_rule_counts_products_where_the_copy_does_not_hide_them() -> None:
    assert not is_cheaper_apart((7, 7), 1)
    assert is_cheaper_apart((8, 7), 1)
    assert is_cheaper_apart((8, 7), 2)
    assert not is_cheaper_apart((2, 30), 2)
    assert not is_cheaper_apart((1, 63), 1)


@pytest.mark.parametrize("engine", ["opencv", "scipy"])
def test_engines_of_the_cpu_are_refused(engine: Any) -> None:
    with pytest.raises(ArgumentError, match=r"runs on the CPU.*cupy\.asnumpy"):
        engine_on_device(np.ones((3, 3)), engine)


def test_engines_that_cannot_run_the_taps_are_refused() -> None:
    with pytest.raises(ArgumentError, match="rank 1 or 2"):
        engine_on_device(np.eye(5), "separable")
    with pytest.raises(ArgumentError, match="up to 63 x 63 taps"):
        engine_on_device(np.ones((64, 2)), "reuse")
    assert engine_on_device(np.eye(5), "fft") == "fft"
    assert engine_on_device(np.ones((3, 3)), "separable") == "separable"


@pytest.mark.parametrize(
    ("made", "image_type", "options", "sliding"),
    [
        (xc.filters.gaussian(64), "float32", {}, True),
        (xc.filters.gaussian((64, 3)), "uint8", {}, True),
        (xc.filters.gaussian(64), "uint16", {"dtype": "float32"}, True),
        (xc.filters.gaussian(64), "uint16", {}, True),
        (xc.filters.gaussian(64), "float64", {"dtype": "float32"}, False),
        (xc.filters.gaussian(64), "float32", {"origin": (0, 1)}, False),
        (xc.filters.gaussian(4), "float32", {"mode": "valid"}, False),
        (xc.filters.gaussian(8.5), "float32", {}, True),
        (xc.filters.gaussian(8.4), "float32", {}, False),
        (xc.filters.gaussian(8), "uint16", {"dtype": "float32"}, False),
        (xc.filters.gaussian(7.25), "uint16", {}, True),
        (xc.filters.gaussian(7.2), "int16", {}, False),
        (xc.filters.gaussian(5.5), "uint8", {}, True),
        (xc.filters.gaussian(5.4), "uint8", {}, False),
        (xc.filters.gaussian((2, 15)), "float32", {}, True),
        (xc.filters.gaussian((2, 14)), "float32", {}, False),
        (xc.filters.gaussian((64, 1)), "float32", {}, False),
        (xc.filters.log(64), "float32", {}, False),
    ],
)
def test_wide_gaussians_slide_where_that_is_exact_enough(
    made: Filter, image_type: str, options: dict[str, Any], sliding: bool
) -> None:
    assert slides(made, request(made, image_type, **options), np.dtype(image_type)) is sliding
    assert not slides(made.taps, request(made, image_type, **options), np.dtype(image_type))


@pytest.mark.parametrize(
    ("image_type", "cval", "sliding"),
    [
        ("uint8", 255, True),
        ("uint8", 256, False),
        ("uint16", 65535, True),
        ("uint16", -1, False),
        ("int16", -1, True),
        ("float32", 1e7, True),
    ],
)
def test_integers_slide_where_the_outside_is_in_their_range(image_type: str, cval: float, sliding: bool) -> None:
    made = xc.filters.gaussian(20)
    asked = request(made, image_type, mode="constant", cval=cval)
    assert slides(made, asked, np.dtype(image_type)) is sliding


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


STACK = (64, 1024, 1024)


def test_a_gaussian_of_eight_pixels_runs_on_tensor_cores() -> None:
    found = decided(xc.filters.gaussian(8), images=STACK)
    assert found.name == "separable:banded"
    assert "tensor cores" in found.reason
    expected = {candidate.kernel: candidate.microseconds for candidate in found.candidates}
    assert expected["banded"] == pytest.approx(336, rel=0.15)
    assert expected["separable"] == pytest.approx(406, rel=0.15)


def test_only_the_device_that_was_measured_takes_tensor_cores() -> None:
    for name, kernel in (("h200", "banded"), ("a100", "separable"), ("t4", "separable")):
        assert decided(xc.filters.gaussian(8), images=STACK, limits=KNOWN_DEVICES[name]).kernel == kernel


def test_a_gaussian_of_64_pixels_slides() -> None:
    found = decided(xc.filters.gaussian(64), images=STACK)
    assert found.name == "sliding:sliding"
    assert "wide" in found.reason
    assert found.candidates[0].microseconds == pytest.approx(500, rel=0.15)
    assert decided(xc.filters.gaussian(20), "uint16").kernel == "sliding"
    slow = decided(xc.filters.gaussian(20), "uint16", limits=DeviceLimits(compute_capability=89))
    assert slow.engine == "separable"


def test_a_gaussian_long_on_one_axis_alone_takes_the_fft_on_large_images() -> None:
    taps = xc.filters.gaussian((49.6, 1.0))
    large, small = (decided(taps, images=(2, size, size)) for size in (3767, 200))
    assert large.engine == "fft"
    assert "the FFT takes less" in large.reason
    assert (small.engine, small.kernel) == ("separable", "two_passes")
    assert decided(taps, images=(2, 3767, 3767), engine="separable").engine == "separable"


def test_a_small_stack_takes_less_by_its_taps_than_by_sliding_sums() -> None:
    wide = xc.filters.gaussian(10)
    assert decided(wide, "uint16", images=(2, 300, 300)).kernel == "separable"
    assert decided(wide, "uint16", images=(64, 1024, 1024)).kernel == "sliding"


def test_small_taps_name_the_dense_kernel_and_why() -> None:
    found = decided(np.ones((5, 5)), "uint16", images=STACK)
    assert found.name == "reuse:reuse"
    assert "5 x 5 taps take about as long as the copy" in found.reason
    assert "registers" in found.reason
    assert decided(np.ones((7, 7)), "uint16").kernel == "separable"
    assert decided(full_rank(31, 31)).kernel == "reuse_wide"


def test_every_kernel_can_be_asked_for_by_name() -> None:
    for kernel, taps in (
        ("exchange", np.ones((3, 7))),
        ("banded", xc.filters.gaussian(2)),
        ("separable", xc.filters.gaussian(6)),
        ("sliding", xc.filters.gaussian(2.5)),
        ("reuse_wide", np.eye(5)),
    ):
        found = decided(taps, kernel=kernel)
        assert (found.kernel, found.reason) == (kernel, "it was asked for")
    assert decided(full_rank(31, 31), kernel="reuse").kernel == "reuse_wide"
    assert decided(np.ones((9, 9)), kernel="reuse").kernel == "reuse"
    with pytest.raises(ArgumentError, match="up to 63 x 63"):
        decided(np.ones((64, 5)), kernel="exchange")
    with pytest.raises(ArgumentError, match="runs on a GPU"):
        decided(np.ones((5, 5)), kernel="banded", limits=None)


def test_what_is_chosen_is_the_first_candidate_and_all_have_names_of_their_own() -> None:
    for taps in (np.ones((3, 3)), full_rank(9, 9), full_rank(70, 70), xc.filters.gaussian(2), xc.filters.gaussian(90)):
        for limits in (H200, None):
            found = decided(taps, limits=limits)
            names = [candidate.name for candidate in found.candidates]
            assert names[0] == found.name
            assert len(set(names)) == len(names)
            assert found.reason


@pytest.mark.parametrize(
    ("taps", "finite", "engine"),
    [
        (np.ones((3, 3)), True, "opencv"),
        (np.ones((7, 7)), True, "separable"),
        (full_rank(9, 9), True, "opencv"),
        (full_rank(70, 70), True, "fft"),
        (full_rank(70, 70), False, "opencv"),
    ],
)
def test_the_cpu(taps: Any, finite: bool, engine: str) -> None:
    asked = request(taps)
    found = decide_filter(asked, taps, (200, 200), np.dtype("float32"), None, finite=finite)
    assert found.name == engine
    assert decide_filter(asked, taps, (200, 200), np.dtype("float32"), None, "scipy").engine == "scipy"
