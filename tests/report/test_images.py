"""Grey pictures: common scale, PNG, scale bar."""

from __future__ import annotations

import imagecodecs
import numpy as np
import pytest

from xcorr_app.errors import ArgumentError
from xcorr_app.report.pictures import GreyScale, grey_scale, png, scale_bar


def test_scale_covers_both_images_and_ignores_what_is_not_finite() -> None:
    first = np.linspace(0, 100, 101, dtype=np.float32).reshape(1, -1)
    second = np.array([[np.nan, np.inf, 200, -np.inf]], np.float32)
    assert grey_scale(first, second, percentile=0) == GreyScale(0, 200)
    everything = np.concatenate([np.arange(101.0), [200.0]])
    black, white = np.percentile(everything, [1, 99])
    assert grey_scale(first, second, percentile=1) == GreyScale(black, white)


@pytest.mark.parametrize("value", [0.0, 5.0, -3e30, 3e38, np.nan])
def test_an_image_of_one_value_has_a_scale(value: float) -> None:
    image = np.full((3, 4), value, np.float32)
    scale = grey_scale(image, image)
    assert scale.black < scale.white
    decoded = imagecodecs.png_decode(png(image, scale))
    if np.isfinite(value):
        assert abs(int(decoded[0, 0]) - 128) <= 1
    else:
        assert not decoded[..., 1].any()


def test_png_values_are_the_definition() -> None:
    image = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    decoded = imagecodecs.png_decode(png(image, GreyScale(1, 4)))
    np.testing.assert_array_equal(decoded, [[0, 0, 85], [170, 255, 255]])


def test_png_is_transparent_where_there_is_no_data() -> None:
    image = np.array([[0, np.nan], [np.inf, 1]], np.float32)
    decoded = imagecodecs.png_decode(png(image, GreyScale(0, 1)))
    np.testing.assert_array_equal(decoded[..., 1], [[255, 0], [0, 255]])
    assert decoded[1, 1, 0] == 255


def test_scale_without_extent_is_refused() -> None:
    with pytest.raises(ArgumentError, match="black below white"):
        png(np.ones((2, 2)), GreyScale(1, 1))


@pytest.mark.parametrize(
    ("width", "pixel", "label", "length"),
    [
        (100, 1.0, "20 µm", 20),
        (176, 0.325, "10 µm", 10),
        (1000, 0.1667, "50 µm", 50),
        (1, 1.0, "0.2 µm", 0.2),
        (2048, 1e-4, "0.05 µm", 0.05),
    ],
)
def test_scale_bar(width: int, pixel: float, label: str, length: float) -> None:
    bar = scale_bar(width, pixel, "µm")
    assert bar is not None
    assert bar.label == label
    assert bar.share == pytest.approx(length / (width * pixel))
    assert 0.1 < bar.share <= 0.3
