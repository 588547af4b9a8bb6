"""Taps: rank found, limits of the tolerance, scaling, origin, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xcorr_app import filters
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.taps import Filter, correlation_kernel, low_rank, multiplied_out


def kernel(taps: Any, **options: Any) -> Any:
    return correlation_kernel(taps, options.pop("origin", 0), flip=options.pop("flip", False), tolerance=1e-12)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (2, 2), (5, 5), (8, 31), (63, 63)])
def test_terms_of_low_rank_taps_give_the_taps_back(rank: int, shape: tuple[int, int], rng: np.random.Generator) -> None:
    taps = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    terms = low_rank(taps, 1e-12)
    assert len(terms) == min(rank, *shape)
    assert np.abs(multiplied_out(terms) - taps).sum() <= 1e-12 * np.abs(taps).sum()


def test_rank_3_stays_dense(rng: np.random.Generator) -> None:
    assert low_rank(rng.standard_normal((5, 3)) @ rng.standard_normal((3, 5)), 1e-9) == ()


def test_the_tolerance_is_a_fraction_of_the_sum_of_magnitudes() -> None:
    taps = np.ones((4, 4))
    taps[2, 1] += 16e-6
    assert len(low_rank(taps, 3e-6)) == 1
    assert len(low_rank(taps, 1e-7)) == 2


def test_a_gaussian_stored_as_float32_is_still_one_term_for_a_float32_result() -> None:
    assert len(low_rank(filters.gaussian(2.0).taps.astype(np.float32).astype(np.float64), 6e-8)) == 1


@pytest.mark.parametrize("size", [1e-310, 1e-30, 1.0, 1e300])
def test_scaled_taps_are_of_order_one_and_the_exponent_undoes_it(size: float) -> None:
    taps = np.array([[0.5, -1.0, 0.25]]) * size
    made = kernel(taps)
    assert 0.5 <= np.abs(made.dense).max() < 1
    np.testing.assert_array_equal(np.ldexp(made.dense, made.exponent), taps)


def test_the_centre_is_that_of_scipy() -> None:
    taps = np.ones((4, 5))
    assert kernel(taps).centre == (2, 2)
    assert kernel(taps, flip=True).centre == (1, 2)
    assert kernel(taps, origin=(-2, 1)).centre == (0, 3)
    assert kernel(taps, origin=(np.int64(1), -2), flip=True).centre == (0, 4)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ((), "at least one term"),
        (((np.ones(3), np.ones(2)), (np.ones(3), np.ones(3))), "of one length"),
        (((np.ones((3, 1)), np.ones(2)),), "one-dimensional"),
        (((np.ones(3), np.array([np.nan])),), "finite"),
        (((np.ones(0), np.ones(2)),), "at least one term"),
    ],
)
def test_terms_that_do_not_belong_together_are_refused(terms: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Filter("mine", terms)


@pytest.mark.parametrize("origin", [2, -3, (0, 2), (-3, 0)])
def test_an_origin_off_the_taps_is_refused(origin: Any) -> None:
    with pytest.raises(ArgumentError, match="moves the centre off"):
        kernel(np.ones((4, 4)), origin=origin)


@pytest.mark.parametrize("origin", [0.5, "a", (1,), (0, 0, 0)])
def test_an_origin_that_is_no_pair_of_whole_numbers_is_refused(origin: Any) -> None:
    with pytest.raises(ArgumentError, match="whole number"):
        kernel(np.ones((9, 9)), origin=origin)


@pytest.mark.parametrize("taps", [[1.0, 2.0], 3.0, np.ones((0, 3)), np.ones((2, 2, 2))])
def test_taps_that_are_no_matrix_are_refused(taps: Any) -> None:
    with pytest.raises(ShapeError, match="matrix"):
        kernel(taps)


@pytest.mark.parametrize("taps", [[[1j]], [["a"]], [[None]]])
def test_taps_that_are_no_real_numbers_are_refused(taps: Any) -> None:
    with pytest.raises(DataTypeError, match="real numbers"):
        kernel(taps)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_taps_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ArgumentError, match="finite"):
        kernel([[1.0, value]])
