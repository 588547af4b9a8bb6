"""Moving frames: against the definition as dense float64 matrices, and the promises about copies, borders and types."""

import numpy as np
import pytest
import scipy.ndimage

from tests.registration.moving.moving_definition import by_definition, random_frame
from xcorr_app import estimate_shifts, read_stack, write_stack
from xcorr_app.io.source import StackMetadata
from xcorr_app.registration.moving.apply import apply_shifts, common_area, shift_frames

TAP_ORDERS = [0, 1, 3, "lanczos"]
ORDERS = [*TAP_ORDERS, "fourier"]
SHAPES = [(1, 1), (1, 7), (6, 1), (3, 5), (17, 31)]
SHIFTS = [(0.25, -0.5), (-1.75, 2.0), (0.0, 1e-4), (3.0, -0.999), (2.4, 40.3), (-100.0, 0.5), (1e300, -1e300)]
DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32", "float64"]


def host(array):
    return array.get() if hasattr(array, "get") else array


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("shape", SHAPES)
def test_float_frames_equal_the_definition(xp, shape, mode, order):
    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        frame = random_frame(shape, dtype)
        for shift in SHIFTS:
            moved = host(apply_shifts(xp.asarray(frame), shift, interpolation=order, border=mode, cval=-3.0))
            expected = by_definition(frame, shift, order, mode, -3.0)
            assert moved.dtype == frame.dtype
            np.testing.assert_allclose(moved, expected, rtol=0, atol=tolerance * np.abs(frame).max())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES[:6])
def test_integers_are_rounded_clipped_and_counted(xp, dtype, order):
    frame = random_frame((17, 31), dtype)
    limits = np.iinfo(dtype)
    expected = by_definition(frame, (0.3, -1.6), order, "nearest", 0)
    moved, clipped = shift_frames(xp.asarray(frame)[None], [(0.3, -1.6)], order=order, mode="nearest")
    moved = host(moved)[0]
    assert moved.dtype == frame.dtype
    span = float(limits.max) - float(limits.min)
    # Half a unit is the rounding; a value next to a tie may fall to either side.
    precision = 1e-6 if moved.dtype.itemsize <= 2 else 1e-14
    assert np.abs(moved - np.clip(expected, limits.min, limits.max)).max() <= 0.5 + precision * span
    rounded = np.rint(expected)
    assert clipped == np.count_nonzero((rounded < limits.min) | (rounded > limits.max))
    assert (clipped > 0) == (order in (3, "lanczos", "fourier"))


