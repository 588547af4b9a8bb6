"""Frames that no channel alone can tell, by the sum of the channels' correlation planes."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from xcorr_app.registration.channel_planes import Channel, measured_together
from xcorr_app.registration.channels import combined, together
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.frames import ArrayFrames
from xcorr_app.registration.settings import Settings

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


@pytest.mark.parametrize("seed", [1, 11])
def test_the_sum_tells_what_no_channel_does(seed):
    channels = [faint(seed), faint(seed + 1)]
    alone = [channel.result.trusted[1:].mean() for channel in channels]
    both = together(channels, ["0", "1"], SETTINGS, np)
    averaged = combined([channel.result for channel in channels], ["0", "1"])
    print(alone, averaged.trusted.mean(), both.trusted.mean())
    assert 0
