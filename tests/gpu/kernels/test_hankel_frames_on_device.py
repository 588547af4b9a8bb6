"""Many frames against one reference, on a device against float64: sizes off every tile, adversarial values."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.gpu.kernels.test_hankel_on_device import HARD, assert_near, centred, kernel_for, matrices, norms, sums
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.tensor.sums import FrameSums, prepared_sums

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupy():
    if not device_limits(0).has_wgmma:
        pytest.skip("needs products of four warps (compute capability 9.0)")
    return importlib.import_module("cupy")


def computed(cupy, lefts, rights, problem, tuning=None):
    """Planes, whether or not these launches would be chosen; every array that they write is poisoned before."""
    window = SummedAreaTables(problem)
    left, right = cupy.asarray(lefts), cupy.asarray(rights)
    tables = window.left(left), window.right(right)
    run = FrameSums(problem, (left.dtype.name, right.dtype.name), window.cells, device_limits(0), tuning)
    made, make = [], cupy.empty

    def poisoned(shape, dtype=float):
        count = int(np.prod(shape))
        buffer = cupy.full(count + 512, np.nan if np.dtype(dtype).kind == "f" else 0x7E007E00, dtype)  # halves: NaN
        made.append(buffer)
        return buffer[256 : 256 + count].reshape(shape)

    cupy.empty = poisoned
    try:
        planes = cupy.empty((problem.pairs, *problem.plane_shape), np.float32)
        run(left, right, tables, planes)
    finally:
        cupy.empty = make
    for buffer in made:
        rims = cupy.concatenate([buffer[:256], buffer[-256:]])
        assert (cupy.isnan(rims) if rims.dtype.kind == "f" else rims == 0x7E007E00).all()
    again = cupy.empty_like(planes)
    run(left, right, tables, again)
    np.testing.assert_array_equal(planes.get(), again.get())
    return planes.get()


def of_one(left, right, first, window, frames):
    return Problem(left, right, first, window, rights=frames, rights_per_left=frames)


PROBLEMS = {
    "one-to-many": of_one((201, 517), (201, 517), (-16, -16), (32, 32), 70),
    "33 x 33": of_one((180, 260), (183, 255), (-16, -16), (33, 33), 64),
    "many over one right": Problem((130, 300), (131, 291), (-20, -33), (41, 66), lefts=66),
    "n-to-mn": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=2, rights=130, rights_per_left=65),
    "n-to-m": Problem((65, 63), (60, 70), (-7, 5), (12, 40), lefts=3, rights=67, rights_per_left=67),
    "few frames": of_one((100, 130), (100, 130), (-24, -24), (48, 48), 3),
    "few shifts": of_one((100, 330), (100, 330), (0, 0), (1, 1), 64),
    "all ey": of_one((150, 40), (150, 40), (-64, -3), (129, 7), 65),
    "all ex": of_one((30, 280), (30, 280), (-3, -64), (7, 129), 65),
    "apart": of_one((50, 50), (50, 50), (30, -70), (40, 90), 64),
    "columns off quads": of_one((90, 131), (90, 131), (-9, -13), (20, 27), 70),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_centred_sums(cupy, name):
    problem = PROBLEMS[name]
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights, seed=2)
    assert_near(computed(cupy, lefts, rights, problem), lefts, rights, problem, 3e-4)


@pytest.mark.parametrize("right", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("left", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right", "columns off quads"])
def test_every_type(cupy, name, left, right):
    problem = PROBLEMS[name]
    lefts = matrices(problem.left_shape, problem.lefts, left)
    rights = matrices(problem.right_shape, problem.rights, right, seed=2)
    assert_near(computed(cupy, lefts, rights, problem), lefts, rights, problem, 3e-4)


@pytest.mark.parametrize(
    "tuning",
    [
        {"EX_TILES": 4, "N_TILES": 17, "SETS": 2, "SET_WARPS": 2},
        {"EX_TILES": 3, "N_TILES": 24, "SETS": 2, "SET_WARPS": 2},
        {"EX_TILES": 5, "N_TILES": 11, "SETS": 2, "SET_WARPS": 4, "SEGMENTS": 3},
        {"EX_TILES": 1, "N_TILES": 8, "SETS": 1, "SET_WARPS": 4, "FRAME_BUFFERS": 2, "PANEL": 32},
    ],
)
def test_every_kind_of_tile(cupy, tuning):
    problem = PROBLEMS["33 x 33"]
    lefts, rights = matrices(problem.left_shape, 1), matrices(problem.right_shape, problem.rights, seed=2)
    assert_near(computed(cupy, lefts, rights, problem, tuning), lefts, rights, problem, 3e-4)


@pytest.mark.parametrize("kind", HARD)
def test_hard_values(cupy, kind):
    problem = of_one((201, 516), (201, 516), (-16, -16), (32, 32), 65)
    lefts = HARD[kind](matrices(problem.left_shape, 1)).astype("float32")
    rights = HARD[kind](matrices(problem.right_shape, problem.rights, seed=2)).astype("float32")
    assert_near(computed(cupy, lefts, rights, problem), lefts, rights, problem, 1e-3)


def test_frames_do_not_touch_each_other(cupy):
    problem = of_one((201, 516), (201, 516), (-16, -16), (32, 32), 65)
    lefts, rights = matrices(problem.left_shape, 1), matrices(problem.right_shape, problem.rights, seed=2)
    rights[3] = 0.25
    rights[7, 100, 200] = 65535
    rights[8] *= np.float32(1e30)
    rights[64] *= np.float32(1e-30)
    planes = computed(cupy, lefts, rights, problem)
    assert not planes[3].any()
    for frame in (2, 7, 8, 64):
        alone = of_one((201, 516), (201, 516), (-16, -16), (32, 32), 1)
        assert_near(planes[[frame]], lefts, rights[[frame]], alone, 5e-4)


@pytest.mark.parametrize(("size", "segments"), [(512, 1), (1024, 2)])  # of 2048 products one after the other
def test_sums_that_are_cut_off_most_are_within_the_stated_error(cupy, size, segments):
    """Nearly all of a sum comes from the first rows, and is cut off in every product that follows."""
    problem = of_one((size, size), (size, size), (-16, -16), (32, 32), 64)
    band = matrices((size, size), 1) - 1000
    band[:, 24:] *= np.float32(0.01)
    rights = np.repeat(band, problem.rights, axis=0)
    planes = computed(cupy, band, rights, problem, {"SEGMENTS": segments})
    exact = sums(centred(band), centred(band), of_one((size, size), (size, size), (-16, -16), (32, 32), 1))
    bound = 6e-4 * norms(centred(band), centred(band))
    np.testing.assert_allclose(planes, np.repeat(exact, problem.rights, axis=0), rtol=0, atol=bound)


def test_they_are_taken_for_many_frames(cupy):
    problem = of_one((512, 512), (512, 512), (-16, -16), (32, 32), 512)
    assert kernel_for(problem, 1) == "hankel-frames"
    types = np.dtype("float32"), np.dtype("uint16")
    assert isinstance(prepared_sums(problem, *types, (1, 1), "hankel-frames"), FrameSums)
    assert not isinstance(prepared_sums(problem, *types, (1, 1), "hankel", split=2), FrameSums)
