"""Frames that turn, change their size or shear: the motion that made them is found."""

from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from xcorr_app.registration.solver.basis import BASES
from xcorr_app.registration.solver.gauss_newton import compared
from xcorr_app.registration.warping.matrices import turned
from xcorr_app.registration.warping.warp import warp_frames

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SHEAR = np.array([[1.03, 0.02, 0.0], [-0.01, 0.98, 0.0], [0.0, 0.0, 1.0]])


def scene(size, seed, speckle):
    rng = np.random.default_rng(seed)
    if speckle:
        image = rng.normal(size=(size, size))
    else:
        image = np.zeros((size, size))
        image[tuple(rng.integers(0, size, (2, size * size // 300)))] = rng.uniform(0.3, 1, size * size // 300)
    image = ndimage.gaussian_filter(image, 2.0)
    return (image - image.mean()) / image.std()


def motions(model, count, seed, turn=np.pi):
    """Motions about the middle, the first of them none."""
    rng = np.random.default_rng(seed)
    found = [np.eye(3)]
    for _ in range(count - 1):
        angle = rng.uniform(-turn, turn) if BASES[model].turns else 0.0
        motion = turned(angle, rng.uniform(0.8, 1.25) if BASES[model].scales else 1.0)
        if model == "affine":
            motion = motion @ SHEAR
        motion[:2, 2] = rng.uniform(-12, 12, 2)
        found.append(motion)
    return np.stack(found)


def about(motion, shape):
    middle = np.eye(3)
    middle[:2, 2] = (np.array(shape) - 1) / 2
    return middle @ motion @ np.linalg.inv(middle)


def series(model, snr, seed, shape=(181, 160), speckle=False, count=4, turn=np.pi):
    """Frames cut from a larger scene, each through its motion, with noise; and the matrices of pixel coordinates."""
    size = 2 * max(shape)
    rng = np.random.default_rng(seed + 100)
    splines = ndimage.spline_filter(scene(size, seed, speckle), 5)
    frames, truth = [], []
    for motion in motions(model, count, seed, turn):
        back = np.linalg.inv(motion)
        to_scene = np.eye(3)
        to_scene[:2, 2] = (size - 1) / 2
        to_frame = np.eye(3)
        to_frame[:2, 2] = (np.array(shape) - 1) / 2
        matrix = to_scene @ back @ np.linalg.inv(to_frame)
        frame = ndimage.affine_transform(
            splines, matrix[:2, :2], offset=matrix[:2, 2], output_shape=shape, order=5, prefilter=False
        )
        frames.append(frame + rng.normal(size=shape) / snr)
        truth.append(about(motion, shape))
    return np.stack(frames), np.stack(truth)


def corner_errors(found, truth, shape):
    corners = np.array([[y, x, 1.0] for y in (0, shape[0] - 1) for x in (0, shape[1] - 1)])
    return np.abs(np.einsum("tij,cj->tci", found - truth, corners)[..., :2]).max(axis=(1, 2))


@pytest.mark.share(2)
@pytest.mark.parametrize("model", list(BASES))
@pytest.mark.parametrize("speckle", [False, True], ids=["spots", "speckle"])
def test_the_motion_is_found_over_the_whole_range(model, speckle):
    frames, truth = series(model, 20, seed=len(model), speckle=speckle)
    result = xc.estimate_motion(frames, model)
    assert result.flags == ((),) * len(frames)
    assert corner_errors(result.matrices, truth, frames.shape[1:]).max() < 0.03
    assert result.score.min() > 0.95


@pytest.mark.parametrize("model", list(BASES))
def test_transforms_are_those_of_scikit_image(model):
    transform = pytest.importorskip("skimage.transform")
    frames, _ = series(model, 20, seed=7, count=2, turn=0.2)
    frames = np.concatenate([frames, np.zeros_like(frames[:1])]).astype(np.float32)
    result = xc.estimate_motion(frames, model)
    kinds = {"similarity": transform.SimilarityTransform, "affine": transform.AffineTransform}
    itself, moved, nowhere = result.transforms
    assert type(moved) is kinds.get(model, transform.EuclideanTransform)
    np.testing.assert_allclose(itself.params, np.eye(3), atol=1e-5)
    assert nowhere is None
    ours = result.apply(frames)[1]
    theirs = transform.warp(frames[1], moved, order=1, preserve_range=True)
    inside = (slice(40, -40),) * 2
    np.testing.assert_allclose(theirs[inside], ours[inside], atol=1e-3)


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(3))
def test_angle_and_shift_at_signal_to_noise_five(seed):
    frames, truth = series("rigid", 5, seed, shape=(256, 240))
    result = xc.estimate_motion(frames, "rigid")
    expected = np.degrees(np.arctan2(truth[:, 1, 0], truth[:, 0, 0]))
    assert np.abs((result.angle - expected + 180) % 360 - 180).max() < 0.01
    shifts = xc.MotionResult.shifts.fget(type(result)(**{**vars(result), "matrices": truth}))
    assert np.abs(result.shifts - shifts).max() < 0.02


def test_errors_are_predicted():
    """Over many frames of noise, a third of the errors are larger than their sigma, few larger than twice that."""
    ratios = []
    for seed, snr in enumerate((5, 2, 1, 0.7)):
        frames, truth = series("rigid", snr, seed + 20, shape=(128, 128), count=8)
        result = xc.estimate_motion(frames, "rigid")
        centre = np.array([63.5, 63.5, 1.0])
        errors = ((result.matrices - truth) @ centre)[1:, :2]
        ratios.append(errors / result.sigma[1:])
    size = np.abs(np.concatenate(ratios))
    assert 0.5 < (size < 1).mean() < 0.85
    assert (size < 2).mean() > 0.85


@pytest.mark.share(2)
@pytest.mark.skipif(not DATA.is_dir(), reason="no real stacks")
def test_speckle_turned_by_known_angles():
    from xcorr_app.io import read_stack

    files = sorted((DATA / "dice_rotation20").glob("*.tif"))
    stack = np.stack([read_stack(file).data for file in files])
    result = xc.estimate_motion(stack, "rigid")
    errors = (result.angle - [int(file.stem[-3:]) for file in files] + 180) % 360 - 180
    assert np.abs(errors).max() < 0.05
    assert result.trusted.all()


def test_doubt_is_told_apart():
    frames, _ = series("rigid", 20, 1, shape=(96, 96))
    y, x = np.mgrid[:96, :96] - 47.5
    disc = (np.hypot(y, x) < 25).astype(float)
    noise = np.random.default_rng(0).normal(size=(96, 96))
    nan = frames[1].copy()
    nan[10:14, 20:24] = np.nan
    result = xc.estimate_motion(np.stack([*frames[:2], noise, np.zeros((96, 96)), nan]), "rigid")
    assert "uncertain" in result.flags[2]
    assert (*result.flags[:2], *result.flags[3:]) == ((), (), ("flat",), ("non-finite",))
    assert np.abs(result.matrices[4] - result.matrices[1]).max() < 0.05
    np.testing.assert_array_equal(result.trusted, [True, True, False, False, True])
    smooth = ndimage.gaussian_filter(disc, 2)
    discs = xc.estimate_motion(np.stack([smooth, ndimage.shift(smooth, (3, -2))]), "rigid")
    assert {"uncertain", "ambiguous"} & set(discs.flags[1])
    assert compared(frames[:1], np.zeros_like(frames[:1]), np.ones_like(frames[:1])).gain == 0  # of an image of nothing


@pytest.mark.parametrize(
    "measured",
    [
        lambda frames: xc.estimate_motion(frames, "affine").matrices,
        lambda frames: xc.estimate_motion(frames, "patches", patch=48).sigma,
        lambda frames: xc.displacement_field(frames[0], frames[1], window=32).displacement,
        lambda frames: xc.estimate_shifts(frames, mask=np.ones(frames.shape[1:])).sigma,
    ],
)
@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e25])
def test_values_of_any_magnitude(measured, scale):
    frames = series("affine", 20, 3, shape=(128, 130), count=3, turn=0.01)[0]
    np.testing.assert_allclose(measured(scale * frames), measured(frames), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model", ["rigid", "affine"])
def test_what_is_masked_takes_no_part(model):
    """A bright thing that stands still in front of a scene that turns, whatever it looks like."""
    frames, truth = series(model, 20, 3, shape=(150, 160), turn=0.2)
    mask = np.ones((150, 160), bool)
    mask[50:90, 60:120] = False
    found = []
    for still in (30.0, np.nan, 50 * np.random.default_rng(0).normal(size=(150, 160))):
        stack = np.where(mask, frames, still)
        found.append(xc.estimate_motion(stack, model, mask=mask))
        assert found[-1].flags == ((),) * len(frames)
        np.testing.assert_array_equal(found[-1].matrices, found[0].matrices)
    assert corner_errors(found[0].matrices, truth, mask.shape).max() < 0.06
    held = xc.estimate_motion(np.ma.array(frames, mask=np.broadcast_to(~mask, frames.shape)), model, "template")
    assert corner_errors(held.matrices, truth, mask.shape).max() < 0.06
    assert "mask: given" in held.notes[0]


def test_frames_that_cannot_be_trusted_are_interpolated():
    frames, _ = series("rigid", 20, 4, shape=(96, 96), turn=0.2)
    frames = np.concatenate([frames[:2], np.zeros((1, 96, 96)), frames[2:3]])
    result = xc.estimate_motion(frames, "rigid")
    applied = result.applied()
    np.testing.assert_allclose(applied[[0, 1, 3]], result.matrices[[0, 1, 3]], atol=1e-12)
    between = type(result)(**{**vars(result), "matrices": applied})
    assert between.angle[2] == pytest.approx((result.angle[1] + result.angle[3]) / 2, abs=1e-6)
    np.testing.assert_allclose(between.shifts[2], (result.shifts[1] + result.shifts[3]) / 2, atol=1e-9)
    others = [result.applied(policy)[2] for policy in ("drop", "leave")]
    np.testing.assert_array_equal(others, [np.full((3, 3), np.nan), np.eye(3)])
    # One that is only less sure than asked stands where the others are farther off than its own error, as in a jump.
    for flags, sigma, stands in (((), 0.6, True), (("low-score",), 0.6, False), ((), 99, False), ((), np.inf, False)):
        changes = {"flags": ((), (*flags, "uncertain"), ("flat",), ()), "sigma": np.full((4, 2), float(sigma))}
        doubtful = type(result)(**{**vars(result), **changes}).applied()[1]
        assert np.allclose(doubtful, result.matrices[1], atol=1e-9) == stands


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_warping_is_what_scipy_does_with_type_and_border(dtype, order):
    rng = np.random.default_rng(5)
    frame = (rng.random((1, 33, 41)) * 200).astype(dtype)
    matrix = about(turned(0.3, 1.1), (33, 41))
    out = warp_frames(frame, matrix[None], order, "constant", 7)
    assert out.dtype == frame.dtype
    exact = ndimage.affine_transform(frame[0].astype(float), matrix[:2, :2], matrix[:2, 2], order=order, mode="mirror")
    y, x = np.mgrid[:33, :41]
    places = np.einsum("ij,jyx->iyx", matrix[:2, :2], np.stack([y, x])) + matrix[:2, 2][:, None, None]
    inside = ((places >= 0) & (places <= np.array([32, 40])[:, None, None])).all(axis=0)
    assert inside.mean() > 0.4
    assert (out[0][~inside] == 7).all()
    if frame.dtype.kind == "f":
        np.testing.assert_allclose(out[0][inside], exact[inside], atol=2e-3)
    elif order != 0:
        limits = np.iinfo(dtype)
        np.testing.assert_allclose(out[0][inside], np.clip(exact[inside], limits.min, limits.max), atol=0.51)
    np.testing.assert_array_equal(warp_frames(frame, np.eye(3)[None], order), frame)


def test_the_answer_does_not_depend_on_threads(monkeypatch):
    frames, _ = series("rigid", 2, 8, shape=(64, 72))
    one = xc.estimate_motion(frames, "rigid")
    monkeypatch.setattr("xcorr_app.registration.stack.passes._PIXELS_PER_CHUNK", 1)
    np.testing.assert_array_equal(xc.estimate_motion(frames, "rigid").matrices, one.matrices)
    monkeypatch.setattr("xcorr_app.registration.stack.passes.worker_count", lambda: 1)
    np.testing.assert_array_equal(xc.estimate_motion(frames, "rigid").matrices, one.matrices)
