"""A fixed pattern does not pin the shifts, and a scene without one is left alone."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.registration.scenes import drifting, noise, particles
from xcorr_app import estimate_shifts
from xcorr_app.registration.pattern.static_pattern import PatternFit

COUNT, SHAPE = 9, (149, 163)
PHASE = np.arange(COUNT) / (COUNT - 1)
DRIFT = np.stack([13 * np.sin(3.1 * PHASE), 8 * (np.cos(4 * PHASE) - 1)], axis=1)


def pattern(kind, seed=3, shape=SHAPE):
    rng = np.random.default_rng(seed)
    parts = {
        "columns": np.broadcast_to(rng.normal(size=shape[1]), shape),
        "rows": np.broadcast_to(rng.normal(size=shape[0])[:, None], shape),
        "pixels": rng.normal(size=shape),
        "dust": gaussian_filter((rng.random(shape) < 0.002).astype(float), 2.5),
        "few specks": gaussian_filter((rng.random(shape) < 0.0005).astype(float), 3.0),
    }
    return (parts[kind] - parts[kind].mean()) / parts[kind].std()


def scene(deviation, drift=DRIFT, seed=1):
    return drifting(drift, SHAPE, width=0.05, seed=seed, noisy=deviation, noise_seed=seed + 1)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("kind", "reference"),
    [(kind, "first") for kind in ("columns", "rows", "pixels", "dust", "few specks")]
    + [("columns", reference) for reference in ("last", "template", 3)],
)
@pytest.mark.parametrize(("deviation", "limit"), [(0.05, 0.02), (0.7, 0.06)])
def test_a_fixed_pattern_does_not_pin_the_shifts(xp, kind, reference, deviation, limit):
    stack = (500 + 40 * (scene(deviation) + pattern(kind))).astype(np.float32)
    result = estimate_shifts(xp.asarray(stack), reference, 20)
    error = result.shifts + DRIFT
    assert np.sqrt(np.mean((error - error[{"last": -1, 3: 3}.get(reference, 0)]) ** 2)) < limit
    assert result.trusted.all()
    assert any(note.startswith("A fixed pattern") for note in result.notes)


@pytest.mark.parametrize("drift", [DRIFT, 0 * DRIFT, 0.1 * DRIFT])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_a_scene_without_a_pattern_is_left_alone(drift, deviation, monkeypatch):
    stack = 500 + 40 * scene(deviation, drift)
    result = estimate_shifts(stack, "first", 20)
    assert result.notes == ()
    monkeypatch.setattr("xcorr_app.registration.nuisances.without_pattern", lambda *_: PatternFit())
    np.testing.assert_array_equal(result.shifts, estimate_shifts(stack, "first", 20).shifts)


@pytest.mark.parametrize("seed", [3, 4])
def test_what_moves_over_a_still_scene_is_not_the_scene(seed):
    still = drifting(0 * DRIFT, SHAPE, width=0.06, seed=seed)
    stack = 10 * particles(DRIFT, SHAPE, seed) + still + noise(still, 0.1)
    result = estimate_shifts(stack, "first", 20)
    assert not any(note.startswith("A fixed pattern") for note in result.notes)
    assert np.abs(result.shifts).max() < 0.5


def test_a_scene_that_grows_is_no_pattern():
    """What was there before and what comes after are two layers, neither of which stands still."""
    drift = 0.4 * DRIFT
    earlier, later = (drifting(drift, SHAPE, width=0.06, seed=seed) ** 2 for seed in (5, 6))
    weight = PHASE[:, None, None]
    clean = (1 - weight) * earlier + weight * later
    result = estimate_shifts(500 + 40 * (clean + noise(clean, 0.1)), "first", 20)
    plain = estimate_shifts(500 + 40 * (clean + noise(clean, 0.1)), "first", 20, contrast="none")
    assert not any("pattern" in note for note in result.notes)
    usable = plain.trusted
    assert usable.sum() > COUNT // 2
    np.testing.assert_allclose(result.shifts[usable], -drift[usable], atol=0.25)


@pytest.mark.share(3)
@pytest.mark.parametrize(("width", "uneven"), [(0.1, 0.5), (0.15, 0.5), (0.15, 0.2)])
def test_light_that_turns_is_no_pattern(width, uneven):
    """A gain that differs from frame to frame explains what two layers do not: shifts are not fitted to it."""
    phase = np.linspace(0, 1, 16)
    drift = phase[:, None] * [3.0, 2.0]
    y, x = (np.linspace(-0.5, 0.5, size) for size in SHAPE)
    angle = 3 * phase[:, None, None]
    light = 0.75 + uneven * (np.cos(angle) * x + np.sin(angle) * y[:, None])
    clean = 120 + 60 * np.tanh(2 * drifting(drift, SHAPE, width=width))
    result = estimate_shifts(light * clean + noise(clean, 2), "first", 20)
    assert not any("pattern" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_scene_after_a_cut_is_no_pattern(seed):
    """Of two scenes, the second where chance puts it, two layers can be made that explain all frames."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.8, (18, 2)), axis=0)
    drift -= drift[0]
    stack = drifting(drift, SHAPE, width=0.05, seed=seed)
    stack[12:] = drifting(drift, SHAPE, width=0.05, seed=seed + 50)[12:]
    result = estimate_shifts(stack + noise(stack, 0.7, seed), "first", 30)
    assert not result.trusted[12:].any()
    assert result.trusted[:12].all()
    np.testing.assert_allclose(result.shifts[:12], -drift[:12], atol=0.15)


