"""Problems, parts of batches and launch parameters: what can be wrong before any kernel runs."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.direct.kernels import KERNELS, max_pairs
from xcorr_app.gpu.direct.plan import plan_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_matrices_are_refused(shape):
    with pytest.raises(ShapeError, match="at least one element"):
        Problem.full_plane(shape, (3, 3))
    with pytest.raises(ShapeError, match="at least one element"):
        Problem((3, 3), (3, 3), (0, 0), shape)


def test_rights_that_fit_no_form_are_refused():
    with pytest.raises(ShapeError, match="n-to-m"):
        Problem.full_plane((3, 3), (3, 3), lefts=2, rights=5, rights_per_left=3)


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("plane", [(1, 1), (63, 63), (1023, 3), (3, 1023), (4095, 4095)])
def test_every_launch_of_a_huge_batch_fits_the_grid(variant, plane):
    batch = {"lefts": 3, "rights": 70_000_000, "rights_per_left": 70_000_000}
    problem = Problem((2048, 2048), (2048, 2048), (-plane[0] // 2, -plane[1] // 2), plane, **batch)
    most = max_pairs(variant, problem)
    assert most >= 1
    first = next(problem.parts(most))
    if KERNELS[variant].accepts(first.problem, DeviceLimits()) is not None:
        with pytest.raises(ArgumentError):
            KERNELS[variant].launch(first.problem)
        return
    launch = KERNELS[variant].launch(first.problem)
    while launch:
        assert launch.blocks * launch.threads < 2**31 * 32
        assert launch.blocks < 2**31
        assert launch.shared_bytes <= 99 * 1024
        assert launch.threads <= 1024
        launch = launch.then


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("kilobytes", [64, 99, 163, 227])
@pytest.mark.parametrize("sum_type", ["float", "double"])
def test_every_launch_fits_the_shared_memory_of_its_device(variant, kilobytes, sum_type):
    """Small matrices in large windows too, where sums take more room than what they are made of."""
    device = DeviceLimits(shared_bytes=kilobytes * 1024)
    shapes, windows = ((1, 3), (4, 4), (9, 16), (33, 64), (100, 100)), ((9, 17), (33, 33), (65, 40), (127, 65))
    for shape, window in product(shapes, windows):
        first = -(window[0] // 2), -(window[1] // 2)
        problem = Problem(shape, shape, first, window, lefts=5000, rights=5000)
        if KERNELS[variant].accepts(problem, device) is None:
            with suppress(ArgumentError):  # one that the variant computes in float only
                assert (
                    KERNELS[variant].launch(problem, device=device, sum_type=sum_type).shared_bytes
                    <= device.shared_bytes
                )


@pytest.mark.parametrize("axis", [0, 1])
def test_overlaps_are_those_of_enumeration(axis):
    problem = Problem((5, 9), (7, 4), (-9, -6), (16, 17))
    left, right = problem.left_shape[axis], problem.right_shape[axis]
    first = problem.first_shift[axis]
    expected = [
        sum(0 <= at + shift < left for at in range(right)) for shift in range(first, first + problem.plane_shape[axis])
    ]
    assert problem.overlaps(axis) == expected


def test_a_plane_too_large_for_one_launch_is_refused():
    problem = Problem((2**16, 2**16), (2**16, 2**16), (0, 0), (2**16, 2**16))
    with pytest.raises(ArgumentError, match="smaller window"):
        max_pairs("overlap-wise", problem)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left_type": "float64"}, "convert the matrices"),
        ({"sum_type": "half"}, "float or double"),
        ({"variant": "combined", "tuning": {"TILE_X": 7, "WARPS_X": 2}}, "multiple of 4"),
        ({"variant": "row-product", "tuning": {"PAIRS": 3}}, "1, 2, 4 or 8"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    arguments = {"variant": "combined", "problem": Problem.full_plane((9, 9), (9, 9)), **arguments}
    with pytest.raises(ArgumentError, match=message):
        KERNELS[arguments.pop("variant")].launch(**arguments)


def test_an_unknown_variant_is_named():
    with pytest.raises(ArgumentError, match="unknown variant 'fft'; choose from overlap-wise"):
        plan_of(Problem.full_plane((9, 9), (9, 9)), "fft")
