"""Problems, parts of batches and launch parameters: what can be wrong before any kernel runs."""

from __future__ import annotations

import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.correlation_launch import VARIANTS, launch_of, most_pairs
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.correlation_tuning import fastest_variant


def pairs_of(problem, left=0, right=0):
    """(left, right) of each pair, as the kernels pair them, counted in the whole batch's matrices."""
    m = problem.rights_per_left
    return [(left + pair // m, right + pair % problem.rights) for pair in range(problem.pairs)]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "batch",
    [
        {},
        {"rights": 5, "rights_per_left": 5},
        {"lefts": 4, "rights": 4},
        {"lefts": 3, "rights": 15, "rights_per_left": 5},
        {"lefts": 3, "rights": 5, "rights_per_left": 5},
        {"lefts": 6, "rights": 1},
    ],
)
def test_parts_are_the_batch_in_order(most, batch):
    problem = Problem.full_plane((3, 3), (3, 3), **batch)
    together, planes = [], 0
    for part in problem.parts(most):
        assert part.problem.pairs <= most
        assert part.plane == planes
        planes += part.problem.pairs
        together += pairs_of(part.problem, part.left, part.right)
    assert together == pairs_of(problem)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_matrices_are_refused(shape):
    with pytest.raises(ShapeError, match="at least one element"):
        Problem.full_plane(shape, (3, 3))
    with pytest.raises(ShapeError, match="at least one element"):
        Problem((3, 3), (3, 3), (0, 0), shape)


def test_rights_that_fit_no_form_are_refused():
    with pytest.raises(ShapeError, match="n-to-m"):
        Problem.full_plane((3, 3), (3, 3), lefts=2, rights=5, rights_per_left=3)


def test_within_full_plane():
    assert Problem.full_plane((4, 5), (3, 9)).within_full_plane()
    assert Problem((4, 5), (3, 9), (-2, -8), (6, 13)).within_full_plane()
    assert not Problem((4, 5), (3, 9), (-3, -8), (6, 13)).within_full_plane()
    assert not Problem((4, 5), (3, 9), (-2, -8), (7, 13)).within_full_plane()
    assert not Problem((4, 5), (3, 9), (-2, -8), (6, 14)).within_full_plane()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("plane", [(1, 1), (63, 63), (1023, 3), (3, 1023), (4095, 4095)])
def test_every_launch_of_a_huge_batch_fits_the_grid(variant, plane):
    batch = {"lefts": 3, "rights": 70_000_000, "rights_per_left": 70_000_000}
    problem = Problem((2048, 2048), (2048, 2048), (-plane[0] // 2, -plane[1] // 2), plane, **batch)
    most = most_pairs(variant, problem)
    assert most >= 1
    first = next(problem.parts(most))
    launch = launch_of(variant, first.problem)
    while launch:
        assert launch.blocks * launch.threads < 2**31 * 32
        assert launch.blocks < 2**31
        assert launch.shared_bytes <= 99 * 1024
        assert launch.threads <= 1024
        launch = launch.then


def test_a_plane_too_large_for_one_launch_is_refused():
    problem = Problem((2**16, 2**16), (2**16, 2**16), (0, 0), (2**16, 2**16))
    with pytest.raises(ArgumentError, match="smaller window"):
        most_pairs("overlap-wise", problem)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "fft"}, "unknown variant"),
        ({"input_type": "float64"}, "convert the matrices"),
        ({"sum_type": "half"}, "float or double"),
        ({"variant": "combined", "tuning": {"TILE_X": 7, "WARPS_X": 2}}, "multiple of 4"),
        ({"variant": "row-product", "tuning": {"PAIRS": 3}}, "1, 2, 4 or 8"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    arguments = {"variant": "combined", "problem": Problem.full_plane((9, 9), (9, 9)), **arguments}
    with pytest.raises(ArgumentError, match=message):
        launch_of(**arguments)


def test_the_fastest_variant_follows_the_measurements():
    """On the benchmark's grid: full planes of large batches by row-product, single pairs and windows by combined."""
    many = {"lefts": 16, "rights": 16, "rights_per_left": 16}
    assert fastest_variant(Problem.full_plane((256, 256), (256, 256), **many), 132) == "row-product"
    assert fastest_variant(Problem.full_plane((32, 32), (32, 32), lefts=16384, rights=16384), 132) == "row-product"
    assert fastest_variant(Problem.full_plane((256, 256), (256, 256)), 132) == "combined"
    assert fastest_variant(Problem((512, 512), (512, 512), (-8, -8), (17, 17), lefts=256), 132) == "combined"
