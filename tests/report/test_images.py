"""Grey pictures: common scale, PNG, scale bar."""

from __future__ import annotations

import imagecodecs
import numpy as np
import pytest

from xcorr_app.errors import ArgumentError
from xcorr_app.report.images import GreyScale, grey_scale, png, scale_bar


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


def test_rare_values_are_not_hidden_by_a_constant_rest() -> None:
    image = np.zeros((100, 100), np.float32)
    image[0, 0] = 50
    scale = grey_scale(image)
    assert scale.black < 0 < 25 <= scale.white


def test_png_values_are_the_definition() -> None:
    image = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    decoded = imagecodecs.png_decode(png(image, GreyScale(1, 4)))
    np.testing.assert_array_equal(decoded, [[0, 0, 85], [170, 255, 255]])


def test_png_is_transparent_where_there_is_no_data() -> None:
    image = np.array([[0, np.nan], [np.inf, 1]], np.float32)
    decoded = imagecodecs.png_decode(png(image, GreyScale(0, 1)))
    np.testing.assert_array_equal(decoded[..., 1], [[255, 0], [0, 255]])
    assert decoded[1, 1, 0] == 255


@pytest.mark.parametrize("shape", [(1, 1), (1, 400), (400, 1), (2, 3), (5, 2)])
def test_shapes_survive(shape: tuple[int, int]) -> None:
    assert imagecodecs.png_decode(png(np.ones(shape), GreyScale(0, 1))).shape == shape


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


@pytest.mark.parametrize("pixel", [0.0, -1.0, np.nan, np.inf])
def test_senseless_pixels_have_no_bar(pixel: float) -> None:
    assert scale_bar(100, pixel, "µm") is None
    assert scale_bar(100, 1.0, None) is None
