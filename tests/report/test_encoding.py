"""Pictures of bounded size."""

from __future__ import annotations

import imagecodecs
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from xcorr_app.report.encoding import picture_file
from xcorr_app.report.pictures import GreyScale, png

SCALE = GreyScale(-2, 2)


def scene(shape: tuple[int, int], smooth: float = 3) -> np.ndarray:
    image = gaussian_filter(np.random.default_rng(4).normal(size=shape), smooth) if smooth else noise(shape)
    return image / image.std()


def noise(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape)


def test_what_fits_loses_nothing() -> None:
    image = scene((31, 43))
    image[:3, 5] = np.nan
    assert picture_file(image, SCALE, 5_000) == ("image/png", png(image, SCALE))


@pytest.mark.parametrize("limit", [40_000, 12_000])
def test_a_large_picture_is_close_to_what_it_shows(limit: int) -> None:
    image = scene((301, 257))
    kind, data = picture_file(image, SCALE, limit)
    shown = imagecodecs.jpeg8_decode(data).astype(float)
    assert kind == "image/jpeg"
    assert len(data) <= limit
    assert np.abs(shown - np.clip((image + 2) / 4, 0, 1) * 255).mean() < 6


@pytest.mark.share(4)
@pytest.mark.parametrize("limit", [90_000, 6_500, 3_000, 500])
@pytest.mark.parametrize("missing", [False, True])
def test_noise_becomes_as_small_as_is_asked(limit: int, missing: bool) -> None:
    image = noise((511, 513))
    image[200:300] = np.nan if missing else 0
    kind, data = picture_file(image, SCALE, limit)
    assert len(data) <= limit
    assert kind in ("image/jpeg", "image/webp", "image/png")
