"""Launch parameters of the fused pass: pure, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.separable_definition import gaussian
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import problem as filter_problem
from xcorr_app.gpu.stencil.separable import (
    SeparableProblem,
    fits_one_pass,
    never_clips,
    separable_launch,
    terms_argument,
)


def test_what_fits_one_pass():
    assert fits_one_pass((129, 129), "float32")
    assert not fits_one_pass((130, 1), "uint8")
    assert not fits_one_pass((1, 130), "float32")
    assert fits_one_pass((68, 129), "float64")
    assert not fits_one_pass((69, 3), "float64")


@pytest.mark.parametrize("taps", [1, 9, 33, 65, 129])
@pytest.mark.parametrize("terms", [1, 2])
def test_shared_memory_fits_every_device_that_is_supported(taps, terms):
    problem = SeparableProblem((99, 999), (taps, taps), terms=terms)
    assert separable_launch(problem).shared_bytes <= 48 * 1024


def test_terms_are_the_struct_of_the_kernel():
    terms = [(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])), (np.array([0.5, 0.5, 1.0]), np.array([6.0, 7.0]))]
    packed = terms_argument(terms, 7.5, "uint16")
    weight, floats = 6 * 9 + 2 * 13, [1, 2, 3, 0.5, 0.5, 1, 4, 5, 6, 7, 7.5]
    assert packed.size == 1
    assert packed.tobytes() == np.float64(weight).tobytes() + np.array([*floats, 0], "float32").tobytes()
    doubles = terms_argument(terms[:1], -1.0, "float64")
    assert doubles.tobytes() == np.array([54, 1, 2, 3, 4, 5, -1.0]).tobytes()


@pytest.mark.parametrize("shape", [(1000, 1029), (7, 64), (3000, 31)])
@pytest.mark.parametrize("multiprocessors", [1, 132])
@pytest.mark.parametrize("count", [1, 64])
def test_warps_cover_every_result(shape, multiprocessors, count):
    device = DeviceLimits(multiprocessors=multiprocessors)
    launch = separable_launch(SeparableProblem(shape, (9, 5), count=count), device=device)
    strip, rows = 32 * launch.defines["LANE_COLUMNS"], launch.extra[-1]
    warps = count * -(-shape[1] // strip) * -(-shape[0] // rows)
    assert launch.blocks == -(-warps // launch.defines["WARPS"])
    assert launch.threads == 32 * launch.defines["WARPS"]
    assert launch.extra == (*shape, *shape, count, rows)


def test_parts_are_the_stack_in_order_and_fit_a_grid(monkeypatch):
    problem = SeparableProblem((3, 3), (3, 3), count=70_000_001 * 3)
    parts = list(problem.parts())
    assert len(parts) > 1
    assert [start for start, _ in parts] == np.cumsum([0, *(part.count for _, part in parts[:-1])]).tolist()
    assert sum(part.count for _, part in parts) == problem.count
    for _, part in (parts[0], parts[-1]):
        launch = separable_launch(part)
        assert launch.blocks * launch.threads < 2**31
    monkeypatch.setattr(filter_problem, "_LARGEST_INDEX", 1)
    assert [start for start, _ in SeparableProblem((9, 9), (3, 3), count=3).parts()] == [0, 1, 2]


def test_only_means_of_pixels_never_clip():
    (column, row), means = gaussian(1.0)[0], gaussian(1.0)
    assert never_clips(means, "uint16", "uint16")
    assert never_clips([(-column, -row)], "int16", "int16")
    assert never_clips(means, "uint8", "uint8", 255.0)
    assert never_clips([(3 * column, row)], "uint8", "float32")
    assert not never_clips(means, "uint8", "uint8", 256.0)
    assert not never_clips(means, "uint8", "uint8", -1.0)
    assert not never_clips(means, "uint16", "uint8")
    assert not never_clips(means * 2, "uint8", "uint8")
    assert not never_clips([(1.01 * column, row)], "uint8", "uint8")
    assert not never_clips([(-column, row)], "int16", "int16")
    assert not never_clips([(column, np.array([-0.5, 1.5]))], "uint8", "uint8")
    assert not never_clips([(np.array([-0.5, 1.5]), row)], "uint8", "uint8")


def test_origin_moves_the_tap_that_meets_the_own_pixel():
    assert SeparableProblem((9, 9), (4, 5)).first == (2, 2)
    assert SeparableProblem((9, 9), (4, 5), origin=(-2, 2)).first == (0, 4)
    assert SeparableProblem((9, 9), (4, 5), boundary="valid").first == (0, 0)
    assert SeparableProblem((9, 9), (4, 5), boundary="valid").result_shape == (6, 5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((0, 9), (3, 3)), ShapeError, "pixels a side"),
        (((9, 2**27), (3, 3)), ShapeError, "pixels a side"),
        (((9, 9), (3, 3), 0), ShapeError, "a stack one image"),
        (((9, 9), (0, 3)), ShapeError, "at least one tap"),
        (((9, 9), (3, 3), 1, "wrap", (0, 0), 3), ShapeError, "1 or 2 terms"),
        (((9, 9), (3, 3), 1, "symmetric"), ArgumentError, "choose from reflect, mirror"),
        (((9, 9), (10, 3), 1, "valid"), ShapeError, "do not fit"),
        (((9, 9), (3, 3), 1, "valid", (1, 0)), ArgumentError, "leave it out"),
        (((9, 9), (4, 3), 1, "wrap", (2, 0)), ArgumentError, "outside taps"),
    ],
)
def test_what_is_not_computed_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        SeparableProblem(*arguments)


@pytest.mark.parametrize(
    ("shape", "types", "message"),
    [
        ((130, 3), {}, "too long for one pass"),
        ((69, 3), {"image_type": "float64"}, "too long for one pass"),
        ((3, 3), {"image_type": "int32"}, "convert the images first"),
        ((3, 3), {"result_type": "float16"}, "not float16"),
    ],
)
def test_a_launch_refuses_what_the_kernel_does_not_compute(shape, types, message):
    with pytest.raises(ArgumentError, match=message):
        separable_launch(SeparableProblem((999, 999), shape), **types)
