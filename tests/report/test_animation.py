"""The movie: an animated WebP of the frames, no larger than is allowed."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from tests.report.builders import preview
from xcorr_app.report import animation
from xcorr_app.report.animation import MAX_BYTES, movie


def decoded(data: bytes) -> np.ndarray:
    picture = Image.open(io.BytesIO(data))
    frames = []
    for number in range(picture.n_frames):
        picture.seek(number)
        frames.append(np.asarray(picture.convert("L")))
    assert picture.n_frames == 1 or picture.info["loop"] == 0
    return np.stack(frames)


def test_it_shows_every_frame_before_beside_after() -> None:
    smooth = gaussian_filter(np.random.default_rng(1).normal(size=(5, 2, 40, 56)), (0, 0, 4, 4))
    frames = np.rint(255 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.uint8)
    shown = decoded(movie(frames)).astype(float)
    assert shown.shape == (5, 40, 2 * 56 + 4)
    assert np.abs(shown[:, :, :56] - frames[:, 0]).mean() < 4
    assert np.abs(shown[:, :, -56:] - frames[:, 1]).mean() < 4


def test_same_frames_same_bytes() -> None:
    assert movie(preview()) == movie(preview())


@pytest.mark.parametrize(("limit", "frames"), [(MAX_BYTES, 8), (20_500, 8), (10_000, 4), (10, 1)])
def test_noise_loses_quality_then_frames_until_it_is_small_enough(
    monkeypatch: pytest.MonkeyPatch, limit: int, frames: int
) -> None:
    monkeypatch.setattr(animation, "MAX_BYTES", limit)
    data = movie(preview(8, (40, 56)))
    assert len(data) <= limit or frames == 1
    assert len(decoded(data)) == frames
