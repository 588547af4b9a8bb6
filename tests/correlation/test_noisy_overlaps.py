"""Noise does not move the peak of a noisy plane towards overlaps of much variance."""

import numpy as np
import pytest

from tests.registration.scenes import noise
from xcorr_app import ShiftWindow, estimate_shifts
from xcorr_app.correlation import normalize
from xcorr_app.correlation.normalize import ZNCC
from xcorr_app.gpu.runtime.arrays import to_host

SHAPE = (90, 101)


def spots(displacement, rng, shape=SHAPE, count=12):
    """Few bright spots: what enters at an edge differs much from row to row."""
    y, x = (np.arange(size)[:, None] for size in shape)
    places, high = rng.uniform(-10, 10 + np.array(shape), (count, 2)) + displacement, rng.uniform(0.5, 2, count)
    rows, columns = (np.exp(-((axis - place) ** 2) / 18) for axis, place in ((y, places[:, 0]), (x, places[:, 1])))
    image = (rows * high) @ columns.T
    return image - image.mean()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_scores_of_noisy_images_are_as_those_of_clean_ones_but_for_a_factor(xp, rng, share):
    window = ShiftWindow.symmetric(9, 8)
    zncc = ZNCC(SHAPE, SHAPE, window, 0.2, xp)
    left, right = spots((0, 0), rng)[None], np.stack([spots((0, 0), rng), spots((0, 0), rng)])
    counts = np.outer(*(size - abs(shifts) for size, shifts in zip(SHAPE, (window.dys, window.dxs), strict=True)))
    scores, overlaps = xp.asarray(rng.uniform(0.2, 1, (2, *window.shape))), []
    noisy = scores
    for images, overlap in ((left, zncc.left(xp.asarray(left))), (right, zncc.right(xp.asarray(right)))):
        added = xp.asarray(counts * ((1 / share - 1) * images.var(axis=(1, 2)))[:, None, None])
        noisy = noisy * xp.sqrt(overlap[1] / (overlap[1] + added))
        overlaps.append((overlap[0], overlap[1] + added))
    noisy[1, 0, 0] = scores[1, 0, 0] = np.nan
    shares = tuple(xp.full(images.shape[0], share) for images in (left, right))
    found = to_host(zncc.of_clean(noisy, tuple(overlaps), shares) / scores)
    before = to_host(noisy / scores)
    assert np.isnan(found[1, 0, 0])
    spread = [np.nanmax(np.abs(ratio / np.nanmean(ratio, axis=(1, 2), keepdims=True) - 1)) for ratio in (found, before)]
    assert spread[0] < 0.3 * spread[1]


def test_invalid_shifts_and_wholly_noisy_images_stay_finite(xp):
    zncc = ZNCC((20, 20), (20, 20), ShiftWindow.symmetric(4, 4), 0.2, xp)
    images = xp.asarray(np.random.default_rng(0).normal(size=(1, 20, 20)))
    overlap = zncc.left(images)
    scores = xp.full((1, 9, 9), 0.5)
    assert to_host(xp.isfinite(zncc.of_clean(scores, (overlap, overlap), (xp.zeros(1), xp.zeros(1))))).all()
    nothing = zncc.of_clean(xp.full((1, 9, 9), np.nan), (overlap, overlap), (xp.ones(1), xp.ones(1)))
    assert to_host(xp.isnan(nothing)).all()


def test_shifts_of_noisy_images_err_less(monkeypatch):
    squares = {}
    for method in ("with", "without"):
        if method == "without":
            monkeypatch.setattr(normalize.ZNCC, "of_clean", lambda self, scores, overlaps, clean: scores)
        errors = []
        for seed in range(40):
            true = np.random.default_rng(seed).uniform(-7, 7, (2, 2))
            clean = np.stack([spots(-d, np.random.default_rng(seed), (128, 131), 16) for d in (0 * true[0], *true)])
            stack = clean + noise(clean, clean.std(), seed)
            errors.append(estimate_shifts(stack, "first", 10, contrast="none").shifts[1:] - true)
        squares[method] = np.mean(np.square(errors))
    assert squares["with"] < 0.85 * squares["without"]
