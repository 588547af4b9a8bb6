"""The translation kernel's own source, run on the host, against the definition in float64; outputs are poisoned."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.pointwise_definition import off_by, surroundings_are_whole
from tests.registration.moving.moving_definition import by_definition, random_frame
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, TAPS, TranslationProblem, pixel_bytes
from xcorr_app.gpu.resample.translation import translation_argument, translation_launch

ORDERS = {"nearest": 0, "linear": 1, "cubic": 3, "lanczos": "lanczos"}
FRACTIONS = [(0.25, -0.5), (-1.75, 2.0), (0.0, 1e-4), (3.0, -0.999), (2.4, 40.3), (-100.0, 0.5), (1e300, -1e300)]


def translate(folder, frames, shifts, method, *, outside=None, counts=False, offset=0, tuning=None):
    """Frames moved by the kernel, and the clipped pixels of each frame."""
    height, width = frames.shape[1:]
    problem = TranslationProblem(
        (height, width), len(frames), frames.dtype.name, method, outside is not None, counts=counts
    )
    poisoned = np.frombuffer(np.random.default_rng(5).bytes(frames.nbytes), frames.dtype).reshape(frames.shape)
    source, results = off_by(frames, offset), off_by(poisoned, offset)
    addresses = results.ctypes.data | 16
    launch = translation_launch(problem, alignment=addresses & -addresses, tuning=tuning)
    clipped = guarded(np.zeros(len(frames), np.uint64))
    moves = guarded(np.asarray(shifts, np.float64))
    argument = translation_argument(problem, launch, pixel_bytes(outside or 0, frames.dtype))
    run_kernel(folder, launch, (source, results, clipped, moves, argument), ())
    assert surroundings_are_whole(results)
    assert guards_are_whole(clipped)
    return results, clipped


def check(folder, frames, shifts, method, *, outside=None, **options):
    found, clipped = translate(folder, frames, shifts, method, outside=outside, counts=True, **options)
    mode, cval = ("nearest", 0) if outside is None else ("constant", outside)
    dtype = frames.dtype
    for t, shift in enumerate(shifts):
        expected = by_definition(frames[t], shift, ORDERS[method], mode, cval)
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
        check(host_builds, frames, FRACTIONS, method, outside=outside)
        check(host_builds, frames, random_shifts(len(frames), shape, shape[1]), method, outside=outside)


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
