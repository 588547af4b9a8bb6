"""Lines and pixels of a camera, colour mosaics, rows swept backwards, borders without values."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, rms, walk
from xcorr_app import estimate_shifts
from xcorr_app.registration.weights.alternating import has_mosaic
from xcorr_app.registration.weights.lines import stuck_lines

COUNT = 14
DRIFT = walk(6, COUNT, 1.0)


def camera(shape=(144, 137)):
    return np.clip(np.rint(300 + 30 * drifting(DRIFT, shape, width=0.06, noisy=0.5)), 0, None).astype(np.uint16)


def stars(seed=1, shape=(144, 137), faintest=60):
    rng = np.random.default_rng(seed)
    places, height = rng.uniform(10, 130, (9, 2)), rng.uniform(faintest, 300, 9)
    middles = places + DRIFT[:, None]
    y, x = (np.exp(-((np.arange(size) - middles[..., i, None]) ** 2) / 4) for i, size in enumerate(shape))
    sky = 50 + np.einsum("n,tny,tnx->tyx", height, y, x)
    return rng.poisson(sky).astype(float) + rng.normal(0, 4, sky.shape)


@pytest.mark.parametrize("begin", [1, 64, 70, 80])
def test_stuck_lines_do_not_pin_the_shifts(xp, begin):
    """Parts of 18 pixels are looked at: what is less than half of one belongs to the next."""
    stack = camera()
    stack[:, :, 40], stack[:, :, 90:92], stack[:, begin:, 20], stack[:, 55] = 0, 65535, 3000, 9000
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.08)
    assert stuck_lines(xp.asarray(stack))[begin:, 20].all()
    assert any("row 55 and columns 20, 40, 90, 91" in note for note in result.notes)


@pytest.mark.parametrize("line", [0, 1, 2, -3, -2, -1])
def test_stuck_lines_at_a_rim_are_found(line):
    for images in (camera(), camera().transpose(0, 2, 1)):
        images[:, line] = 5000
        assert np.flatnonzero(stuck_lines(images).mean(axis=1) > 0.5).tolist() == [line % images.shape[1]]


@pytest.mark.parametrize("other", [5, 9])
def test_half_a_stuck_line_does_not_pin_a_pair(xp, other):
    stack = camera()[[0, other]]
    stack[:, 70:, 41] = 900
    result = estimate_shifts(xp.asarray(stack), max_shift=20)
    np.testing.assert_allclose(result.shifts[1], -DRIFT[other], atol=0.1)


def test_lines_of_a_sound_camera_are_not_stuck(xp):
    assert not stuck_lines(xp.asarray(camera())).any()
    moving = camera()
    moving[np.arange(COUNT), :, 30 + np.arange(COUNT)] += 5000
    assert not stuck_lines(xp.asarray(moving)).any()


@pytest.mark.parametrize("seed", [1, 2])
def test_cosmic_rays_do_not_outvote_faint_stars(xp, seed):
    stack, rng = stars(seed), np.random.default_rng(seed + 10)
    for frame in stack:
        frame[tuple(rng.integers(0, 137, (2, 9)))] += 300 + rng.exponential(3000, 9)
    result = estimate_shifts(xp.asarray(stack), "first", 24)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.35)
    assert any("cosmic rays" in note for note in result.notes)


def test_thin_lines_of_a_scene_are_not_stuck():
    rng = np.random.default_rng(11)
    place = 0.1 * np.cumsum(rng.normal(size=COUNT))
    stack = camera().astype(float)
    y = np.arange(144)[:, None]
    for frame, moved in zip(stack, place, strict=True):
        for row in (30, 57, 81):
            frame += 600 * np.exp(-((y - row - moved) ** 2) / (2 * 0.4**2))
    assert not stuck_lines(stack).any()


DRIFT_OF_COLOURS = np.stack([np.linspace(0, 5.3, 9), np.linspace(0, -3.7, 9)], axis=1)


def raw(gains, shape=(127, 141), seed=4):
    clean = 60 + 15 * drifting(DRIFT_OF_COLOURS, shape, width=0.06, seed=seed)
    seen = clean.copy()
    for k, gain in enumerate(gains):
        seen[:, k // 2 :: 2, k % 2 :: 2] *= gain
    return np.rint(512 + seen + noise(seen, 1.0, seed)).astype(np.uint16)


@pytest.mark.parametrize("gains", [(0.5, 1, 1, 0.7), (1, 0.6, 0.45, 1)])
def test_raw_frames_of_a_colour_camera(xp, gains):
    stack = raw(gains)
    plain = estimate_shifts(xp.asarray(stack), max_shift=16, contrast="none")
    assert not plain.trusted[1:].any()
    found = estimate_shifts(xp.asarray(stack), max_shift=16)
    assert found.trusted.all()
    np.testing.assert_allclose(found.shifts, -DRIFT_OF_COLOURS, atol=0.03)
    assert any("colour camera" in note for note in found.notes)


def test_scenes_stripes_and_noise_are_no_mosaic(rng):
    assert not has_mosaic(drifting(DRIFT_OF_COLOURS[:1], (99, 101), width=0.06)[0])
    assert not has_mosaic(rng.normal(size=(99, 101)))
    assert not has_mosaic(rng.normal(size=(99, 101)) + np.arange(99)[:, None] % 2)
    assert has_mosaic(raw((0.5, 1, 1, 0.7))[0].astype(float))


SHAPE = (151, 162)


def swept(offset, seed=1, deviation=0.3, count=12):
    drift = walk(seed, count, 0.8)
    there, back = (drifting(drift + np.array([0, aside]), SHAPE, width=0.06, seed=seed) for aside in (0, offset))
    there[:, 1::2] = back[:, 1::2]
    return 100 + 20 * (there + noise(there, deviation)), drift


@pytest.mark.share(2)
@pytest.mark.parametrize("offset", [2.0, -1.4])
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_that_are_swept_backwards_do_not_bend_the_shifts(offset, seed):
    stack, drift = swept(offset, seed)
    result = estimate_shifts(stack, "first", 20)
    assert any(note.startswith("Every other row") for note in result.notes)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.12)
    assert result.trusted.all()


@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_rows_that_lie_where_they_should_are_left_alone(deviation):
    stack, _ = swept(0.0, deviation=deviation)
    assert not any("other row" in note for note in estimate_shifts(stack, "first", 20).notes)


@pytest.mark.parametrize("seed", [1, 2])
def test_interlaced_rows_do_not_bend_the_shifts(xp, seed):
    """Odd rows are taken half a frame later, while the camera shakes."""
    drift = np.cumsum(np.random.default_rng(seed).normal(0, 1.0, (13, 2)), axis=0)
    later = (drift[:-1] + drift[1:]) / 2
    stack, odd = (drifting(path, SHAPE, width=0.06, seed=seed) for path in (drift[:-1], later))
    stack[:, 1::2] = odd[:, 1::2]
    result = estimate_shifts(xp.asarray(stack + noise(stack, 0.2)), "first", 20)
    middle = (drift[:-1] + later) / 2
    np.testing.assert_allclose(result.shifts, middle[0] - middle, atol=0.06)
    assert any("interlaced" in note for note in result.notes)


COUNT_BEFORE, SHAPE_BEFORE = 12, (131, 143)
DRIFT_BEFORE = walk(11, COUNT_BEFORE, 0.8)
MOVED = np.random.default_rng(12).integers(-8, 9, (COUNT_BEFORE, 2))


def moved_before(fill, deviation=0.1, width=0.02, seed=4):
    """Frames with borders as another program's whole-pixel shifts leave them, each its own."""
    stack = (500 + 100 * drifting(DRIFT_BEFORE, SHAPE_BEFORE, width=width, seed=seed, noisy=deviation)).astype(
        np.float32
    )
    for frame, (dy, dx) in zip(stack, MOVED, strict=True):
        frame[: max(dy, 0)] = frame[SHAPE_BEFORE[0] + min(dy, 0) :] = fill
        frame[:, : max(dx, 0)] = frame[:, SHAPE_BEFORE[1] + min(dx, 0) :] = fill
    return stack


@pytest.mark.parametrize(("deviation", "limit"), [(0.02, 0.01), (0.3, 0.1)])
def test_borders_without_values_pull_no_shift(xp, deviation, limit):
    result = estimate_shifts(xp.asarray(moved_before(np.nan, deviation)), max_shift=16)
    assert rms(result.shifts + DRIFT_BEFORE) < limit
    assert result.trusted.all()
    assert not result.non_finite.any()
    assert any(note.startswith("Measured within rows") for note in result.notes)


@pytest.mark.parametrize("seed", [4, 5])
def test_borders_of_one_value_pull_no_shift(seed):
    result = estimate_shifts(moved_before(0, 0.02, seed=seed), max_shift=16)
    assert rms(result.shifts + DRIFT_BEFORE) < 0.01
    assert any("borders of a single value" in note for note in result.notes)
