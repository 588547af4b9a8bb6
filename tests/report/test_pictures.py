"""Pictures of the report: scale, previews, animation, encoding."""

import imagecodecs
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.report.builders import pictures, preview
from xcorr_app.report.encoding import Film, film, picture_file
from xcorr_app.report.pictures import GreyScale, block_mean, grey_scale, png, preview_of, scale_bar


def loop_mean(image: np.ndarray, side: int) -> np.ndarray:
    """The definition: the mean of what is finite in each block."""
    height, width = (-(-size // side) for size in image.shape)
    out = np.full((height, width), np.nan, np.float32)
    for y, x in np.ndindex(height, width):
        block = image[y * side : (y + 1) * side, x * side : (x + 1) * side].astype(np.float64)
        if np.isfinite(block).any():
            out[y, x] = block[np.isfinite(block)].mean()
    return out


@pytest.mark.parametrize("side", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int16])
def test_block_mean(side: int, dtype: type) -> None:
    image = np.random.default_rng(1).integers(0, 1000, (9, 13)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        image[0, 0], image[4:, 7:], image[3, 3] = np.nan, np.nan, np.inf
    np.testing.assert_allclose(block_mean(image, side), loop_mean(image, side), rtol=1e-6)
    part, alone = (slice(2, 8), slice(1, 13)), np.full(image.shape, np.nan)
    alone[part] = image[part]
    np.testing.assert_allclose(block_mean(image, side, part), loop_mean(alone, side), rtol=1e-6)


def test_shrunk_fits_and_keeps_the_physical_size() -> None:
    small = pictures((100, 300)).shrunk(side=64)
    assert small.mean_after.shape == (20, 60)  # blocks of 5 x 5
    assert small.reduction == 5
    again = small.shrunk(side=64)
    assert again.reduction == 5
    assert np.array_equal(again.mean_after, small.mean_after)


def test_a_preview_has_one_grey_scale_and_is_black_where_there_is_no_data() -> None:
    before = [np.linspace(0, 100, 101, dtype=np.float32).reshape(1, -1) for _ in range(3)]
    after = [image.copy() for image in before]
    after[1][0, 50], after[2][0, 100] = np.nan, 1e9
    grey = preview_of(before, after)
    assert grey is not None
    assert grey.shape == (3, 2, 1, 101)
    assert (grey[:, 0, 0, 0] == 0).all()
    assert (grey[:, 0, 0, -1] == 255).all()
    assert (grey[1, 1, 0, 50], grey[2, 1, 0, 100], grey[0, 1, 0, 50]) == (0, 255, 128)
    assert preview_of([], []) is None


def test_scale_covers_both_images_and_ignores_what_is_not_finite() -> None:
    first = np.linspace(0, 100, 101, dtype=np.float32).reshape(1, -1)
    second = np.array([[np.nan, np.inf, 200, -np.inf]], np.float32)
    everything = np.concatenate([np.arange(101.0), [200.0]])
    black, white = np.percentile(everything, [0.2, 99.8])
    assert grey_scale(first, second) == GreyScale(black, white)


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


def test_png_values_are_the_definition_and_transparent_where_there_is_no_data() -> None:
    image = np.array([[0, 1, 2, np.nan], [3, 4, 5, np.inf]], np.float32)
    decoded = imagecodecs.png_decode(png(image, GreyScale(1, 4)))
    np.testing.assert_array_equal(decoded[:, :3, 0], [[0, 0, 85], [170, 255, 255]])
    np.testing.assert_array_equal(decoded[..., 1], [[255, 255, 255, 0]] * 2)


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


SCALE = GreyScale(-2, 2)


def scene(shape: tuple[int, int]) -> np.ndarray:
    image = gaussian_filter(np.random.default_rng(4).normal(size=shape), 3)
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
    assert film(preview(16, (60, 64)), limit) == made
    assert frames_of(made).shape == (frames, *shape)