def test_halves_round_to_even(xp):
    frame = xp.asarray(np.array([[0, 1, 2, 3, 4, 5]], dtype=np.uint8))
    assert host(apply_shifts(frame, (0, -0.5), border="nearest")).tolist() == [[0, 2, 2, 4, 4, 5]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_pixels_are_copied_bit_by_bit(xp, dtype, order):
    random = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    # Random bits include NaN payloads, infinities and subnormal numbers.
    frame = np.frombuffer(random.bytes(9 * 11 * dtype.itemsize), dtype=dtype).reshape(9, 11)
    for dy, dx in [(0, 0), (2, -3), (-8, 10), (1 + 1e-12, -1 - 1e-12)]:
        moved = host(apply_shifts(xp.asarray(frame), (dy, dx), interpolation=order, border="nearest"))
        rows = np.clip(np.arange(9) - round(dy), 0, 8)
        columns = np.clip(np.arange(11) - round(dx), 0, 10)
        assert moved.tobytes() == frame[np.ix_(rows, columns)].tobytes()


@pytest.mark.parametrize("order", ORDERS)
def test_frames_move_independently_and_on_any_number_of_threads(xp, order):
    frames = random_frame((5, 40, 33), "uint16")
    shifts = np.random.default_rng(2).uniform(-50, 50, (5, 2))
    one = host(apply_shifts(xp.asarray(frames), shifts, interpolation=order, border="nearest"))
    for workers in (1, 3, 8):
        many, _ = shift_frames(xp.asarray(frames), shifts, order=order, mode="nearest", workers=workers)
        assert np.array_equal(host(many), one)
    for t in range(5):
        assert np.array_equal(
            host(apply_shifts(xp.asarray(frames[t]), shifts[t], interpolation=order, border="nearest")), one[t]
        )


@pytest.mark.parametrize(("order", "reach"), [(1, (0, 1)), (3, (-1, 2)), ("lanczos", (-3, 4))])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_pixels_spread_only_under_the_taps(xp, order, reach, bad):
    frame = random_frame((21, 23), "float32")
    frame[10, 12] = bad
    # Position y - 0.5 lies between y - 1 and y: the pixel at 10 is under the taps of these rows and columns.
    under = [slice(10 + 1 - reach[1], 10 + 1 - reach[0] + 1), slice(12 + 1 - reach[1], 12 + 1 - reach[0] + 1)]
    for shift, area in (((0.5, 0.5), (under[0], under[1])), ((0.5, 0.0), (under[0], slice(12, 13)))):
        moved = host(apply_shifts(xp.asarray(frame), shift, interpolation=order, border="nearest"))
        expected = np.zeros(frame.shape, dtype=bool)
        expected[area] = True
        assert np.array_equal(~np.isfinite(moved), expected)


def test_fourier_marks_the_nearest_pixel_of_a_nan_and_stays_finite_elsewhere(xp):
    frame = np.full((16, 18), 7.0, dtype=np.float32)
    frame[5, 6] = np.nan
    frame[9, 9] = -np.inf
    moved = host(apply_shifts(xp.asarray(frame), (1.2, -2.3), interpolation="fourier", border="nearest"))
    expected = np.full((16, 18), 7.0)
    expected[6, 4] = expected[10, 7] = np.nan
    np.testing.assert_allclose(moved, expected, atol=1e-5)
    nothing = apply_shifts(xp.full((4, 4), xp.nan), (0.5, 0.5), interpolation="fourier", border="nearest")
    assert np.isnan(host(nothing)).all()


def test_nothing_wraps_around(xp):
    frame = np.zeros((32, 32), dtype=np.float64)
    frame[:, -1] = 1000.0
    for order in ORDERS:
        moved = host(apply_shifts(xp.asarray(frame), (0.0, 3.5), interpolation=order, border="nearest"))
        # Beyond a radius of 4 only the tails of the Fourier series remain, and they do not grow towards the far side.
        assert np.abs(moved[:, :8]).max() < (20.0 if order == "fourier" else 1e-9)


def test_strided_and_big_endian_frames_are_read_as_they_are():
    frames = random_frame((3, 12, 20), "uint16")
    moved = apply_shifts(frames[:, ::2, ::-1], (0.5, 1.25), interpolation=3)
    assert np.array_equal(moved, apply_shifts(np.ascontiguousarray(frames[:, ::2, ::-1]), (0.5, 1.25), interpolation=3))
    swapped = apply_shifts(frames.astype(">u2"), (0.5, 1.25))
    assert swapped.dtype == np.dtype(">u2")
    assert np.array_equal(swapped, apply_shifts(frames, (0.5, 1.25)))


def test_the_input_is_left_alone(xp):
    frames = random_frame((2, 8, 9), "int16")
    given = xp.asarray(frames)
    assert (host(shift_frames(given, [(1, 0.5), (-20, 0)], cval=-7)[0])[1] == -7).all()
    assert np.array_equal(host(given), frames)


@pytest.mark.parametrize("order", ORDERS)
def test_common_area_is_the_largest_rectangle_never_filled(order):
    shifts = np.array([(0, 0), (2.5, -1), (-0.25, 3.999), (1e-12, 0)])
    filled = apply_shifts(np.ones((4, 30, 26), dtype=np.float32), shifts, interpolation=order, cval=np.nan)
    complete = ~np.isnan(filled).any(axis=0)
    area = common_area((30, 26), shifts)
    assert area == (slice(3, 29), slice(4, 25))
    assert complete[area].all()
    if order != 0:  # nearest rounds its shifts, so it may keep a row or a column more
        assert complete.sum() == complete[area].size


def test_a_pixel_that_is_left_is_a_common_area():
    assert common_area((10, 10), (9, -9)) == (slice(9, 10), slice(0, 1))


def test_the_noise_of_a_measurement_blanks_no_edge(xp, rng):
    frame = rng.integers(1000, 2000, (9, 11)).astype(np.uint16)
    for shift in [(1e-6, -1e-6), (-9e-4, 9e-4)]:
        moved = apply_shifts(xp.asarray(frame), shift)
        np.testing.assert_allclose(np.asarray(moved.get() if xp is not np else moved), frame, atol=3)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_integers_of_64_bits_are_moved_as_smaller_ones(dtype, order):
    small = np.random.default_rng(0).integers(0, 60000, (3, 20, 21)).astype(np.uint32)
    shifts = [(0, 0), (1, -2), (0.5, 0.25)]
    for stack in (small, small[0]):
        moves = shifts if stack.ndim == 3 else shifts[2]
        found = apply_shifts(stack.astype(dtype), moves, order)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, apply_shifts(stack, moves, order))
    large = np.full((1, 4, 4), 2**53, dtype)
    np.testing.assert_array_equal(apply_shifts(large, (0, 0), order), large)


def test_a_stack_that_was_read_is_moved_by_its_axes(tmp_path):
    planes = np.random.default_rng(0).integers(0, 99, (3, 2, 20, 21)).astype(np.uint16)
    metadata = StackMetadata("TCYX", planes.shape, planes.dtype, "ome")
    write_stack(tmp_path / "a.ome.tif", planes, metadata)
    stack = read_stack(tmp_path / "a.ome.tif")
    found = apply_shifts(stack, [(0, 0), (1, 0), (0, 1)])
    np.testing.assert_array_equal(found, apply_shifts(planes, [(0, 0), (1, 0), (0, 1)], axes="TCYX"))
    assert estimate_shifts(stack, max_shift=4).shifts.shape == (3, 2)


@pytest.mark.parametrize("border", ["reflect", "mirror", "wrap"])
def test_pixels_beyond_the_frame_are_not_counted_as_clipped(border):
    """Spots with dark and bright rims, one near a corner, where borders show it again."""
    frames = np.zeros((1, 40, 40), np.uint8)
    frames[0, 2:6, 2:6] = frames[0, 20:24, 20:24] = 255
    exact = shift_frames(frames.astype(float), (9.5, -9.5), order="lanczos", mode=border)[0]
    clipped = shift_frames(frames, (9.5, -9.5), order="lanczos", mode=border)[1]
    assert clipped == ((exact < -0.5) | (exact > 255.5)).sum()


@pytest.mark.parametrize(("border", "theirs"), [("reflect", "reflect"), ("mirror", "mirror"), ("wrap", "grid-wrap")])
@pytest.mark.parametrize("shift", [(0.5, -1.25), (-7, 3), (31.5, -26.25), (3e6 + 0.5, 0)])
def test_borders_are_those_of_scipy(xp, border, theirs, shift):
    frame = random_frame((13, 11), "float64")
    moved = host(apply_shifts(xp.asarray(frame), shift, border=border))
    expected = scipy.ndimage.shift(frame, shift, order=1, mode=theirs)
    np.testing.assert_allclose(moved, expected, atol=1e-6 * np.abs(frame).max())
