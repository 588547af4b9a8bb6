"""Frames of every size, crops of pictures, edges that were filled."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

import xcorr_app as xc
from tests.registration import scenes
from xcorr_app import estimate_shifts
from xcorr_app.errors import XcorrError

LENGTHS = (*range(1, 20), 23, 31, 32, 33)
SIZES = [(n, n) for n in LENGTHS] + [(n, 40) for n in LENGTHS] + [(40, n) for n in LENGTHS]
OPTIONS = {
    "subpixel": ("gaussian", "dft", "quadratic", "parabolic", "none", "phase"),
    "reference": ("first", "last", "previous", "mean", "template", "pairs:2"),
    "normalization": ("zncc", "phase", "none"),
    "contrast": ("none", "auto", "local:3", "gradient"),
    "prefilter": ("gaussian:1", "median:3", "dog:1,3"),
    "verify": ("all",),
}
MEASURING = [
    *(partial(xc.estimate_shifts, **{name: value}) for name, values in OPTIONS.items() for value in values),
    *(
        partial(xc.estimate_motion, model=model)
        for model in ("translation", "rigid", "similarity", "affine", "patches")
    ),
]
SHIFTS = np.array([(0, 0), (0.5, -1.3), (2, 30.0), (-9.5, 4)])


def drifting(height, width):
    """Four frames of a smooth scene; of floats or integers."""
    scene = ndimage.gaussian_filter(np.random.default_rng([height, width]).normal(size=(height + 8, width + 8)), 1.2)
    frames = np.stack([scene[t : t + height, 4 - t // 2 : 4 - t // 2 + width] for t in range(4)])
    return (1000 + 300 * frames).astype((np.float32, np.uint16)[(height + width) % 2])


@pytest.mark.share(24)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_frames_of_every_size(height, width):
    stack = drifting(height, width)
    for measure in MEASURING:
        with suppress(XcorrError):
            assert len(measure(stack).shifts) == 4
    for order in (0, 1, 3, "fourier"):
        moved = xc.apply_shifts(stack, SHIFTS, order)
        assert (moved.shape, moved.dtype) == (stack.shape, stack.dtype)
    assert xc.correct_frames(stack, background="median").shape == stack.shape
    with suppress(XcorrError):
        xc.assess(stack, stack)
    with suppress(XcorrError):
        assert xc.displacement_field(stack[0], stack[1], window=8, step=4).displacement.shape[-1] == 2


MARGIN = 20


@pytest.mark.parametrize("shift", [(0, 0), (7, 2), (0, 4), (12, -13)])
@pytest.mark.parametrize("name", ["camera", "page", "clock", "coins"])
def test_a_crop_of_a_picture_lies_where_it_was_cut_out(name, shift):
    picture = getattr(data, name)()
    height, width = picture.shape
    moved = picture[MARGIN + shift[0] : height - MARGIN + shift[0], MARGIN + shift[1] : width - MARGIN + shift[1]]
    found = estimate_shifts(np.stack([picture[MARGIN:-MARGIN, MARGIN:-MARGIN], moved]), "first", 30)
    np.testing.assert_allclose(found.shifts[1], shift, atol=0.05)
    assert found.trusted.all()
    assert not found.notes


STEPS = np.arange(16)


def moved_and_filled(fill, deviation):
    """A scene moved by whole pixels along the diagonal, filled on two sides, in noise."""
    scene = scenes.drifting([(0, 0)], shape=(180, 200), width=0.11, seed=3)[0]
    frames = np.full((STEPS.size, *scene.shape), fill, dtype=float)
    for k in STEPS:
        frames[k, k:, k:] = scene[: scene.shape[0] - k, : scene.shape[1] - k]
    return frames + scenes.noise(frames, deviation)


@pytest.mark.parametrize("fill", [3.0, -2.0])
@pytest.mark.parametrize(("deviation", "weighting"), [(0.05, "none"), (0.3, "auto"), (0.5, "auto")])
def test_no_bias(xp, fill, deviation, weighting):
    stack = xp.asarray(moved_and_filled(fill, deviation))
    result = estimate_shifts(stack, "first", 24, contrast="none", weighting=weighting)
    error = (result.shifts + np.stack([STEPS, STEPS], axis=1))[1:]
    # All frames share the noise of the reference: their mean scatters about as much as each of them.
    assert np.abs(error.mean(axis=0)).max() < 1.5 * result.sigma[1:].mean()
    assert np.sqrt((error**2).mean()) < 1.5 * np.sqrt((result.sigma[1:] ** 2).mean())
