"""Launch parameters of the sliding sums: pure, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.stencil.cosine_series import box_series, gaussian_series, start_table
from xcorr_app.gpu.stencil.sliding import SlidingPass, series_argument, sliding_launch

SERIES = gaussian_series(64.0)


def launch_of(problem, rows=1024, series=SERIES, **options):
    return sliding_launch(
        problem, series, start_table(series, problem.image_shape[0], rows, problem.boundary), rows, **options
    )


@pytest.mark.parametrize(("height", "width", "count"), [(1024, 1024, 64), (33, 31, 3), (1, 1, 1), (100, 65, 7)])
def test_warps_cover_every_column_of_every_segment(height, width, count):
    launch = launch_of(SlidingPass((height, width), count), 32)
    warps = count * -(-width // 32) * -(-height // 32)
    assert launch.blocks == -(-warps // launch.defines["WARPS"])
    assert launch.threads == 32 * launch.defines["WARPS"]
    assert launch.extra == (height, width, count, 256, -(-height // 32), 32, launch.extra[-1])
    assert launch.extra[-1] % 32 == 0


def test_a_launch_fits_a_grid():
    problem = SlidingPass((32, 32), 10**9)
    most = problem.max_images(32)
    assert 0 < most < 10**9
    launch = launch_of(problem.with_count(most), 32)
    assert launch.blocks * launch.threads < 2**31


def test_the_series_is_the_struct_of_the_kernel():
    series = box_series(5)
    assert series_argument(series, 7.5).tobytes() == np.array([2, 0.2, -0.2, 7.5]).tobytes()
    assert series_argument(series, 7.5, "float").tobytes() == np.array([-0.0, 0.2, 0, 7.5], "float32").tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_type": "int32"}, "convert the images"),
        ({"result_type": "float16"}, "not float16"),
        ({"sum_type": "half"}, "double or float"),
        ({"image_type": "float64", "sum_type": "float"}, "double or float"),
        ({"tuning": {"LANES": 3}}, "no tunable LANES"),
        ({"tuning": {"CHUNK": 3}}, "divide 32"),
        ({"tuning": {"CHUNK": 1}}, "divide 32"),
        ({"tuning": {"START_FLUSH": 48}}, "multiple of 32"),
        ({"tuning": {"START_CHUNK": 3}}, "START_CHUNK 8"),
    ],
)
def test_what_no_kernel_computes_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        launch_of(SlidingPass((99, 99)), **options)


def test_images_and_boundaries_that_there_are_not():
    for shape, count in (((0, 5), 1), ((5, 5), 0), ((2**27, 5), 1)):
        with pytest.raises(ShapeError, match="pixels a side"):
            SlidingPass(shape, count)
    with pytest.raises(ArgumentError, match="choose from reflect, mirror"):
        SlidingPass((5, 5), 1, "valid")
