"""What scikit-image's tests of `phase_cross_correlation` ask of pairs of images, asked of ours."""

import inspect
import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.fft
import skimage.registration
from numpy.typing import NDArray
from scipy.ndimage import fourier_shift
from skimage.data import camera

import xcorr_app as xc
from xcorr_app import phase_cross_correlation

FRACTION = (-2.4, 1.32)


def moved_spectrum(shift: tuple[float, ...], image: NDArray[Any] | None = None) -> NDArray[Any]:
    return fourier_shift(scipy.fft.fftn(camera() if image is None else image), shift)


def moved(shift: tuple[float, ...]) -> NDArray[Any]:
    return scipy.fft.ifftn(moved_spectrum(shift)).real


def test_the_signature_is_that_of_scikit_image() -> None:
    ours, theirs = (
        inspect.signature(f).parameters for f in (phase_cross_correlation, skimage.registration.phase_cross_correlation)
    )
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]
    assert xc.shift_pair is phase_cross_correlation


@pytest.mark.parametrize("normalization", [None, "phase"])
def test_spectra(normalization: Any) -> None:
    given = {"space": "fourier", "normalization": normalization}
    whole, _, _ = phase_cross_correlation(scipy.fft.fftn(camera()), moved_spectrum((-7, 12)), **given)
    np.testing.assert_array_equal(whole, (7, -12))
    part, _, _ = phase_cross_correlation(
        scipy.fft.fftn(camera()), moved_spectrum(FRACTION), upsample_factor=100, **given
    )
    np.testing.assert_allclose(part, np.negative(FRACTION), atol=0.01)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_images_of_every_float(dtype: Any) -> None:
    shift, error, phase = phase_cross_correlation(
        camera().astype(dtype), moved(FRACTION).astype(dtype), upsample_factor=100
    )
    assert shift.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_allclose(shift, np.negative(FRACTION), atol=0.01)
    assert 0 < error < 0.2
    assert phase == 0


@pytest.mark.parametrize("column", [15, 100, 300])
def test_a_single_line(column: int) -> None:
    line = camera()[:, [column]]
    spectrum = moved_spectrum((-2.4, 4), line)
    shift, _, _ = phase_cross_correlation(scipy.fft.fftn(line), spectrum, upsample_factor=20, space="fourier")
    np.testing.assert_allclose(shift, (2.4, 0), atol=0.01)
    row, _, _ = phase_cross_correlation(line.T, scipy.fft.ifftn(spectrum).real.T, upsample_factor=20)
    np.testing.assert_allclose(row, (0, 2.4), atol=0.01)


@pytest.mark.parametrize("shift", [*itertools.product((64, -64, 224, -224), repeat=2)])
def test_far_shifts(shift: tuple[int, int]) -> None:
    """Three quarters of the images along each axis: 5 % of their pixels overlap."""
    starts = [(max(0, -s), max(0, s)) for s in shift]
    left, right = (camera()[tuple(slice(at[i], at[i] + 288) for at in starts)] for i in (0, 1))
    np.testing.assert_array_equal(phase_cross_correlation(left, right, disambiguate=True)[0], shift)


@pytest.mark.parametrize("disambiguate", [True, False])
def test_equal_images(disambiguate: bool) -> None:
    shift, error, _ = phase_cross_correlation(camera(), camera(), disambiguate=disambiguate)
    np.testing.assert_array_equal(shift, (0, 0))
    assert error < 1e-3


def test_single_points_without_a_warning() -> None:
    left, right = np.zeros((2, 100, 100))
    left[50, 50] = right[60, 60] = 1
    np.testing.assert_array_equal(phase_cross_correlation(left, right, disambiguate=True)[0], (-10, -10))


@pytest.mark.parametrize("light", [(1, 0), (0, 1), (0, 0)])
def test_empty_images(light: tuple[int, int]) -> None:
    with pytest.warns(UserWarning, match="Could not determine") as warned:
        shift, error, phase = phase_cross_correlation(camera() * light[0], camera() * light[1], disambiguate=True)
    np.testing.assert_array_equal(shift, (0, 0))
    assert math.isnan(error)
    assert phase == 0
    assert ["shift" in str(warned[0].message), "RMS error" in str(warned[1].message)] == [True, True]
    assert {each.filename for each in warned} == {__file__}


def test_masks_of_all_pixels_change_nothing() -> None:
    images = camera(), moved((-7, 12))
    masked = phase_cross_correlation(*images, reference_mask=np.ones_like(camera()), overlap_ratio=0.1)[0]
    np.testing.assert_array_equal(masked, phase_cross_correlation(*images)[0])


@pytest.mark.parametrize("hidden", [math.nan, 1e6])
def test_what_masks_hide_of_a_line_changes_nothing(hidden: float) -> None:
    left, right = camera()[200:201, 10:210].astype(float), camera()[200:201, 13:213].astype(float)
    seen = np.ones(left.shape, bool)
    seen[0, 40:50] = False
    masks = {"reference_mask": seen, "moving_mask": np.ones(right.shape, bool)}
    found = phase_cross_correlation(np.where(seen, left, hidden), right, **masks)
    np.testing.assert_array_equal(found[0], (0, 3))
    assert found[1] == phase_cross_correlation(np.where(seen, left, 0), right, **masks)[1] < 0.1


@pytest.mark.parametrize("border", [0, 64])
def test_random_masks(border: int) -> None:
    """Of two sizes, too: shifts are then between the middles of the images."""
    inner = moved((-7, 12))[border : 512 - border, border : 512 - border]
    draw = np.random.default_rng(23)
    masks = {
        "reference_mask": draw.random(camera().shape) < 0.75,
        "moving_mask": draw.random(inner.shape) < 0.75,
    }
    np.testing.assert_array_equal(phase_cross_correlation(camera(), inner, **masks)[0], (7, -12))
    part, error, _ = phase_cross_correlation(camera(), inner, upsample_factor=10, **masks)
    np.testing.assert_allclose(part, (7, -12), atol=0.01 if border else 0.05)  # what wrapped around stands at the rim
    assert error < (0.05 if border else 0.2)


@pytest.mark.parametrize("shift", [(75, 75), (-130, 130), (130, 130)])
def test_masks_around_what_moved_far(shift: tuple[int, int]) -> None:
    """Frames of which a part is black, another one in each, as in the data of Padfield 2012."""
    starts = [(max(0, -s), max(0, s)) for s in shift]
    left, right = (camera()[tuple(slice(at[i], at[i] + 320) for at in starts)].copy() for i in (0, 1))
    left[:40], right[:, 250:] = 0, 0
    found = phase_cross_correlation(left, right, reference_mask=left != 0, moving_mask=right != 0, overlap_ratio=0.1)[0]
    np.testing.assert_array_equal(found, shift)
