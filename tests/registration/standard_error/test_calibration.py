"""Standard errors and significance are as large as errors and chance, also where frames tell each other's."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, uniform_filter1d

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.stack_result import blur
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes
from xcorr_app.registration.standard_error.significance import significance

MARGIN = 24
SHAPE = (149, 171)


def texture(kind, rng):
    """Scene of unit deviation on a canvas larger than the view by `MARGIN` on every side."""
    size = tuple(n + 2 * MARGIN for n in SHAPE)
    image = np.zeros(size)
    if kind == "filaments":
        along = np.arange(-40, 40, 0.5)
        for angle, *place in rng.uniform((0, 0, 0), (np.pi, *size), (30, 3)):
            rows, columns = (
                int(p) + (along * f(angle)).astype(int) for p, f in zip(place, (np.sin, np.cos), strict=True)
            )
            np.add.at(image, (rows % size[0], columns % size[1]), 1.0)
        image = gaussian_filter(image, 1.6, mode="wrap")
    elif kind == "clouds":
        frequency = np.hypot(*np.meshgrid(*map(np.fft.fftfreq, size), indexing="ij"))
        frequency[0, 0] = np.inf
        spectrum = np.fft.fft2(rng.normal(size=size)) * frequency**-1.2 * np.exp(-((frequency / 0.22) ** 4))
        image = np.fft.ifft2(np.where(np.isfinite(frequency), spectrum, 0)).real
    else:
        count, width = {"beads": (80, 1.4), "stars": (14, 1.8)}[kind]
        np.add.at(image, tuple(rng.integers(0, n, count) for n in size), rng.uniform(0.2, 1, count))
        image = gaussian_filter(image, width, mode="wrap")
    image -= image.mean()
    return image / image.std()


def noisy(view, kind, snr, rng):
    if kind == "counts":
        return rng.poisson(snr**2 * 2.5 * np.clip(view + 2.5, 0, None)).astype(np.uint16)
    noise = rng.standard_t(5, size=view.shape) if kind == "heavy-tailed" else rng.normal(size=view.shape)
    if kind == "correlated":
        noise = gaussian_filter(noise, 1.0, mode="wrap")
    return view + noise / noise.std() / snr


def measured(kind, noise, snr, seed, frames=6):
    """Errors (frames, 2), the result, and its entries of all frames but the first."""
    rng = np.random.default_rng([seed, ord(kind[0]), ord(noise[0])])
    spectrum = np.fft.fft2(texture(kind, rng))
    ramps = np.fft.fftfreq(spectrum.shape[0])[:, None], np.fft.fftfreq(spectrum.shape[1])
    places = rng.uniform(-9, 9, (frames, 2)) * (np.arange(frames) > 0)[:, None]
    stack = []
    for dy, dx in places:
        view = np.fft.ifft2(spectrum * np.exp(-2j * np.pi * (ramps[0] * dy + ramps[1] * dx))).real
        stack.append(noisy(view[MARGIN:-MARGIN, MARGIN:-MARGIN], noise, snr, rng))
    result = estimate_shifts(np.array(stack), "first", 12, contrast="none")
    return (result.shifts + places)[1:], result.sigma[1:], result.trusted[1:]


NOISES, KINDS = ("white", "counts", "heavy-tailed", "correlated"), ("filaments", "clouds", "beads")
# Frames of a series share their reference: 18 series are as good as about 50 independent errors, and 60 pairs as 120.
SERIES = [(noise, snr, KINDS, 6, 6, 0.18, 0.84) for noise in NOISES for snr in (20.0, 3.0, 1.0)]
PAIRS = [("white", snr, KINDS[:1], 60, 2, 0.12, 0.89) for snr in (5.0, 1.0, 0.3)]


@pytest.mark.share(8)
@pytest.mark.parametrize(("noise", "snr", "kinds", "seeds", "frames", "by", "least"), [*SERIES, *PAIRS])
def test_errors_are_within_their_standard_errors_as_often_as_normal_ones(noise, snr, kinds, seeds, frames, by, least):
    parts = [measured(kind, noise, snr, seed, frames) for kind in kinds for seed in range(seeds)]
    error, sigma, trusted = (np.concatenate(column) for column in zip(*parts, strict=True))
    ratio = np.abs(error / sigma)[trusted]
    assert np.mean(ratio < 1) == pytest.approx(0.68, abs=by)
    assert np.mean(ratio < 2) > least
    assert trusted[np.abs(error).max(axis=1) < 0.5].mean() > 0.97


@pytest.mark.parametrize(("snr", "least"), [(30.0, 0.5), (8.0, 0.6), (2.0, 0.85)])
def test_a_few_things_have_errors_as_large_as_said(snr, least):
    """Tiles cut them in two, and most show noise alone, which bends no peak. The clearer, the fewer of them tell."""
    series = [measured("stars", "white", snr, seed, frames=12)[:2] for seed in range(10)]
    assert least < np.sqrt(np.mean([np.mean(error**2) / np.mean(sigma**2) for error, sigma in series])) < 1.2


@pytest.mark.share(4)
@pytest.mark.parametrize("noise", NOISES)
def test_shifts_that_noise_made_are_not_trusted(noise):
    parts = [measured(kind, noise, 0.08, seed) for kind in ("filaments", "clouds", "beads") for seed in range(4)]
    error, _, trusted = (np.concatenate(column) for column in zip(*parts, strict=True))
    wrong = np.abs(error).max(axis=1) > 0.5
    assert wrong.sum() > 30
    assert trusted[wrong].mean() < 0.05


@pytest.mark.parametrize("reference", ["first", "template", "mean"])
@pytest.mark.parametrize("blur", [0, 2])
def test_of_frames_of_noise_nothing_is_known(blur, reference):
    """Their peaks are as sharp as those of a scene would be, and anywhere."""
    frames = np.random.default_rng(blur).normal(size=(4, 12, 96, 96))
    frames = gaussian_filter(frames, (0, 0, blur, blur))
    results = [estimate_shifts(each, reference, 16) for each in frames]
    error, sigma = (np.concatenate([getattr(r, name)[1:] for r in results]) for name in ("shifts", "sigma"))
    known = np.isfinite(error) & np.isfinite(sigma)
    assert np.sqrt(np.nanmean(error**2)) > 8
    # What is left of them are few: a peak in a hundred is as high as chance makes one in a hundred.
    assert known.mean() < 0.15


@pytest.mark.parametrize(("reach", "step"), [(1, 0.3), (3, 0.3), (2, 0.0)])
def test_where_averaged_frames_move_by_chance_they_are_as_unsure_as_they_are_off(rng, reach, step):
    path, length, noise = np.cumsum(rng.normal(0, step, (400, 2)), axis=0), 2 * reach + 1, 0.004
    found = path + rng.normal(0, noise * np.sqrt(length), path.shape)
    found = uniform_filter1d(found, length, axis=0, mode="nearest")
    expected = np.hypot(noise, blur(found, np.full(path.shape, noise), None, reach))
    # 800 errors, of which neighbours are alike: their scatter is known to a tenth.
    off = [np.mean(each[length:-length] ** 2) for each in (found - path, expected)]
    assert 0.7 < np.sqrt(off[0] / off[1]) < 1.33


@pytest.mark.parametrize("number", [None, 0])
def test_averages_of_a_drift_in_a_line_are_off_at_the_ends_and_all_by_what_the_reference_is(number):
    path = np.linspace(0, 40, 400)[:, None] * [1.0, -0.5]
    off = blur(path, np.full(path.shape, 1e-3), number, 2)
    assert (off[0].min() > 0.05, off[10:-10].min() > 0.05) == (number is None, number == 0)
    assert number == 0 or off[10:-10].max() < 1e-6


def rated(xp, planes, *, scores=False):
    flat = planes.reshape(len(planes), -1).argmax(axis=1)
    row, column = np.unravel_index(flat, planes.shape[1:])
    value = planes.reshape(len(planes), -1).max(axis=1)
    return significance(*(xp.asarray(a) for a in (planes, row, column, value)), scores=scores)


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 3.0])
def test_the_highest_value_of_noise_is_as_probable_as_said_and_a_peak_above_is_none(xp, rng, smoothness):
    planes = np.stack([gaussian_filter(rng.normal(size=(113, 129)), smoothness)[16:-16, 16:-16] for _ in range(200)])
    chance = rated(xp, planes).false_alarm
    assert np.mean(chance < 0.05) < 0.15
    assert np.mean(chance < 0.001) < 0.01
    planes[:, 30, 40] += 15 * planes.std()
    found = rated(xp, planes)
    assert (found.z > 10).all()
    assert (found.false_alarm < 1e-4).all()


def test_invalid_shifts_and_planes_without_a_spread(xp, rng):
    planes = rng.normal(size=(3, 41, 41))
    planes[0, :20], planes[1], planes[2] = np.nan, 0.25, np.nan
    value, place = xp.asarray(np.array([9.0, 0.25, np.nan])), xp.asarray(np.array([30, 30, 30]))
    found = significance(xp.asarray(planes), place, place, value, scores=False)
    assert found.false_alarm[0] < 0.01
    assert np.isnan(found.z[1:]).all()
    assert np.isnan(found.false_alarm[1:]).all()


def test_unrelated_textures_are_uncertain_and_related_ones_are_not(xp):
    related = drifting([(0, 0), (5, -4)], shape=(128, 128))
    stack = np.concatenate([related, drifting([(0, 0)], shape=(128, 128), seed=7)])
    result = estimate_shifts(xp.asarray(stack + noise(stack, 1.0)), "first", 30, contrast="none")
    assert not result.flags[1]
    assert {"uncertain", "ambiguous", "edge"} & set(result.flags[2])
    assert to_host(result.significance)[1] > 1.5 * to_host(result.significance)[2]


COUNT, SNR = 41, 4.0
MATES = np.stack([np.zeros(COUNT - 1, int), np.arange(1, COUNT)], axis=1)


def logarithms(seed, noisier=(), noise=1.0, blur=0.0):
    """Those of standard errors (2, 40, 2) of frames of few tiles, in one stack and in a pair each.

    Those that are marked have so much noise, or are out of focus.
    """
    rng, numbers = np.random.default_rng(seed), np.arange(COUNT)
    places, marked = rng.uniform(-3, 3, (COUNT, 2)) * (numbers > 0)[:, None], np.isin(numbers, noisier)
    clean, of_frame = drifting(places, shape=(64, 72), seed=seed), marked[:, None, None]
    noise = rng.normal(size=clean.shape) * clean.std() / SNR * np.where(of_frame, noise, 1)
    stack = np.where(of_frame, gaussian_filter(clean, (0, blur, blur)), clean) + noise
    one, *pairs = (estimate_shifts(each, "first", 6, contrast="none").sigma[1:] for each in (stack, *stack[MATES]))
    return np.log([one, np.concatenate(pairs)])


def test_frames_alike_have_standard_errors_alike():
    together, alone = np.concatenate([logarithms(seed) for seed in range(3)], axis=2)
    assert together.std(axis=0).mean() < 0.75 * alone.std(axis=0).mean()
    # Not wider than those of one frame, whose few tiles are a doubt of their own, and not by much narrower.
    assert -0.12 < (together - alone).mean() < 0.02


@pytest.mark.parametrize(("noisier", "noise", "blur"), [(range(1, COUNT, 2), 3.0, 0.0), (17, 3.0, 0.0), (17, 1.0, 4.0)])
def test_frames_that_show_less_are_as_unsure_as_they_are_alone(noisier, noise, blur):
    together, alone = np.concatenate([logarithms(seed, noisier, noise, blur) for seed in range(3)], axis=2)
    marked = np.isin(np.arange(1, COUNT), noisier)
    kinds = marked, ~marked
    assert [together[frames].mean() for frames in kinds] == pytest.approx([alone[of].mean() for of in kinds], abs=0.1)
    assert (together[marked] > np.median(together[~marked], axis=0)).all()


def test_a_pair_is_as_sure_as_its_own_tiles_say():
    shapes = PeakShapes.empty(2)
    shapes.scatter[:], shapes.hessian[:], shapes.height[:] = np.eye(2) * 1e-6, -np.eye(2) * 0.1, 1.0
    shapes.quartic[:], shapes.freedom[:], shapes.scatter[1] = 0.0, 3.0, np.eye(2) * 4e-6
    np.testing.assert_allclose(shapes.standard_errors(np.full(2, 50.0)), [[0.01, 0.01], [0.02, 0.02]])
