"""Launch parameters of the filter kernels: pure, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.stencil.problem import FilterProblem, stays_in_range, taps_argument
from xcorr_app.gpu.stencil.reuse import FILTER_KERNELS, filter_launch, filter_parts


def test_weighted_means_stay_in_range():
    for least, total, inside in [(0, 1, True), (0.1, 0.5, True), (-0.1, 0.5, False), (0, 1.01, False)]:
        assert stays_in_range(least, total, "uint16", "uint16") is inside
        assert stays_in_range(least, total, "uint16", "float32")
    assert not stays_in_range(0, 1, "uint16", "uint8")
    assert not stays_in_range(0, 1, "uint8", "uint8", 255.5)
    assert stays_in_range(0, 1, "uint8", "uint8", 255.0)
    assert not stays_in_range(np.nan, np.nan, "uint8", "uint8")


def test_taps_are_the_struct_of_the_kernels():
    packed = taps_argument([[1, 2, 3], [4, 5, 6]], 7.5, "uint16")
    assert packed.size == 1
    assert packed.tobytes() == np.array([1, 2, 3, 4, 5, 6, 7.5, 21, 0], "float32").tobytes()
    assert taps_argument([[0.1]], 0.2, "float64").tobytes() == np.array([0.1, 0.2, 0.1, 0]).tobytes()
    high, low = taps_argument([[0.1, 0.2]], 0, "uint16")["total"].astype(float)
    assert high + low == pytest.approx(0.1 + 0.2, rel=1e-14)


def test_the_largest_taps_fit_the_arguments_of_a_kernel():
    """32764 bytes, since CUDA 12.1; three pointers and six integers besides."""
    assert taps_argument(np.ones((63, 63)), 0.0, "float64").nbytes + 3 * 8 + 6 * 4 <= 32764


def test_sums_in_double_precision_where_they_are_asked_for():
    problem = FilterProblem((512, 512), (15, 15))
    launch = filter_launch(problem, image_type="uint16", result_type="uint16", double_sums=True)
    assert launch.kernel == "stencil/reuse_wide"
    assert launch.defines["SUM_TYPE"] == "double"
    assert launch.defines["CENTRE"] == 0
    assert taps_argument([[0.1]], 0.2, "uint16", double_sums=True).tobytes() == np.array([0.1, 0.2, 0.1, 0]).tobytes()
    assert filter_launch(problem, image_type="uint16", result_type="uint16").defines["CENTRE"] == 1


@pytest.mark.parametrize("kernel", FILTER_KERNELS)
def test_warps_cover_every_result(kernel):
    launch = filter_launch(FilterProblem((1000, 1029), (4, 6), 3), kernel)
    columns = 32 * launch.defines.get("COLUMNS", 1) * launch.defines.get("GROUPS", 1)
    warps = 3 * -(-1029 // columns) * -(-1000 // launch.extra[-1])
    if kernel == "exchange":  # the edges apart, 256 results a warp
        warps = 3 * (-(-1024 // 32) * -(-997 // 56) + -(-(1029 * 1000 - 1024 * 997) // 256))
    assert launch.blocks == -(-warps // launch.defines["WARPS"])
    assert launch.threads == 32 * launch.defines["WARPS"]


@pytest.mark.parametrize("element", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("width", [2047, 2048])
def test_copies_of_a_lane_are_bits_of_a_mask(element, width):
    """Most columns a lane where the filter has one row; an unaligned float32 row is copied element by element."""
    for taps in range(1, 9):
        problem = FilterProblem((1280, width), (1, taps), 20)
        defines = filter_launch(problem, "reuse", image_type=element, result_type=element).defines
        columns = 32 * defines["COLUMNS"] * defines["GROUPS"] + 2 * taps + 16
        assert -(-columns * np.dtype(element).itemsize // defines["GRAIN"]) <= 32 * 32


@pytest.mark.parametrize("kernel", FILTER_KERNELS)
def test_parts_are_the_stack_in_order_and_fit_a_grid(kernel):
    problem = FilterProblem((3, 3), (4, 6), 70_000_001 * 3)
    parts = list(filter_parts(problem, kernel))
    assert len(parts) > 1
    assert [start for start, _ in parts] == np.cumsum([0, *(part.count for _, part in parts[:-1])]).tolist()
    assert sum(part.count for _, part in parts) == problem.count
    for _, part in (parts[0], parts[-1]):
        launch = filter_launch(part, kernel)
        assert launch.blocks * launch.threads < 2**31


def test_origin_moves_the_tap_that_meets_the_own_pixel():
    assert FilterProblem((9, 9), (4, 5)).first == (2, 2)
    assert FilterProblem((9, 9), (4, 5), origin=(-2, 2)).first == (0, 4)
    assert FilterProblem((9, 9), (4, 5), boundary="valid").first == (0, 0)
    assert FilterProblem((9, 9), (4, 5), boundary="valid").result_shape == (6, 5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((9, 9), (0, 3)), ShapeError, "at least one row"),
        (((0, 9), (3, 3)), ShapeError, "pixels a side"),
        (((9, 9), (3, 3), 0), ShapeError, "a stack one image"),
        (((9, 9), (3, 3), 1, "symmetric"), ArgumentError, "choose from reflect, mirror"),
        (((9, 9), (10, 3), 1, "valid"), ShapeError, "do not fit"),
        (((9, 9), (3, 3), 1, "valid", (1, 0)), ArgumentError, "leave it out"),
        (((9, 9), (4, 3), 1, "wrap", (2, 0)), ArgumentError, "outside taps"),
        (((9, 9), (3, 3), 1, "wrap", (0, -2)), ArgumentError, "outside taps"),
    ],
)
def test_what_no_kernel_computes_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        FilterProblem(*arguments)


@pytest.mark.parametrize(
    ("kernel", "shape", "types", "message"),
    [
        ("fastest", (3, 3), {}, "choose from auto, reuse"),
        ("reuse", (31, 31), {}, "use reuse_wide"),
        ("exchange", (49, 3), {"image_type": "float64"}, "up to 48 rows of taps in float64"),
        ("reuse", (3, 3), {"image_type": "int32"}, "convert the images first"),
        ("reuse", (3, 3), {"result_type": "float16"}, "not float16"),
    ],
)
def test_a_kernel_refuses_what_it_does_not_compute(kernel, shape, types, message):
    with pytest.raises(ArgumentError, match=message):
        filter_launch(FilterProblem((99, 99), shape), kernel, **types)


def test_taps_beyond_63_and_unknown_tunables_are_refused():
    with pytest.raises(ShapeError, match="1 to 63"):
        filter_launch(FilterProblem((99, 99), (64, 3)))
    with pytest.raises(ArgumentError, match="reuse has no tunable ROWS"):
        filter_launch(FilterProblem((99, 99), (3, 3)), "reuse", tuning={"ROWS": 6})
