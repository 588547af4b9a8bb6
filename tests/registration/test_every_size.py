"""Frames of every small size, in every way: an answer for every frame, or a refusal in the project's words."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from xcorr_app.errors import XcorrError

LENGTHS = (*range(1, 20), 23, 31, 32, 33)
SIZES = [(n, n) for n in LENGTHS] + [(n, 40) for n in LENGTHS] + [(40, n) for n in LENGTHS]
OPTIONS = {
    "subpixel": ("gaussian", "dft", "quadratic", "parabolic", "none", "phase"),
    "reference": ("first", "last", "previous", "mean", "median", "template", "pairs:2", "rolling:2"),
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
