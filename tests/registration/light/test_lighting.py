"""Light that changes from place to place over a series bends no shift, and other changes are not taken for it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.light.even_light import EvenlyLitFrames
from xcorr_app.registration.light.light_field import TERMS, ReferenceLight, fields
from xcorr_app.registration.light.lit_pairs import LitImage
from xcorr_app.registration.lighting import changes, is_nearer
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.preparation import prepare

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


def test_light_is_taken_off_what_was_refined_without_it():
    """Less weight on pixels that differ makes standard errors small, and shifts no better."""
    stack, drift = turning(45, (103, 118), 0.2, 0.02, 11)
    result = estimate_shifts(stack, "first", 24)
    assert is_lit(result)
    assert np.sqrt(np.mean((result.shifts + drift) ** 2)) < 0.02


@pytest.mark.parametrize(("deviation", "limit"), [(0.02, 0.016), (0.5, 0.05), (1.5, 0.13)])
def test_turning_light_does_not_bend_shifts(xp, deviation, limit):
    stack = series(0.45, deviation).astype(np.float32)
    result = estimate_shifts(xp.asarray(stack), "first", 16)
    assert is_lit(result)
    assert np.sqrt(np.mean((result.shifts + DRIFT) ** 2)) < limit
    assert result.trusted.all()


def test_without_it_shifts_are_bent(monkeypatch):
    monkeypatch.setattr("xcorr_app.registration.second_looks.evenly_lit", lambda *_: None)
    monkeypatch.setattr("xcorr_app.registration.stack_measurement.choose_contrast", lambda *_: "none")
    result = estimate_shifts(series(0.45, 0.02), "first", 16)
    assert np.sqrt(np.mean((result.shifts + DRIFT) ** 2)) > 0.03


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
    stack = drifting(drift, shape, width=rng.uniform(0.03, 0.08), seed=rng.integers(1000))
    return stack + noise(stack, np.exp(rng.uniform(np.log(0.02), np.log(2))), rng.integers(1000)), drift


def test_noise_is_taken_for_light_by_chance_alone(rng):
    """What a reference shows in a tile is wrong against all frames alike, and a few tiles bend any fit."""
    series = [plain(rng) for _ in range(100)]
    seen = [changes(ReferenceLight(stack[0]).compared(stack[1:], drift[0] - drift[1:])) for stack, drift in series]
    assert sum(seen) <= 2


@pytest.mark.share(5)
@pytest.mark.parametrize("reference", ["first", "previous", 2, "mean", "template"])
def test_a_plain_series_is_not_lit(rng, reference):
    for _ in range(5):
        stack, _ = plain(rng)
        assert not is_lit(estimate_shifts(stack.astype(np.float32), reference, 24))


@pytest.mark.parametrize("reference", ["previous", 2])
def test_a_few_noisy_frames_are_measured_as_they_are(reference):
    """The lowest tiles of the one that others are compared with show less than its noise has them seem to."""
    stack = drifting(np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)]))
    stack = 200 * (stack - stack.min()) / np.ptp(stack)
    stack = (stack.round() + noise(stack, 20.0)).clip(0, 255).astype(np.uint8)
    found, plainly = (estimate_shifts(stack, reference, 8, **options) for options in ({}, {"contrast": "none"}))
    assert found.notes == plainly.notes
    np.testing.assert_allclose(found.shifts, plainly.shifts, atol=1e-6)


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


def test_a_foreground_is_no_light():
    stack = series(0.0, 0.1)
    stack[:, 40:110, 50:130] = 160 + 20 * drifting(-DRIFT, (70, 80), width=0.04, seed=8)
    assert not is_lit(estimate_shifts(stack, "first", 16))


def test_not_where_it_is_not_asked():
    stack = series(0.45, 0.1)
    for options in ({"contrast": "none"}, {"normalization": "none"}, {"prefilter": "gaussian:1"}):
        assert not is_lit(estimate_shifts(stack, "first", 16, **options))


def test_the_light_found_is_that_of_the_series(xp):
    """Over another frame's, at the same place of the scene."""
    stack = series(0.3, 0.01)
    found = ReferenceLight(xp.asarray(stack[0])).compared(xp.asarray(stack[1:]), -DRIFT[1:])
    factor = light(0.3)
    gain = np.exp(to_host(fields(found.gain, SHAPE, -DRIFT[1:], stack)))
    for t in range(1, COUNT):
        dy, dx = np.rint(-DRIFT[t]).astype(int)
        there = np.roll(factor[0], (-dy, -dx), (0, 1))
        ratio = (gain[t - 1] / (factor[t] / there))[25:-25, 25:-25]
        assert ratio.mean() == pytest.approx(1, abs=0.02)
        assert ratio.std() < 0.025


