"""Kernels that move and warp frames, their own source run on the host, and what calls them."""

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.pointwise_definition import off_by, surroundings_are_whole
from tests.registration.moving.moving_definition import by_definition, random_frame
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, TAPS, TranslationProblem, pixel_bytes
from xcorr_app.gpu.resample.translation import translation_argument, translation_launch
from xcorr_app.registration.moving import device_moving
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.device_moving import move_on_device
from xcorr_app.registration.warping.device_warp import spline_coefficients, splines_of, warped
from xcorr_app.registration.warping.grid import pixel_bases

KERNEL_ORDERS = {"nearest": 0, "linear": 1, "cubic": 3, "lanczos": "lanczos"}
FRACTIONS = [(0.25, -0.5), (-1.75, 2.0), (0.0, 1e-4), (3.0, -0.999), (2.4, 40.3), (-100.0, 0.5), (1e300, -1e300)]


def translate(folder, frames, shifts, method, *, outside=None, counts=False, offset=0):
    """Frames moved by the kernel, and the clipped pixels of each frame."""
    height, width = frames.shape[1:]
    problem = TranslationProblem(
        (height, width), len(frames), frames.dtype.name, method, outside is not None, counts=counts
    )
    poisoned = np.frombuffer(np.random.default_rng(5).bytes(frames.nbytes), frames.dtype).reshape(frames.shape)
    source, results = off_by(frames, offset), off_by(poisoned, offset)
    addresses = results.ctypes.data | 16
    launch = translation_launch(problem, alignment=addresses & -addresses)
    clipped = guarded(np.zeros(len(frames), np.uint64))
    moves = guarded(np.asarray(shifts, np.float64))
    argument = translation_argument(problem, launch, pixel_bytes(outside or 0, frames.dtype))
    run_kernel(folder, launch, (source, results, clipped, moves, argument), ())
    assert surroundings_are_whole(results)
    assert guards_are_whole(clipped)
    return results, clipped


def check_moved(folder, frames, shifts, method, *, outside=None, **options):
    found, clipped = translate(folder, frames, shifts, method, outside=outside, counts=True, **options)
    mode, cval = ("nearest", 0) if outside is None else ("constant", outside)
    dtype = frames.dtype
    for t, shift in enumerate(shifts):
        expected = by_definition(frames[t], shift, KERNEL_ORDERS[method], mode, cval)
        if dtype.kind == "f":
            tolerance = {2: 1e-3, 4: 1e-6, 8: 1e-12}[dtype.itemsize] * np.abs(frames[t].astype(float)).max()
            np.testing.assert_allclose(found[t].astype(float), expected, rtol=0, atol=tolerance)
            assert clipped[t] == 0
            continue
        limits = np.iinfo(dtype)
        precision = (1e-6 if dtype.itemsize <= 2 else 1e-14) * (float(limits.max) - float(limits.min))
        held = np.clip(expected, limits.min, limits.max)
        assert np.abs(found[t] - held).max() <= 0.5 + precision, (shift, method)
        beyond = np.maximum(limits.min - expected, expected - limits.max)
        sure, perhaps = (np.count_nonzero(beyond > 0.5 + sign * precision) for sign in (1, -1))
        assert sure <= clipped[t] <= perhaps, (shift, method)


def random_shifts(count, shape, seed):
    rng = np.random.default_rng(seed)
    shifts = rng.uniform(-1.3, 1.3, (count, 2)) * shape
    shifts[::3] = rng.uniform(-3, 3, (len(shifts[::3]), 2))
    shifts[1::4, 0] = np.rint(shifts[1::4, 0])
    shifts[2::5, 1] = np.rint(shifts[2::5, 1])
    return shifts


@pytest.mark.parametrize("method", TAPS)
@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("outside", [None, 7])
def test_every_type_method_and_border(host_builds, outside, dtype, method):
    """Odd sizes, so that every row lies otherwise on its words, and shifts beyond the frame."""
    for shape in ((19, 45), (1, 1), (2, 67)):
        frames = np.stack([random_frame(shape, dtype, seed) for seed in range(len(FRACTIONS))])
        check_moved(host_builds, frames, FRACTIONS, method, outside=outside)
        check_moved(host_builds, frames, random_shifts(len(frames), shape, shape[1]), method, outside=outside)


@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("method", TAPS)
def test_whole_pixels_are_copied_bit_by_bit(host_builds, method, dtype):
    """Random bits include NaN with their payload, infinities and subnormal numbers."""
    dtype = np.dtype(dtype)
    frames = np.frombuffer(np.random.default_rng(1).bytes(3 * 9 * 43 * dtype.itemsize), dtype).reshape(3, 9, 43)
    shifts = [(0, 0), (2, -3), (1 + 1e-12, -1 - 1e-12)]
    found, _ = translate(host_builds, frames, shifts, method)
    for t, (dy, dx) in enumerate(shifts):
        rows, columns = np.clip(np.arange(9) - round(dy), 0, 8), np.clip(np.arange(43) - round(dx), 0, 42)
        assert found[t].tobytes() == frames[t][np.ix_(rows, columns)].tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("method", "reach"), [("linear", (0, 1)), ("cubic", (-1, 2)), ("lanczos", (-3, 4))])
