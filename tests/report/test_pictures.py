"""Pictures: block means, files, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.report.builders import pictures
from xcorr_app.report.pictures import block_mean, preview_of


def loop_mean(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The definition: the mean of what is finite in each block."""
    height, width = -(-image.shape[0] // rows), -(-image.shape[1] // columns)
    out = np.full((height, width), np.nan, np.float32)
    for y in range(height):
        for x in range(width):
            block = image[y * rows : (y + 1) * rows, x * columns : (x + 1) * columns].astype(np.float64)
            if np.isfinite(block).any():
                out[y, x] = block[np.isfinite(block)].mean()
    return out


@pytest.mark.parametrize("blocks", [(1, 1), (2, 3), (4, 7), (100, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int16])
def test_block_mean(blocks: tuple[int, int], dtype: type) -> None:
    image = np.random.default_rng(1).integers(0, 1000, (9, 13)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        image[0, 0], image[4:, 7:], image[3, 3] = np.nan, np.nan, np.inf
    np.testing.assert_allclose(block_mean(image, *blocks), loop_mean(image, *blocks), rtol=1e-6)


def test_shrunk_fits_and_keeps_the_physical_size() -> None:
    small = pictures((100, 300), frames=1000, flagged=(3,)).shrunk(side=64, thumbnail_side=10)
    assert small.mean_after.shape == (20, 60)  # blocks of 5 x 5
    assert small.reduction == 5
    assert small.kymograph_before.shape == (63, 60)
    assert small.thumbnails[3].shape == (4, 10)
    again = small.shrunk(side=64, thumbnail_side=10)
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
