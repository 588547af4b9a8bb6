"""Frames whose parts move otherwise: the field that bent them is found and undone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from threadpoolctl import threadpool_limits

import xcorr_app as xc
from tests.registration.scenes import drifting, texture
from xcorr_app.errors import ArgumentError, DamagedFileError, InputError, ShapeError
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.warp import warp_by_fields

SHAPE = (221, 240)


def waves(shape, seed, amplitude, periods=1.0):
    """A smooth field (2, Y, X) of zero mean, at most `amplitude` pixels."""
    rng = np.random.default_rng(seed)
    y, x = (axis / size for axis, size in zip(np.mgrid[: shape[0], : shape[1]], shape, strict=True))
    field = np.zeros((2, *shape))
    for component in field:
        for _ in range(3):
            ky, kx = rng.uniform(-periods, periods, 2)
            component += rng.normal() * np.cos(2 * np.pi * (ky * y + kx * x) + rng.uniform(0, 2 * np.pi))
    field -= field.mean(axis=(1, 2), keepdims=True)
    return field * (amplitude / np.abs(field).max())


def bent(seed, snr, amplitude=4.0, count=3, shape=SHAPE, rigid=5.0, periods=1.0, hole=False):
    """Frames, the first of them not bent, and the shifts (T, 2, Y, X) to add to land on it, at pixels of it."""
    pad, rng = 40, np.random.default_rng(seed + 100)
    big = texture((shape[0] + 2 * pad, shape[1] + 2 * pad), seed, 2.0)
    if hole:
        v, u = np.mgrid[: big.shape[0], : big.shape[1]] - np.array(big.shape)[:, None, None] / 2
        big *= 1 / (1 + np.exp((45 - np.hypot(v, u)) / 2))
    splines = ndimage.spline_filter(big, 5)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    frames, shifts = [big[pad:-pad, pad:-pad]], [np.zeros((2, *shape))]
    for t in range(1, count):
        back = waves(shape, 10 * seed + t, amplitude, periods) + rng.uniform(-rigid, rigid, 2)[:, None, None]
        frames.append(
            ndimage.map_coordinates(splines, [y + back[0] + pad, x + back[1] + pad], order=5, prefilter=False)
        )
        # `back` belongs to the pixels of the frame; what moves x there is the field at the place that x comes from.
        shift = back.copy()
        for _ in range(40):
            places = [y - shift[0], x - shift[1]]
            shift = np.stack([ndimage.map_coordinates(part, places, order=1, mode="nearest") for part in back])
        shifts.append(shift)
    stack = np.stack(frames)
    return (stack + rng.normal(size=stack.shape) / snr).astype(np.float32), np.stack(shifts)


def field_errors(result, shifts, rim=12):
    found = np.stack([np.moveaxis(result.field.at_pixels(t, shifts.shape[2:]), 2, 0) for t in range(len(shifts))])
    return np.sqrt(((found - shifts)[..., rim:-rim, rim:-rim] ** 2).mean(axis=(1, 2, 3)))


@pytest.mark.share(3)
@pytest.mark.parametrize(("snr", "largest"), [(20, 0.03), (2, 0.08), (0.5, 0.3)])
def test_the_field_is_found(snr, largest):
    frames, shifts = bent(3, snr)
    result = xc.estimate_motion(frames, "patches", patch=64)
    assert result.model == "patches"
    assert field_errors(result, shifts)[1:].max() < largest
    # A shift alone is farther off by far.
    assert np.abs(shifts[1:] - result.shifts[1:, :, None, None]).max() > 3
    assert result.trusted.all()


def test_errors_are_predicted():
    ratios = []
    for seed, snr in ((5, 2.0), (6, 1.0), (7, 0.7)):
        frames, shifts = bent(seed, snr)
        result = xc.estimate_motion(frames, "patches", patch=64)
        rows, columns = (np.rint(axis).astype(int) for axis in (result.field.rows, result.field.columns))
        truth = np.moveaxis(shifts[:, :, rows][..., columns], 1, 3)
        ratios.append(((result.field.shifts - truth) / result.field.sigma)[1:].ravel())
    size = np.abs(np.concatenate(ratios))
    assert 0.5 < (size < 1).mean() < 0.85
    assert (size < 2).mean() > 0.85


def test_a_patch_in_which_nothing_can_be_seen_follows_its_neighbours():
    frames, shifts = bent(8, 20, hole=True)
    result = xc.estimate_motion(frames, "patches", patch=32)
    middle = (np.abs(result.field.rows - 110).argmin(), np.abs(result.field.columns - 120).argmin())
    assert not result.field.trusted[1][middle]
    assert result.field.sigma[1][middle].max() > 2 * np.median(result.field.sigma[1])
    found = result.field.shifts[1][middle]
    assert np.abs(found - shifts[1, :, 110, 120]).max() < 0.5


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", ["last", 1, "template", "image"])
def test_every_reference(reference):
    frames, shifts = bent(4, 5, amplitude=2.0, count=4)
    given = frames[0] if reference == "image" else reference
    result = xc.estimate_motion(frames, "patches", given, patch=64)
    before = np.mean([np.corrcoef(frames[0, 20:-20, 20:-20].ravel(), f[20:-20, 20:-20].ravel())[0, 1] for f in frames])
    moved = result.apply(frames, interpolation=3)
    target = moved[{"last": 3, 1: 1}.get(reference, 0)]
    after = [np.corrcoef(target[20:-20, 20:-20].ravel(), f[20:-20, 20:-20].ravel())[0, 1] for f in moved]
    assert np.mean(after) > max(before + 0.1, 0.9)
    assert shifts.shape[0] == 4


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_warping_is_what_scipy_does_with_type_and_border(dtype, order):
    rng = np.random.default_rng(1)
    frame = (rng.random((1, 33, 41)) * 200).astype(dtype)
    nodes = np.linspace(0, 32, 4), np.linspace(0, 40, 5)
    field = rng.normal(size=(1, 4, 5, 2)) * 2
    out = warp_by_fields(frame, field, nodes, order, "constant", 7)
    assert out.dtype == frame.dtype
    from scipy.interpolate import make_interp_spline

    y, x = np.mgrid[:33, :41]
    shift = [
        make_interp_spline(nodes[1], make_interp_spline(nodes[0], field[0, :, :, c])(y[:, 0]).T)(x[0]).T for c in (0, 1)
    ]
    places = np.stack([y - shift[0], x - shift[1]])
    exact = ndimage.map_coordinates(frame[0].astype(float), places, order=order, mode="mirror")
    edge = np.array([32, 40])[:, None, None]
    inside = ((places >= 0) & (places <= edge)).all(axis=0)
    outside = ((places < -0.01) | (places > edge + 0.01)).any(axis=0)
    assert 0.5 < inside.mean() < 1
    assert (out[0][outside] == 7).all()
    if frame.dtype.kind == "f":
        np.testing.assert_allclose(out[0][inside], exact[inside], atol=2e-3)
    elif order != 0:
        limits = np.iinfo(dtype)
        np.testing.assert_allclose(out[0][inside], np.clip(exact[inside], limits.min, limits.max), atol=0.52)
    np.testing.assert_array_equal(warp_by_fields(frame, 0 * field, nodes, order), frame)


def test_a_result_is_kept_in_a_file(tmp_path):
    frames, _ = bent(4, 5, count=2)
    for model in ("patches", "rigid"):
        result = xc.estimate_motion(frames, model, patch=64)
        result.save(tmp_path / "m.npz")
        again = xc.MotionResult.load(tmp_path / "m.npz")
        assert (again.model, again.flags, again.shape) == (result.model, result.flags, result.shape)
        np.testing.assert_array_equal(again.matrices, result.matrices)
        np.testing.assert_allclose(again.apply(frames), result.apply(frames), atol=1e-4)
    with pytest.raises(ArgumentError, match="npz"):
        result.save(tmp_path / "m.csv")
    replace(result, doubtful="leave").save(tmp_path / "m.npz")
    assert xc.MotionResult.load(tmp_path / "m.npz").doubtful == "leave"
    with pytest.raises(InputError):
        xc.MotionResult.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(DamagedFileError):
        xc.MotionResult.load(tmp_path / "bad.npz")


def test_what_becomes_of_frames_in_doubt():
    shifts = np.random.default_rng(7).normal(size=(4, 3, 5, 2))
    shifts[3] = np.nan
    nothing = np.zeros((4, 3, 5))
    field = Field(np.arange(3.0), np.arange(5.0), shifts, nothing, nothing, nothing)
    taken = np.array([True, False, True, False])
    for policy, second, last in (
        ("interpolate", (shifts[0] + shifts[2]) / 2, shifts[2]),
        ("apply", shifts[1], shifts[2]),
        ("leave", 0, 0),
        ("drop", np.nan, np.nan),
    ):
        applied = field.applied(taken, policy)
        np.testing.assert_array_equal(applied[[0, 2]], shifts[[0, 2]].round(6))
        np.testing.assert_allclose(applied[1], np.broadcast_to(second, applied[1].shape), atol=6e-7)
        np.testing.assert_allclose(applied[3], np.broadcast_to(last, applied[3].shape), atol=6e-7)


def test_a_flat_frame_is_interpolated_and_nan_is_a_remark():
    frames, shifts = bent(4, 20, amplitude=2.0, count=4)
    frames[2] = 3.0
    frames[1, 10:14, 20:30] = np.nan
    result = xc.estimate_motion(frames, "patches", patch=64)
    assert "flat" in result.flags[2]
    assert result.flags[1] == ("non-finite",)
    assert field_errors(result, shifts)[1] < 0.1
    applied = result.field.applied(result.trusted, "interpolate")
    np.testing.assert_allclose(applied[2], (applied[1] + applied[3]) / 2, atol=2e-6)
    assert result.apply(np.nan_to_num(frames)).shape == frames.shape


def test_one_patch_is_one_frame():
    """Of a frame that is one patch, the field has the nodes of its edges."""
    frames, _ = bent(4, 20, amplitude=0.5, count=2, shape=(64, 64), rigid=2.0, periods=0.3)
    result = xc.estimate_motion(frames, "patches", patch=64)
    assert result.field.shifts.shape == (2, 3, 3, 2)


def test_the_answer_does_not_depend_on_threads(monkeypatch):
    frames, _ = bent(4, 2, count=4)
    with threadpool_limits(2, "blas"):
        one = xc.estimate_motion(frames, "patches", patch=32)
    monkeypatch.setattr("xcorr_app.registration.stack.passes.worker_count", lambda: 1)
    with threadpool_limits(1, "blas"):
        other = xc.estimate_motion(frames, "patches", patch=32)
    for name in ("shifts", "sigma"):
        np.testing.assert_array_equal(getattr(other.field, name), getattr(one.field, name))


def test_a_field_with_a_hole_moves_nothing_by_nan():
    frames = np.random.default_rng(5).uniform(size=(3, 30, 36)).astype(np.float32)
    nodes, shifts = (np.array([0.0, 29.0]), np.array([0.0, 35.0])), np.ones((3, 2, 2, 2))
    shifts[1], shifts[2] = np.nan, 3.0
    with pytest.raises(ArgumentError, match="field of frame 1 holds NaN"):
        warp_by_fields(frames, shifts, nodes)
    field = Field(*nodes, shifts, np.ones_like(shifts), np.ones((3, 2, 2), bool), np.ones((3, 2, 2)))
    # Whatever the flags say: between its neighbours, left, or dropped.
    for policy, expected in {"interpolate": 2.0, "apply": 2.0, "leave": 0.0, "drop": np.nan}.items():
        applied = field.applied(np.ones(3, bool), policy)
        np.testing.assert_array_equal(applied[1], np.full((2, 2, 2), expected))
        np.testing.assert_array_equal(applied[[0, 2]], shifts[[0, 2]])


@pytest.mark.parametrize("model", ["patches", "rigid"])
def test_frames_of_another_size_are_refused(model):
    frames, _ = bent(3, 20, count=2, shape=(64, 70))
    result = xc.estimate_motion(frames, model, patch=32)
    for other in (frames[:, :60], frames[:1]):
        with pytest.raises(ShapeError, match="2 frames of 64 x 70 were measured"):
            result.apply(other)


def test_a_flat_first_frame_is_no_reference():
    stack = drifting(np.array([(0, 0), (1.5, -2), (3, 1), (-2, 2)]), (140, 150)).astype(np.float32)
    stack[0] = 5
    result = xc.estimate_motion(stack, "patches", patch=64)
    assert result.flags == (("flat",), (), (), ())
    np.testing.assert_allclose(result.matrices[1:, :2, 2], [[0, 0], [1.5, 3], [-3.5, 4]], atol=0.02)
    stack[1:] = 7
    assert all("flat" in words for words in xc.estimate_motion(stack, "patches", patch=64).flags)
