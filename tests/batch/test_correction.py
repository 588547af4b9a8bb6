"""Frames corrected by a flat and a dark image, and by what stands still."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.batch.movies import DRIFT, align, movie, shifts
from tests.io.samples import write_plain
from xcorr_app import correct_frames, read_stack, write_stack
from xcorr_app.errors import ArgumentError

SHAPE = (60, 72)


@pytest.fixture(scope="module")
def camera(tmp_path_factory):
    """A folder with what a camera with dust and an offset makes of a movie, its flat and dark images; and the movie."""
    folder = tmp_path_factory.mktemp("camera")
    rng = np.random.default_rng(4)
    clean = movie(shape=SHAPE).astype(float)
    gain = 1 + 0.6 * gaussian_filter(rng.normal(size=SHAPE), 1) / 0.28
    gain = np.clip(gain, 0.2, 3)
    dark = (100 + 20 * rng.random(SHAPE)).round()
    write_plain(folder / "m.tif", (clean * gain + dark).round().astype(np.uint16))
    write_stack(folder / "flat.tif", (1000 * gain + dark).astype(np.float32))
    write_stack(folder / "dark.tif", dark.astype(np.uint16))
    return folder, clean


def test_a_pattern_of_the_camera_no_longer_holds_the_frames(camera, tmp_path):
    folder, clean = camera
    words = ["--max-shift", 6, "--contrast", "none", "--flat", folder / "flat.tif", "--dark", folder / "dark.tif"]
    run = align(folder / "m.tif", "-o", tmp_path / "out", *words, "--correct")
    assert run.code == 0, run.stdout + run.stderr
    np.testing.assert_allclose(shifts(tmp_path / "out" / "m" / "shifts.csv"), DRIFT, atol=0.05)
    written = read_stack(tmp_path / "out" / "m" / "m_aligned.tif").data
    assert written.dtype == np.uint16
    inner = (slice(8, -8), slice(8, -8))
    scale = clean[0][inner].mean() / written[0][inner].mean()
    np.testing.assert_allclose(written[2][inner] * scale, clean[0][inner], rtol=0.02, atol=30)
    plain = align(folder / "m.tif", "-o", tmp_path / "plain", *words)
    assert plain.code == 0
    uncorrected = read_stack(tmp_path / "plain" / "m" / "m_aligned.tif").data
    np.testing.assert_array_equal(uncorrected[0], read_stack(folder / "m.tif").data[0])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ({"flat": np.ones((3, 3))}, "flat has shape"),
        ({"flat": np.zeros((5, 6)), "dark": np.ones((5, 6))}, "exchanged"),
        ({"dark": np.full((5, 6), np.nan)}, "finite"),
        ({"background": "mean"}, "background 'mean'"),
    ],
)
def test_images_that_do_not_fit(images, words):
    with pytest.raises(ArgumentError, match=words):
        correct_frames(np.ones((2, 5, 6)), **images)
