"""The tensor-core kernels on a device against float64: sizes off every tile, adversarial values, far from one."""

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import fft

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.tensor.kernels import KERNELS
from xcorr_app.gpu.tensor.planes import plain_sums
from xcorr_app.gpu.tensor.sums import FrameSums, prepared_sums

pytestmark = pytest.mark.gpu


def of_one(left, right, first, window, frames):
    return Problem(left, right, first, window, rights=frames, rights_per_left=frames)


PROBLEMS = {
    "one-to-many": of_one((201, 517), (201, 517), (-16, -16), (32, 32), 9),
    "many over one right": Problem((130, 300), (131, 291), (-20, -33), (41, 66), lefts=6),
    "one pair": Problem((333, 402), (333, 402), (-16, -16), (33, 33)),
    "n-to-mn": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=3, rights=15, rights_per_left=5),
    "n-to-m": Problem((65, 63), (60, 70), (-7, 5), (12, 40), lefts=3, rights=7, rights_per_left=7),
    "one-to-one pairs": Problem((64, 64), (64, 64), (-16, -16), (33, 33), lefts=40, rights=40),
    "full plane": Problem.full_plane((32, 32), (32, 32), lefts=5, rights=5),
    "few shifts": of_one((100, 1030), (100, 1030), (0, 0), (1, 1), 4),
    "all ey": of_one((150, 40), (150, 40), (-64, -3), (129, 7), 5),
    "all ex": of_one((30, 280), (30, 280), (-3, -64), (7, 129), 5),
    "apart": of_one((50, 50), (50, 50), (30, -70), (40, 90), 4),
    "columns off quads": of_one((90, 131), (90, 131), (-9, -13), (20, 27), 5),
}
OF_FRAMES = {
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
FEW = of_one((201, 516), (201, 516), (-16, -16), (32, 32), 65)
ALL = [*(("hankel", each) for each in PROBLEMS.values()), *(("frames", each) for each in OF_FRAMES.values())]
TYPED = ("one-to-many", "many over one right", "columns off quads")
OF_TYPES = [("hankel", PROBLEMS["one-to-one pairs"]), *(("hankel", PROBLEMS[name]) for name in TYPED)]
OF_TYPES += [("frames", OF_FRAMES[name]) for name in TYPED]
BOUNDS = {"hankel": 2e-4, "frames": 3e-4}
"""Errors of centred sums at most, of the largest norms."""


def matrices(problem, *, left="float32", right="float32"):
    """Noise around 1000, or all of what a type holds."""
    made = []
    for seed, (shape, count, dtype) in enumerate(
        ((problem.left_shape, problem.lefts, left), (problem.right_shape, problem.rights, right)), 1
    ):
        rng = np.random.default_rng(seed)
        if dtype == "float32":
            made.append(rng.normal(1000, 20, (count, *shape)).astype(dtype))
        else:
            limits = np.iinfo(dtype)
            made.append(rng.integers(limits.min, limits.max, (count, *shape), dtype=dtype, endpoint=True))
    return made


def centred(images):
    """Less their centres, as the kernels take them."""
    means = images.astype(np.float64).mean(axis=(1, 2), keepdims=True)
    return images.astype(np.float64) - (means.astype(np.float32) if images.dtype.kind == "f" else np.rint(means))


def sums(lefts, rights, problem):
    """Plain sums of every pair in float64."""
    size = [fft.next_fast_len(a + b - 1, real=True) for a, b in zip(lefts.shape[1:], rights.shape[1:], strict=True)]
    of_left, of_right = fft.rfft2(lefts, size), fft.rfft2(rights, size).conj()
    first, shape = problem.first_shift, problem.plane_shape
    planes = []
    for pair in range(problem.pairs):
        plane = fft.irfft2(of_left[pair // problem.rights_per_left] * of_right[pair % problem.rights], size)
        rows, columns = (np.arange(first[axis], first[axis] + shape[axis]) for axis in (0, 1))
        meet = [
            (shifts > -right) & (shifts < left)  # beyond, a transform repeats itself
            for shifts, left, right in zip((rows, columns), problem.left_shape, problem.right_shape, strict=True)
        ]
        planes.append(plane[np.ix_(rows % size[0], columns % size[1])] * np.outer(*meet))
    return np.array(planes)


def norms(lefts, rights):
    return np.sqrt((lefts**2).sum(axis=(1, 2)).max() * (rights**2).sum(axis=(1, 2)).max())


def assert_near(planes, lefts, rights, problem, bound):
    """Fail unless centred sums are right to a fraction of the largest norms."""
    exact = sums(centred(lefts), centred(rights), problem)
    np.testing.assert_allclose(planes, exact, rtol=0, atol=bound * norms(centred(lefts), centred(rights)))


def kernel_for(problem, split=1):
    """The one of the least expected time among those that make centred sums."""
    if split == 2:
        return "hankel"
    limits = device_limits(0)
    able = [entry for entry in KERNELS.values() if entry.accepts(problem, limits) is None]
    return min(able, key=lambda entry: entry.cost(problem, limits)).name


@contextmanager
def poisoned(cupy):
    """New arrays hold NaN, also as two halves in an integer; fail if anything is written around them."""
    made, make = [], cupy.empty

    def empty(shape, dtype=float):
        count = int(np.prod(shape))
        buffer = cupy.full(count + 512, np.nan if np.dtype(dtype).kind == "f" else 0x7E007E00, dtype)
        made.append(buffer)
        return buffer[256 : 256 + count].reshape(shape)

    cupy.empty = empty
    try:
        yield
    finally:
        cupy.empty = make
    for buffer in made:
        rims = cupy.concatenate([buffer[:256], buffer[-256:]])
        assert (cupy.isnan(rims) if rims.dtype.kind == "f" else rims == 0x7E007E00).all()


def computed(cupy, lefts, rights, problem, kind="hankel", *, split=1, tuning=None):
    """Planes, poisoned before, the same bits in two runs; of "frames", whether or not they would be chosen."""
    window = SummedAreaTables(problem)
    left, right = cupy.asarray(lefts), cupy.asarray(rights)
    tables = window.left(left), window.right(right)
    again = cupy.empty((problem.pairs, *problem.plane_shape), np.float32)
    if kind == "frames":
        if not device_limits(0).has_wgmma:
            pytest.skip("needs products of four warps (compute capability 9.0)")
        run = FrameSums(problem, (left.dtype.name, right.dtype.name), window.cells, device_limits(0), tuning)
    else:
        run = prepared_sums(problem, left.dtype, right.dtype, window.cells, kernel_for(problem, split), split=split)
    with poisoned(cupy):
        planes = cupy.empty(again.shape, np.float32)
        run(left, right, tables, planes)
    run(left, right, tables, again)
    np.testing.assert_array_equal(planes.get(), again.get())
    return planes.get()


@pytest.mark.parametrize(("kind", "problem"), ALL)
def test_centred_sums(cupy, kind, problem):
    pair = matrices(problem)
    assert_near(computed(cupy, *pair, problem, kind), *pair, problem, BOUNDS[kind])


@pytest.mark.parametrize("right", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("left", ["uint8", "int16", "float32"])
@pytest.mark.parametrize(("kind", "problem"), OF_TYPES)
def test_every_type(cupy, kind, problem, left, right):
    pair = matrices(problem, left=left, right=right)
    assert_near(computed(cupy, *pair, problem, kind), *pair, problem, BOUNDS[kind])


HARD = {
    "large offset": lambda m: m + np.float32(1e6),
    "huge": lambda m: (m - 1000) * np.float32(1e15),
    "tiny": lambda m: (m - 1000) * np.float32(1e-15),
    "checkerboard": lambda m: np.broadcast_to(np.indices(m.shape[1:]).sum(0) % 2 * 0.1, m.shape).astype("float32"),
    "impulses in corners": lambda m: m * 0 + np.pad(np.zeros(np.array(m.shape[1:]) - 2), 1, constant_values=7.0),
    "one hot pixel": lambda m: (m % 5).round() + 65535 * (np.arange(m[0].size).reshape(m.shape[1:]) == 777),
    "lattice": lambda m: np.broadcast_to(np.sin(np.arange(m.shape[2]) * 0.7), m.shape) + 0 * m,
}


@pytest.mark.parametrize("values", HARD)
@pytest.mark.parametrize(
    ("kind", "problem"), [("hankel", PROBLEMS["one-to-many"]), ("hankel", PROBLEMS["one pair"]), ("frames", FEW)]
)
def test_hard_values(cupy, kind, problem, values):
    pair = [HARD[values](part).astype("float32") for part in matrices(problem)]
    planes = computed(cupy, *pair, problem, kind)
    assert np.isfinite(planes).all()
    assert_near(planes, *pair, problem, 1e-3)


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
    problem = OF_FRAMES["33 x 33"]
    pair = matrices(problem)
    assert_near(computed(cupy, *pair, problem, "frames", tuning=tuning), *pair, problem, 3e-4)


def test_frames_do_not_touch_each_other(cupy):
    lefts, rights = matrices(FEW)
    rights[3] = 0.25
    rights[7, 100, 200] = 65535
    rights[8] *= np.float32(1e30)
    rights[64] *= np.float32(1e-30)
    planes = computed(cupy, lefts, rights, FEW, "frames")
    assert not planes[3].any()
    for frame in (2, 7, 8, 64):
        alone = of_one((201, 516), (201, 516), (-16, -16), (32, 32), 1)
        assert_near(planes[[frame]], lefts, rights[[frame]], alone, 5e-4)


@pytest.mark.parametrize(("size", "segments"), [(512, 1), (1024, 2)])  # of 2048 products one after the other
def test_sums_that_are_cut_off_most_are_within_the_stated_error(cupy, size, segments):
    """Nearly all of a sum comes from the first rows, and is cut off in every product that follows."""
    one, problem = (of_one((size, size), (size, size), (-16, -16), (32, 32), frames) for frames in (1, 64))
    band = matrices(one)[0] - 1000
    band[:, 24:] *= np.float32(0.01)
    planes = computed(cupy, band, np.repeat(band, 64, axis=0), problem, "frames", tuning={"SEGMENTS": segments})
    exact, bound = sums(centred(band), centred(band), one), 6e-4 * norms(centred(band), centred(band))
    np.testing.assert_allclose(planes, np.repeat(exact, 64, axis=0), rtol=0, atol=bound)


def test_they_are_taken_for_many_frames():
    if not device_limits(0).has_wgmma:
        pytest.skip("needs products of four warps (compute capability 9.0)")
    problem = of_one((512, 512), (512, 512), (-16, -16), (32, 32), 512)
    assert kernel_for(problem) == "hankel-frames"
    types = np.dtype("float32"), np.dtype("uint16")
    assert isinstance(prepared_sums(problem, *types, (1, 1), "hankel-frames"), FrameSums)
    assert not isinstance(prepared_sums(problem, *types, (1, 1), "hankel", split=2), FrameSums)


def scaled(problem, *scales):
    """Noise around zero whose largest value is the scale. (Near 1e-38 a device would take small values for zero.)"""
    parts = [part.astype(np.float64) - 1000 for part in matrices(problem)]
    return [(part / abs(part).max() * scale).astype(np.float32) for part, scale in zip(parts, scales, strict=True)]


@pytest.mark.parametrize("scales", [(1e30, 1e-30), (1e-30, 1e30), (1e30, 1), (1, 1e-30), (8e37, 1e-33), (1e-33, 8e37)])
@pytest.mark.parametrize(("split", "bound"), [(1, 2e-4), (2, 1e-6)])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right", "one pair"])
def test_scaling_loses_nothing(cupy, name, split, bound, scales):
    problem = PROBLEMS[name]
    lefts, rights = scaled(problem, *scales)
    assert_near(computed(cupy, lefts, rights, problem, split=split), lefts, rights, problem, bound)
    on_device, kernel = (cupy.asarray(lefts), cupy.asarray(rights)), kernel_for(problem, split)
    out = cupy.empty((problem.pairs, *problem.plane_shape), np.float32)
    plain = plain_sums(problem, *on_device, SummedAreaTables(problem), kernel, split=split, out=out).get()
    exact = sums(lefts.astype(np.float64), rights.astype(np.float64), problem)
    np.testing.assert_allclose(plain, exact, rtol=0, atol=bound * norms(centred(lefts), centred(rights)))


@pytest.mark.parametrize("split", [1, 2])
def test_what_leaves_single_precision_is_the_sums_themselves(cupy, split):
    problem = PROBLEMS["one-to-many"]
    large = scaled(problem, 1e30, 1e30)
    planes = computed(cupy, *large, problem, split=split)
    exact = sums(centred(large[0]), centred(large[1]), problem)
    certain = abs(exact) > 1e-2 * abs(exact).max()
    assert (planes[certain] == np.sign(exact[certain]) * np.inf).all()
    assert not np.isnan(planes).any()
    assert (computed(cupy, *scaled(problem, 1e-30, 1e-30), problem, split=split) == 0).all()


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("level", [1.0, 1e30, 1e-30])
def test_differences_of_one_bit(cupy, split, level):
    problem = PROBLEMS["one-to-many"]
    rng = np.random.default_rng(5)
    shapes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    lefts, rights = (1 + rng.integers(0, 2, shape).astype(np.float32) * np.float32(2**-23) for shape in shapes)
    assert np.isfinite(computed(cupy, np.float32(level) * lefts, rights, problem, split=split)).all()