def test_non_finite_pixels_spread_only_under_the_taps(host_builds, method, reach, bad):
    frames = np.repeat(random_frame((21, 43), "float32")[None], 3, axis=0)
    frames[:, 10, 22] = bad
    rows, columns = (slice(at + 1 - reach[1], at + 1 - reach[0] + 1) for at in (10, 22))
    found, _ = translate(host_builds, frames, [(0.5, 0.5), (0.5, 0), (0, 0.5)], method)
    for moved, area in zip(found, ((rows, columns), (rows, slice(22, 23)), (slice(10, 11), columns)), strict=True):
        expected = np.zeros(moved.shape, bool)
        expected[area] = True
        assert np.array_equal(~np.isfinite(moved), expected)


def test_halves_round_to_even(host_builds):
    frames = np.array([[[0, 1, 2, 3, 4, 5]]], dtype=np.uint8)
    found, _ = translate(host_builds, frames, [(0, -0.5)], "linear")
    assert found.tolist() == [[[0, 2, 2, 4, 4, 5]]]


WARP_ORDERS = {0: "nearest", 1: "linear", 3: "cubic"}


def random_matrices(rng, count):
    matrices = np.tile(np.eye(3), (count, 1, 1))
    matrices[:, :2, :2] += rng.normal(size=(count, 2, 2)) * 0.15
    matrices[:, :2, 2] = rng.uniform(-4, 4, (count, 2))
    return matrices


def random_fields(rng, count, shape, grid):
    nodes = []
    for n, size in zip(grid, shape, strict=True):
        even = np.linspace(0, size - 1.0, n) if n > 1 else np.array([size / 2.0])
        even[1:-1] += rng.uniform(-0.2, 0.2, max(n - 2, 0)) * size / n
        nodes.append(even)
    return rng.normal(size=(count, *grid, 2)) * 2, tuple(nodes)


def seen_at(frame, places, order, outside):
    """The frame (float64) at places (2, Y, X) by SciPy; places beyond the edge are the edge's, or `outside`."""
    limit = np.array(frame.shape)[:, None, None] - 1
    held = np.clip(places, 0, limit)
    frame = frame.astype(np.float64)
    if order == 3:
        values = ndimage.map_coordinates(frame, held, order=3, mode="mirror")
    else:
        values = ndimage.map_coordinates(frame, held, order=order, mode="nearest")
    if outside is not None:
        inside = ((places >= -1e-3) & (places <= limit + 1e-3)).all(axis=0)
        values = np.where(inside, values, outside)
    return values


def check_warped(found, frames, places, order, outside, away=None):
    """Compare with the definition where rounding decides nothing: not next to an edge, or half way between pixels."""
    dtype = frames.dtype
    for image, frame, place in zip(found, frames, places, strict=True):
        expected = seen_at(frame, place, order, outside)
        limit = np.array(frame.shape)[:, None, None] - 1
        near_edge = (np.minimum(abs(place + 1e-3), abs(place - limit - 1e-3)) < 1e-4).any(axis=0)
        tie = (abs(place % 1 - 0.5) < 1e-4).any(axis=0) if order == 0 else np.zeros(frame.shape, bool)
        sure = ~near_edge & ~tie
        assert sure.mean() > 0.8
        if dtype.kind == "f":
            tolerance = {2: 2e-3, 4: 4e-5, 8: 4e-5 if away else 1e-11}[dtype.itemsize]
            scale = np.abs(frame.astype(float)).max()
            np.testing.assert_allclose(image.astype(float)[sure], expected[sure], rtol=0, atol=tolerance * scale)
        else:
            limits = np.iinfo(dtype)
            held = np.clip(expected, limits.min, limits.max)
            precision = (4e-5 if away or dtype.itemsize < 4 else 1e-9) * float(limits.max)
            assert np.abs(image - held)[sure].max() <= 0.5 + precision


@pytest.mark.parametrize("order", WARP_ORDERS)
@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("outside", [None, 7])
def test_matrices(device, outside, dtype, order):
    rng = np.random.default_rng(order)
    for shape in ((19, 45), (33, 31), (1, 1)):
        frames = np.stack([random_frame(shape, dtype, seed) for seed in range(3)])
        matrices = random_matrices(rng, 3)
        found = warped(frames, matrices, order, outside)
        assert found.dtype == frames.dtype
        if shape == (1, 1) and outside is not None:
            continue  # hardly a place is inside
        y, x = np.mgrid[: shape[0], : shape[1]]
        places = np.einsum("tij,jyx->tiyx", matrices[:, :2], np.stack([y, x, np.ones(shape)]))
        check_warped(found, frames, places, order, outside)
    assert set(device) <= {"warp_frames", "spline_frames"}


