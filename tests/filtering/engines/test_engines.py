"""Every engine gives the same sums; the choice among them follows taps and frame; what lies outside of it."""

from typing import Any

import numpy as np
import pytest

import xcorr_app as xc
from tests.filtering.oracle import BOUNDARIES, assert_same_pixels, convolved, largest_sum, random_image
from xcorr_app.filtering.engines.choice import chosen_engine
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.taps import Filter, correlation_kernel


def kernel(taps: Any) -> Any:
    return correlation_kernel(taps, 0, flip=True, tolerance=1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ["opencv", "separable", "fft"], indirect=True)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("mode", [*BOUNDARIES, "valid"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (4, 3), (12, 13), (31, 30)])
def test_engines_agree(mode: Any, dtype: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    images = random_image(rng, (36, 43), dtype)
    taps = np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1]))
    taps /= np.abs(taps).sum()
    made = "constant" if mode == "valid" else mode
    exact = convolved(images, taps, made, cval=5.0)
    if mode == "valid":
        top, left = (shape[0] - 1) // 2, (shape[1] - 1) // 2
        exact = exact[top : top + 37 - shape[0], left : left + 44 - shape[1]]
    actual = xc.convolve(images, taps, mode, cval=5.0)
    assert_same_pixels(actual, exact, largest_sum(images, taps, made, 5.0))


@pytest.mark.parametrize("engine", ["opencv", "fft"], indirect=True)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("mode", BOUNDARIES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5)])
def test_frames_that_the_taps_fold_many_times(mode: Any, shape: tuple[int, int], rng: np.random.Generator) -> None:
    image, taps = rng.random(shape), rng.standard_normal((31, 40))
    exact = convolved(image, taps, mode, cval=2.0)
    np.testing.assert_allclose(xc.convolve(image, taps, mode, cval=2.0), exact, rtol=0, atol=1e-9)


def test_terms_that_cancel_keep_the_precision_of_their_sum(rng: np.random.Generator) -> None:
    column, row = rng.random(64), rng.random(64)
    made = Filter("difference", ((column, row), (-column, row * (1 + 1e-4 * rng.random(64)))))
    image = rng.random((40, 50)).astype(np.float32)
    assert kernel(made).dense is None
    assert_same_pixels(xc.convolve(image, made), convolved(image, made.taps), largest_sum(image, made.taps))


@pytest.mark.parametrize(
    ("taps", "finite", "engine"),
    [
        (np.ones((3, 3)), True, "opencv"),
        (np.ones((5, 5)), True, "separable"),
        (np.ones((1, 63)), True, "opencv"),
        (np.eye(2).repeat([4, 3], 0).repeat([4, 3], 1), True, "opencv"),
        (np.eye(2).repeat(4, 0).repeat(4, 1), True, "separable"),
        (np.eye(63), True, "opencv"),
        (np.eye(64), True, "fft"),
        (np.eye(64), False, "opencv"),
        (np.ones((64, 64)), False, "separable"),
        (xc.filters.gaussian(250), True, "separable"),
        (xc.filters.laplacian(), True, "opencv"),
    ],
)
def test_the_choice(taps: Any, finite: bool, engine: str) -> None:
    assert chosen_engine(kernel(taps), finite=finite) == engine


def task(image: Any, taps: Any, *, integer: bool = False, mode: Any = "reflect", cval: float = 0.0) -> Task:
    return Task(np.asarray(image), kernel(taps), mode, cval, integer_result=integer)


def test_single_precision_is_used_only_where_it_is_exact_enough() -> None:
    mean = np.full((3, 3), 1 / 9)
    ones = np.ones((4, 4), np.float32)
    assert task(ones, mean).working_type(9) is np.float32
    assert task(ones, mean).working_type(130) is np.float64
    assert task(ones.astype(np.float64), mean).working_type(9) is np.float64
    assert task(ones * 1e35, mean).working_type(9) is np.float64
    assert task(ones * np.nan, mean).working_type(9) is np.float64
    assert task(ones, mean, mode="constant", cval=1e35).working_type(9) is np.float64
    assert task(ones * 0, mean).working_type(9) is np.float32
    assert task(np.full((4, 4), 255, np.uint8), mean, integer=True).working_type(9) is np.float32
    assert task(np.full((4, 4), 255, np.uint8), mean * 20, integer=True).working_type(9) is np.float64
    assert task(np.full((4, 4), 65535, np.uint16), mean, integer=True).working_type(9) is np.float64
    assert task(np.full((4, 4), -32768, np.int16), mean, integer=True).working_type(9) is np.float64
    assert task(np.full((4, 4), 255, np.uint8), mean * 1e300, integer=True).working_type(9) is np.float64
    assert task(np.full((4, 4), 255, np.uint8), mean * 1e-300, integer=True).working_type(9) is np.float32
