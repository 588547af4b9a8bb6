"""Light that changes from place to place over a series bends no shift, and other changes are not taken for it."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts

COUNT, SHAPE = 7, (149, 163)
PHASE = np.arange(COUNT) / (COUNT - 1)


def light(strength, phase=PHASE, shape=SHAPE):
    """Factor that falls off across the frame, in a direction that turns."""
    y, x = (np.linspace(-1, 1, size) for size in shape)
    angle = 3 * phase[:, None, None]
    return 1 + strength * (np.sin(angle) * y[:, None] + np.cos(angle) * x)


def drift_of(phase):
    return np.stack([9 * np.sin(3.1 * phase), 6 * (np.cos(4 * phase) - 1)], axis=1)


DRIFT = drift_of(PHASE)


def turning(count, shape, strength, deviation, seed):
    """So many frames of a shape under light that turns, and their drift."""
    phase = np.arange(count) / (count - 1)
    clean = light(strength, phase, shape) * (60 + 20 * drifting(drift_of(phase), shape, width=0.04, seed=seed))
    return 100 + clean + noise(clean, 20 * deviation, seed + 1), drift_of(phase)


def series(strength, deviation, seed=1):
    return turning(COUNT, SHAPE, strength, deviation, seed)[0]


def is_lit(result):
    return any(text.startswith("The light changes") for text in result.notes)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("strength", "deviation", "limit"), [(0.2, 0.02, 0.02), (0.45, 0.02, 0.025), (0.6, 0.05, 0.03)]
)
@pytest.mark.parametrize("seed", [1, 11, 21])
def test_light_is_seen_on_small_frames(strength, deviation, limit, seed):
    """Whose few tiles it changes within, and bends shifts by more: up to 0.6 px where it is not seen."""
    stack, drift = turning(15, (103, 118), strength, deviation, seed)
    result = estimate_shifts(stack, "first", 24)
    assert is_lit(result)
    assert np.sqrt(np.mean((result.shifts + drift) ** 2)) < limit
    assert result.trusted.all()


@pytest.mark.parametrize(("deviation", "limit"), [(0.02, 0.016), (0.5, 0.05), (1.5, 0.13)])
def test_turning_light_does_not_bend_shifts(xp, deviation, limit):
    stack = series(0.45, deviation).astype(np.float32)
    result = estimate_shifts(xp.asarray(stack), "first", 16)
    assert is_lit(result)
    assert np.sqrt(np.mean((result.shifts + DRIFT) ** 2)) < limit
    assert result.trusted.all()


@pytest.mark.share(3)
@pytest.mark.parametrize("reference", ["last", "template", 3])
def test_whatever_the_reference(reference):
    result = estimate_shifts(series(0.45, 0.1), reference, 16)
    assert is_lit(result)
    assert np.std(result.shifts + DRIFT, axis=0).max() < 0.03


@pytest.mark.parametrize("deviation", [0.02, 1.0])
def test_even_light_is_left_alone(deviation):
    stack = series(0.0, deviation) * (1 + 0.2 * np.sin(5 * PHASE))[:, None, None]
    assert estimate_shifts(stack, "first", 16).notes == ()


def plain(rng, most=10.0):
    """A few small frames of one scene, evenly lit, with noise of .02 to 2 of its deviation; and their drift."""
    count, shape = rng.integers(4, 7), rng.integers(64, 110, 2)
    drift = np.clip(np.cumsum(rng.normal(scale=2.0, size=(count, 2)), axis=0), -most, most)
    return drifting(
        drift,
        shape,
        width=rng.uniform(0.03, 0.08),
        seed=rng.integers(1000),
        noisy=np.exp(rng.uniform(np.log(0.02), np.log(2))),
        noise_seed=rng.integers(1000),
    ), drift


@pytest.mark.share(5)
@pytest.mark.parametrize("reference", ["first", "previous", 2, "mean", "template"])
def test_a_plain_series_is_not_lit(rng, reference):
    for _ in range(5):
        stack, _ = plain(rng)
        assert not is_lit(estimate_shifts(stack.astype(np.float32), reference, 24))


@pytest.mark.share(2)
@pytest.mark.parametrize("reference", ["template", "previous"])
def test_light_that_bends_steps_is_left_to_local_contrast(reference):
    """What it leaves at the rims of frames bent the last of them by 0.2 px."""
    phase = np.arange(6) / 5
    drift = drift_of(phase)
    clean = light(0.45, phase, (131, 143)) * (60 + 20 * drifting(drift, (131, 143), width=0.04))
    result = estimate_shifts((100 + clean + noise(clean, 4.0)).astype(np.float32), reference, 20)
    error = result.shifts + drift
    assert abs(error - np.median(error, axis=0)).max() < 0.07


def test_flat_frames_stay_flat():
    stack = series(0.45, 0.1)
    stack[4] = 17
    result = estimate_shifts(stack, "first", 16)
    assert is_lit(result)
    assert result.flags[4] == ("flat",)
    assert np.isnan(result.shifts[4]).all()