@pytest.mark.parametrize("order", WARP_ORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("outside", [None, 7])
def test_fields(device, outside, dtype, order):
    rng = np.random.default_rng(order + 5)
    for shape, grid in (((19, 45), (5, 7)), ((41, 22), (2, 3)), ((30, 17), (1, 4))):
        frames = np.stack([random_frame(shape, dtype, seed) for seed in range(2)])
        fields, nodes = random_fields(rng, 2, shape, grid)
        found = warped(frames, splines_of(fields, nodes, shape), order, outside)
        rows, columns = pixel_bases(*nodes, shape)
        places = np.stack(np.mgrid[: shape[0], : shape[1]]) - np.einsum("yi,tijc,xj->tcyx", rows, fields, columns)
        check_warped(found, frames, places, order, outside, away=True)


@pytest.mark.parametrize("shape", [(45, 130), (5, 70), (40, 1), (13, 12)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_coefficients_are_those_of_the_splines(device, dtype, shape):
    frames = (np.random.default_rng(3).random((2, *shape)) * 100).astype(dtype)
    expected = frames.astype(np.float64)
    for axis in (1, 2):
        expected = ndimage.spline_filter1d(expected, order=3, axis=axis, mode="mirror")
    np.testing.assert_allclose(spline_coefficients(frames), expected, atol=2e-4)


ORDERS = [0, 1, 3, "lanczos", "fourier"]
SHIFTS = np.array([(0.25, -0.5), (3.0, -2.0), (0.0, 1.75), (-2.5, 0.0), (40.3, 2.4), (-1.2, 3.7), (0.0, 0.0)])


def stack(shape, dtype):
    return np.stack([random_frame(shape[1:], dtype, seed) for seed in range(shape[0])])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("outside", [None, 9])
@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32", "float64"])
def test_device_and_cpu_agree(device, dtype, outside, order):
    frames = stack((len(SHIFTS), 19, 26), dtype)
    mode = {"mode": "nearest"} if outside is None else {"cval": outside}
    expected, clipped = shift_frames(frames, SHIFTS, order=order, workers=1, **mode)
    found, count = move_on_device(frames, SHIFTS, order, outside, counts=True)
    assert device
    assert found.dtype == frames.dtype
    if frames.dtype.kind == "f":
        tolerance = (3e-6 if dtype == "float32" else 1e-12) * np.abs(frames).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    else:
        off = np.abs(found.astype(np.float64) - expected)
        assert off.max() <= 1
        assert np.count_nonzero(off) <= (0.02 if order == "fourier" else 0.002) * off.size
        assert abs(count - clipped) <= 3
        assert (clipped > 0) == (order in (3, "lanczos", "fourier"))
    for t in (1, 6):  # whole pixels
        np.testing.assert_array_equal(found[t], expected[t])


@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("outside", [None, 3])
def test_fourier_in_parts_equals_the_definition(device, monkeypatch, outside, dtype):
    for shape in ((13, 18), (1, 7), (70, 33), (5, 131), (1, 1)):
        frames = stack((len(SHIFTS), *shape), dtype)
        itemsize = 8 if dtype in ("int32", "uint32", "float64") else 4
        monkeypatch.setattr(device_moving, "FOURIER_BYTES", 3 * 16 * itemsize * shape[0] * shape[1])
        found, clipped = move_on_device(frames, SHIFTS, "fourier", outside, counts=True)
        mode, cval = ("nearest", 0) if outside is None else ("constant", outside)
        sure = perhaps = 0
        for moved, frame, shift in zip(found, frames, SHIFTS, strict=True):
            expected = by_definition(frame, shift, "fourier", mode, cval)
            if frames.dtype.kind == "f":
                tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-12}[frames.itemsize] * np.abs(frame).max()
                np.testing.assert_allclose(moved, expected, rtol=0, atol=float(tolerance))
                continue
            limits = np.iinfo(dtype)
            precision = (1e-6 if itemsize == 4 else 1e-14) * (float(limits.max) - float(limits.min))
            assert np.abs(moved - np.clip(expected, limits.min, limits.max)).max() <= 0.5 + precision
            beyond = np.maximum(limits.min - expected, expected - limits.max)
            sure += np.count_nonzero(beyond > 0.5 + precision)
            perhaps += np.count_nonzero(beyond > 0.5 - precision)
        assert sure <= clipped <= perhaps