@pytest.mark.share(6)
@pytest.mark.parametrize("length", [0.05, 0.1, 0.35])
@pytest.mark.parametrize("reference", ["first", 3, "template"])
def test_a_scene_that_hardly_moves_over_a_pattern(xp, length, reference):
    """By 0.7 to 5 pixels: the peak shows a compromise of both layers, the series tells them apart."""
    drift = length * DRIFT
    stack = (500 + 40 * (scene(0.05, drift) + pattern("columns") + pattern("dust"))).astype(np.float32)
    result = estimate_shifts(xp.asarray(stack), reference, 20)
    held = 3 if reference == 3 else 0
    error = result.shifts + drift - drift[held]
    assert any(note.startswith("A fixed pattern") for note in result.notes)
    assert np.abs(error).max() < 0.1
    assert result.trusted.all()
    error, sigma = (np.delete(each, held, axis=0) for each in (error, result.sigma))
    # Of less than a pixel little tells the length, which standard errors know. All frames share it, so that this is one
    # draw: 1.35 on average of eight scenes, where 2.2 is the largest.
    assert np.sqrt(np.mean((error / sigma) ** 2)) < 2.5


@pytest.mark.parametrize(
    ("seed", "length", "deviation"),
    [
        (4, 0.35, 1.5),
        (5, 0.35, 1.5),
        (6, 0.35, 1.5),
        (50, 0.35, 1.5),
        (52, 0.35, 1.5),
        (50, 0.07, 0.5),
        (51, 0.07, 0.5),
    ],
)
def test_a_scene_that_noise_and_a_pattern_hide_is_found_or_doubted(seed, length, deviation):
    """Frames were held at zero by a pattern that is as strong as the noise, 4 to 5 px off, and trusted.

    Or by dust beside columns, once these were levelled.
    """
    drift = length * DRIFT
    still = 1.2 * (pattern("columns", seed + 2) + pattern("dust", seed + 2))
    result = estimate_shifts(500 + 40 * (scene(deviation, drift, 10 * seed) + still), "first", 20)
    assert not result.trusted[np.abs(result.shifts + drift).max(axis=1) > 0.5].any()


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [1, 2])
def test_spots_dimmer_than_the_offsets_of_a_camera_are_the_scene(seed):
    """Pixels and columns with offsets of their own fill the frame, but no optics drew them."""
    rng, count, shape = np.random.default_rng(seed), 24, (150, 163)
    drift = np.stack([np.linspace(0, 13, count), np.linspace(0, -9, count)], axis=1) + rng.normal(0, 0.3, (count, 2))
    drift -= drift[0]
    y, x = np.arange(shape[0])[:, None], np.arange(shape[1])[:, None]
    places, heights = rng.uniform(-20, 180, (2, 130)), rng.uniform(2, 9, 130)
    stack = np.empty((count, *shape))
    for t, (dy, dx) in enumerate(drift):
        rows, columns = (np.exp(-((k - p - d) ** 2) / 6) for k, p, d in zip((y, x), places, (dy, dx), strict=True))
        stack[t] = 100 + (rows * heights) @ columns.T
    stack += rng.normal(0, 3, shape) + rng.normal(0, 2, shape[1]) + rng.normal(0, 1.5, stack.shape)
    result = estimate_shifts(np.rint(stack).astype(np.uint16), "first", 24)
    assert any(note.startswith("A fixed pattern") for note in result.notes)
    assert ((np.abs(result.shifts + drift).max(axis=1) < 0.3) | ~result.trusted).all()
    assert np.sqrt(np.mean((result.shifts + drift) ** 2)) < 0.2


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_scene_that_offsets_of_pixels_outshine_is_found_by_what_changes(seed):
    steps = np.arange(32)
    drift = np.stack([2 * np.sin(steps / 4), 1.5 * np.sin(steps / 6 + 1)], axis=1)
    drift -= drift[0]
    scene = drifting(drift, (114, 140), width=0.06, seed=seed)
    offsets = 4 * np.random.default_rng(seed).normal(size=(114, 140))
    stack = (30 * (scene + offsets + noise(scene, 2.0, seed)) + 2000).astype(np.float32)
    result = estimate_shifts(stack, "first", 16)
    assert any(note.startswith("A fixed pattern") for note in result.notes)
    assert result.trusted.all()
    assert np.sqrt(np.mean((result.shifts + drift) ** 2)) < 0.15


