"""The movie: a film of the frames, no larger than is allowed."""

from __future__ import annotations

import imagecodecs
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.report.builders import preview
from xcorr_app.report.encoding import Film, film


def frames_of(made: Film) -> np.ndarray:
    return imagecodecs.jpeg8_decode(made.data).reshape(made.frames, *made.shape)


def test_it_shows_every_frame_before_beside_after() -> None:
    smooth = gaussian_filter(np.random.default_rng(1).normal(size=(5, 2, 40, 56)), (0, 0, 4, 4))
    frames = np.rint(255 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.uint8)
    made = film(frames, 100_000)
    shown = frames_of(made).astype(float)
    assert shown.shape == (5, 40, 2 * 56 + 4)
    assert np.abs(shown[:, :, :56] - frames[:, 0]).mean() < 4
    assert np.abs(shown[:, :, -56:] - frames[:, 1]).mean() < 4


def test_same_frames_same_bytes() -> None:
    assert film(preview(), 100_000) == film(preview(), 100_000)


@pytest.mark.parametrize(
    ("limit", "frames", "shape"),
    [
        (200_000, 16, (60, 132)),
        (70_000, 16, (60, 132)),
        (25_000, 8, (60, 132)),
        (8_000, 8, (30, 68)),
        (10, 1, (30, 68)),
    ],
)
def test_noise_loses_quality_then_frames_then_pixels_until_it_is_small_enough(
    limit: int, frames: int, shape: tuple[int, int]
) -> None:
    made = film(preview(16, (60, 64)), limit)
    assert len(made.data) <= limit or limit == 10
    assert (made.frames, made.shape) == (frames, shape)
    assert frames_of(made).shape == (frames, *shape)
