"""Frames that no channel alone can tell, by the sum of the channels' correlation planes."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from xcorr_app.registration.channels import Channel, combined, measured_together, together
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames

SHAPE = (161, 147)
DRIFT = np.concatenate([[(0, 0)], np.random.default_rng(5).integers(-9, 10, (23, 2))])
SETTINGS = Settings(max_shift=14)


def movie(seed, noise, drift=DRIFT, blur=2.0):
    rng = np.random.default_rng(seed)
    scene = gaussian_filter(rng.normal(size=(SHAPE[0] + 60, SHAPE[1] + 60)), blur)
    scene /= scene.std()
    frames = [scene[30 + y : 30 + y + SHAPE[0], 30 + x : 30 + x + SHAPE[1]] for y, x in drift]
    return (np.stack(frames) + noise * rng.normal(size=(len(drift), *SHAPE))).astype(np.float32)


def measured(stack, reference="first", settings=SETTINGS):
    frames = ArrayFrames(stack)
    return Channel(frames, reference, estimate_from(frames, reference, settings, xp=np))


def faint(seed, noise=4.6, **how):
    """Frames in most of which a channel alone has no peak to be trusted; the reference is as noisy as they are."""
    return measured(movie(seed, noise, **how))


def found(channels, settings=SETTINGS):
    asked = ~combined([channel.result for channel in channels], ["0", "1"]).trusted
    return measured_together(channels, asked, settings, np), asked


@pytest.mark.share(6)
@pytest.mark.parametrize("seed", [1, 11, 21])
@pytest.mark.parametrize("weighting", ["auto", "none"])
def test_the_sum_tells_what_no_channel_does(seed, weighting):
    settings = Settings(max_shift=14, weighting=weighting)
    noise = {"auto": 4.8, "none": 5.5}[weighting]
    channels = [measured(movie(seed + k, noise), settings=settings) for k in (0, 1)]
    alone = [channel.result.trusted[1:].mean() for channel in channels]
    averaged = combined([channel.result for channel in channels], ["0", "1"])
    both = together(channels, ["0", "1"], settings, np)
    assert max(alone) < 0.5
    assert averaged.trusted.mean() < 0.7
    assert both.trusted.mean() > averaged.trusted.mean() + 0.25
    away = np.abs(both.shifts - DRIFT)[both.trusted]
    assert away.max() < 3.0
    if weighting == "auto":
        assert away.max() < 0.8
        within = (away < both.sigma[both.trusted])[1:].mean()
        assert 0.45 < within < 0.9
    assert any("by the sum of the channels" in note for note in both.notes)


def test_noise_alone_is_not_believed():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 60, *SHAPE)).astype(np.float32)
    channels = [measured(stack) for stack in noise]
    summed, asked = found(channels)
    assert asked.sum() >= 58
    assert summed.trusted.sum() <= 1


def test_channels_that_move_apart_are_not_averaged():
    """Where the peak of one of them stands out of the sum it is taken, as that of a channel alone would be."""
    paths = DRIFT, DRIFT[:, ::-1] * [-1, 1]
    summed, asked = found([faint(seed, drift=path) for seed, path in enumerate(paths, 1)])
    away = [np.abs(summed.shifts - path[asked])[summed.trusted].max(axis=1) for path in paths]
    assert np.minimum(*away).max() < 2.0
    assert summed.trusted.mean() < 0.5


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", ["last", 5, -2, "image"])
def test_every_single_image_is_a_reference(reference):
    stacks = [movie(seed, 4.8) for seed in (1, 2)]
    given = [stack[3] if reference == "image" else reference for stack in stacks]
    at = {"last": -1, "image": 3}.get(reference, reference)
    settings = Settings(max_shift=20)
    channels = [measured(stack, image, settings) for stack, image in zip(stacks, given, strict=True)]
    both = together(channels, ["0", "1"], settings, np)
    alone = max(channel.result.trusted.mean() for channel in channels)
    assert both.trusted.mean() > max(0.7, alone + 0.25)
    assert np.abs(both.shifts - (DRIFT - DRIFT[at]))[both.trusted].max() < 2.0