def test_a_scene_that_a_glow_outshines_is_doubted_where_it_cannot_be_found():
    rng, count, shape = np.random.default_rng(5), 30, (130, 170)
    drift = np.linspace(0, 1, count)[:, None] * np.array([3.0, 3.0]) + rng.normal(0, 0.2, (count, 2))
    drift -= drift[0]
    scene = drifting(drift, shape, width=0.03, seed=5)
    y, x = np.mgrid[: shape[0], : shape[1]]
    still = (rng.random(shape) < 0.01) * rng.exponential(8.0, shape) + 60 * np.exp(-(y + x) / 15)
    stack = (30 * (scene + still + noise(scene, 2.0, 6)) + 2000).astype(np.float32)
    result = estimate_shifts(stack, "first", 30)
    assert not ((np.hypot(*(result.shifts + drift).T) > 0.5) & result.trusted).any()


@pytest.mark.parametrize(
    ("over", "deviation"),
    [(pattern("columns"), 0.1), (0.2 * drifting(np.arange(20)[:, None] * (0.2, -0.3), SHAPE, seed=9), 0.5)],
    ids=["stands still, too", "moves"],
)
def test_a_scene_that_stands_still_is_no_pattern(over, deviation):
    """What hardly moves cannot be told from what stands still, and what passes over it is no motion of it."""
    still = drifting(np.zeros((20, 2)), SHAPE, width=0.08)
    result = estimate_shifts(still + over + noise(still, deviation), "first", 20)
    assert not any("pattern" in note for note in result.notes)
    assert result.trusted.all()
    assert np.abs(result.shifts).max() < 0.1


@pytest.mark.parametrize("deviation", [1.0, 0.3])
def test_frames_that_repeat_share_their_noise_and_are_no_pattern(deviation):
    """A camera that sends a frame twice, a movie that is looped: the same shifts as once, and no note."""
    once = scene(deviation, np.stack([np.arange(12) % 7, -np.arange(12) % 5], axis=1).astype(float))
    found, twice = estimate_shifts(once, max_shift=12), estimate_shifts(np.concatenate([once, once]), max_shift=12)
    assert twice.notes == found.notes == ()
    np.testing.assert_allclose(twice.shifts, np.concatenate([found.shifts, found.shifts]), atol=5e-4)