def test_fields_are_the_polynomials(rng):
    coefficients, shifts = rng.normal(size=(2, len(TERMS))), np.array([(0, 0), (2.5, -1)])
    found = fields(coefficients, (21, 33), shifts, np.empty(0))
    for t, (dy, dx) in enumerate(shifts):
        y, x = 2 * (np.arange(21) + dy + 0.5) / 21 - 1, 2 * (np.arange(33) + dx + 0.5) / 33 - 1
        square = np.zeros((4, 4))
        for c, (i, j) in zip(coefficients[t], TERMS, strict=True):
            square[i, j] = c
        np.testing.assert_allclose(found[t], np.polynomial.legendre.leggrid2d(y, x, square), atol=1e-12)


def test_flat_frames_stay_flat():
    stack = series(0.45, 0.1)
    stack[4] = 17
    result = estimate_shifts(stack, "first", 16)
    assert is_lit(result)
    assert result.flags[4] == ("flat",)
    assert np.isnan(result.shifts[4]).all()


def lit_pair(rng, xp=np, roi=None):
    """Frames of known light, evenly lit, and the first of them as the reference."""
    whole = np.array([(0, 0), (4, -3), (-2, 5)])
    scene = rng.normal(size=(SHAPE[0] + 20, SHAPE[1] + 20))
    gain = 0.3 * rng.normal(size=(3, len(TERMS)))
    gain[:, 0] = 0
    views = np.stack([scene[10 + dy : 10 + dy + SHAPE[0], 10 + dx : 10 + dx + SHAPE[1]] for dy, dx in whole])
    factor = np.exp(fields(gain, SHAPE, whole.astype(float), views))
    source, nothing = ArrayFrames(xp.asarray(factor * views)), np.zeros_like(gain)
    frames = EvenlyLitFrames(source, gain, nothing, whole.astype(float), 0.7)
    settings = Settings(roi=roi)
    prepared = prepare(frames.read(0, 3), settings)
    return LitImage(prepared.frames[0], 0, frames, settings), prepared, whole


@pytest.mark.parametrize("roi", [None, (slice(20, 120), slice(10, 150))])
def test_both_images_of_a_pair_are_lit_alike(rng, xp, roi):
    reference, prepared, whole = lit_pair(rng, xp, roi)
    images, frames = (to_host(a) for a in (reference.images(0, prepared), reference.weighted(0, prepared).frames))
    assert np.array_equal(to_host(reference.images(1, replace(prepared, frames=prepared.frames[1:])))[0], images[1])
    for image, frame, (dy, dx) in zip(images, frames, whole, strict=True):
        moved = np.roll(frame, (dy, dx), axis=(0, 1))
        inside = (slice(8, -8), slice(8, -8))
        np.testing.assert_allclose(moved[inside], image[inside], atol=1e-4)


def test_a_pair_is_weighted_by_the_light_on_both(rng):
    reference, prepared, _ = lit_pair(rng)
    lit = reference.frames
    gain = lit.gain - lit.gain.mean(axis=0)
    a, b = np.exp(fields(gain[1::-1], SHAPE, np.zeros((2, 2)), prepared.frames))
    scene = lit.source.read(0, 1).frames[0] / b
    weight = (reference.images(0, prepared)[1] / scene) ** 2
    middle = (slice(20, -20), slice(20, -20))
    np.testing.assert_allclose(weight[middle], (2 / (1 / a**2 + 1 / b**2))[middle], rtol=1e-3)


def test_one_frame_that_lies_apart_does_not_move_the_others():
    """How far shifts lie from where light was found with them is counted from the middle one, not from their mean."""
    lit = SimpleNamespace(shifts=np.zeros((5, 2)))
    before, after = np.zeros((5, 2)), np.array([0.17, -0.17, 0, 0.17, -0.17])[:, None] * np.ones(2)
    before[3] = 0.4  # 0.032 in the mean square from the middle, 0.0256 from the mean; the others 0.023
    assert is_nearer(lit, SimpleNamespace(shifts=before), SimpleNamespace(shifts=after))
    after *= 1.1  # 0.028: nearer than the one that lies apart, though not than that about the mean
    assert is_nearer(lit, SimpleNamespace(shifts=before), SimpleNamespace(shifts=after))
    after *= 1.1
    assert not is_nearer(lit, SimpleNamespace(shifts=before), SimpleNamespace(shifts=after))
