"""A few things that differ tell which period of a lattice it is; a perfect lattice stays ambiguous."""

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.measuring.rivals import disambiguated

COUNT, SHAPE, PERIOD = 9, (147, 155), 9.7
DRIFT = walk(21, COUNT, 0.9)


def lattice(drift, *, flaws=0, light=0.0, seed=3):
    """Round holes in rows, of which some are filled, under light that falls off and stands still."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(float)
    rng = np.random.default_rng(seed)
    filled = rng.uniform(20, 125, (flaws, 2))
    filled = PERIOD * np.rint(filled / PERIOD)
    frames = []
    for dy, dx in drift:
        frame = np.cos(2 * np.pi * (y - dy) / PERIOD) + np.cos(2 * np.pi * (x - dx) / PERIOD)
        for row, column in filled:
            distance = ((y - dy - row) ** 2 + (x - dx - column) ** 2) / (2 * 2.2**2)
            frame = frame - 1.7 * np.exp(-distance)
        frames.append(frame * (1 + light * (x / SHAPE[1] - 0.5)))
    return 300 + 60 * np.array(frames)


@pytest.mark.share(3)
@pytest.mark.parametrize(("seed", "reference"), [(3, "first"), (4, "first"), (5, "first"), (3, "template")])
def test_flaws_tell_the_period(xp, seed, reference):
    """A mean of frames blurs them, and is no better reference than one frame then."""
    stack = lattice(DRIFT, flaws=12, light=0.3, seed=seed)
    result = estimate_shifts(xp.asarray((stack + noise(stack, 6)).astype(np.float32)), reference, 24)
    assert np.abs(result.shifts + DRIFT).max() < 0.05
    assert (result.peak_ratio[1:] < 1.1).all()
    assert result.trusted.all()


@pytest.mark.share(3)
@pytest.mark.parametrize("light", [0.0, 0.6])
@pytest.mark.parametrize("deviation", [0.0, 3.0, 60.0])
def test_a_perfect_lattice_stays_ambiguous(light, deviation):
    """Uneven light, which prefers the smaller shift, settles nothing."""
    stack = lattice(DRIFT + np.linspace(0, 7, COUNT)[:, None], light=light)
    result = estimate_shifts((stack + noise(stack, deviation)).astype(np.float32), max_shift=24)
    doubted = [bool({"ambiguous", "uncertain", "inconsistent"} & set(flags)) for flags in result.flags[1:]]
    assert all(doubted)


@pytest.mark.parametrize("reference", ["first", "template"])
def test_a_perfect_lattice_is_followed_from_frame_to_frame(xp, reference):
    """By more than a period: frames stay flagged, but are moved as the least steps say."""
    drift = np.linspace(0, 14, COUNT)[:, None] * [1.0, -0.6]
    stack = lattice(drift) + noise(lattice(drift), 6)
    result = estimate_shifts(xp.asarray(stack.astype(np.float32)), reference, 40)
    assert not result.trusted[1:].any()
    np.testing.assert_allclose(result.applied(), drift[0] - drift, atol=0.2)


def test_the_right_period_is_found_from_a_wrong_one():
    stack = lattice(DRIFT, flaws=12).astype(np.float32)
    stack += noise(stack, 6).astype(np.float32)
    window = ShiftWindow.symmetric(24, 24)
    for begin in (-DRIFT, -DRIFT + (PERIOD, 0)):
        found, _ = disambiguated(stack[:1], stack, begin, window, 0.25)
        assert np.abs(found + DRIFT)[1:].max() < 0.1


def test_noise_settles_nothing():
    images = np.random.default_rng(8).normal(size=(5, 120, 131)).astype(np.float32)
    found, _ = disambiguated(images[:1], images[1:], np.zeros((4, 2)), ShiftWindow.symmetric(24, 24), 0.25)
    assert np.isnan(found).all()


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_film_under_a_lattice_is_no_chance(seed):
    """Away from the peak the plane is full of the lattice: that the peak hardly stands above it says nothing."""
    film = drifting(DRIFT, SHAPE, seed=seed)
    stack = lattice(DRIFT) + 30 * (film - film.mean()) / film.std()
    result = estimate_shifts((stack + noise(stack, 15, seed=seed)).astype(np.float32))
    assert (result.peak_ratio[1:] > 1.1).all()
    assert np.abs(result.shifts + DRIFT).max() < 0.05
    assert result.trusted.all()


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [3, 5])
def test_a_lattice_in_which_something_moves_is_not_turned(seed):
    """Turned by 90 degrees a lattice fits itself, at shifts far beyond those that are searched."""
    stack = lattice(DRIFT, flaws=14, seed=seed)
    texture = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(200, 200)), 1.5)
    for t, frame in enumerate(stack):
        y, x = 60 + int(3 * np.sin(t)), 60 + t
        frame[80:140, 90:150] = 300 + 40 * texture[y : y + 60, x : x + 60] / texture.std()
    result = estimate_shifts((stack + noise(stack, 5, seed=99)).astype(np.float32), max_shift=24)
    assert np.abs(result.shifts + DRIFT).max() < 0.1
    # What told the period tells it without the part that moves, or with less weight of its pixels, too.
    assert any("of the picture" in note and "otherwise" in note for note in result.notes)
    assert result.trusted[1:].all()


RAMP = np.stack([np.linspace(0, 11, COUNT), np.linspace(0, -6, COUNT)], axis=1)


@pytest.mark.parametrize(("size", "depth", "number"), [(4, 0.5, 25), (5, 0.3, 20)])
def test_dust_that_stands_still_tells_no_period(size, depth, number):
    """It prefers the shift nearest to zero, whichever period the lattice has moved on to."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    places = np.random.default_rng(3).uniform(10, 135, (number, 2))
    dust = sum(np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * size**2)) for row, column in places)
    stack = lattice(RAMP) * (1 - depth * np.clip(dust, 0, 1))
    result = estimate_shifts((stack + noise(stack, 6)).astype(np.float32), max_shift=24)
    off = np.abs(result.shifts + RAMP).max(axis=1) > 1
    assert not result.trusted[off].any()


@pytest.mark.parametrize("axis", [0, 1])
def test_rivals_in_a_window_of_one_row_or_column(axis):
    """The last of its shifts among them."""
    stripes = np.sin(2 * np.pi * np.arange(96) / 8)
    stripes = np.broadcast_to(stripes if axis else stripes[:, None], (96, 96))
    stack = 100 * np.stack([np.roll(stripes, t, axis=axis) for t in range(3)])
    stack = (stack + noise(stack, 3)).astype(np.float32)
    shifts = np.zeros((3, 2))
    shifts[:, axis] = -np.arange(3)
    reach = (8, 0) if axis == 0 else (0, 8)
    found, alike = disambiguated(stack[:1], stack, shifts, ShiftWindow.symmetric(*reach), 0.25)
    assert np.isnan(found).all()
    for t, rivals in enumerate([(-8, 8), (7,), (6,)]):
        away = alike[t, 1:, axis]
        np.testing.assert_allclose(np.sort(away[np.isfinite(away)]), rivals, atol=0.1)
    estimate_shifts(stack, max_shift=reach)
