"""Weighting of frequencies by their signal-to-noise ratio, as a small kernel that smooths a correlation plane.

The plane of two noisy images is the autocorrelation of the scene plus noise, and the noise is white over shifts. The
maximum-likelihood estimate of a displacement weights every frequency of the cross-spectrum by
``S / (S (Nl + Nr) + Nl Nr)``, S being the scene's power and Nl, Nr the noise of the two images (the Hannan-Thomson
processor of Knapp and Carter 1976, doi 10.1109/TASSP.1976.1162830). Both are read off the autocorrelation of the
images themselves: white noise is a spike at zero shift, on top of a scene that is smooth there. Multiplying a spectrum
by a smooth weight is convolving the plane with a short kernel, so the weighting is the same for every engine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.engines.fft_blocks import cut
from xcorr_app.correlation.engines.fft_whole import WholeFFTCorrelator
from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host

LAGS = 16
"""Largest shift of the autocorrelation that is looked at."""
RADIUS = 12
"""The kernel reaches this many shifts on each side."""
WEIGHED_FRAMES = {True: 5, False: 64}
"""Frames of a stack whose median autocorrelation decides on the weights: any one of them may be unlike the others.
Where they are compared with a mean of them, more, so that their order does not matter."""
_LARGEST_OF_MANY = 256
"""Rows and columns of images, in their middle, that are enough where there are many."""
_PIXELS_AT_ONCE = 1 << 21
"""Of images that a host looks at in one call."""
_GRID = 64
QUIET = 0.05
"""Share of noise in the variance below which weighting a plane gains nothing."""
_NEAR, _SURELY = (1, 3), 3.0
"""Shifts up to which the autocorrelation of a scene lies above zero, fine or not; and standard errors by which."""


def autocorrelations(images: Array, *, many: bool = False) -> NDArray[np.float64]:
    """Normalised correlation of each image (n, h, w) with itself, (n, 2 LAGS + 1, 2 LAGS + 1), on the host.

    Of `many` images the middle will do.
    """
    if many:
        first = [max(size - _LARGEST_OF_MANY, 0) // 2 for size in images.shape[1:]]
        rows, columns = (slice(start, start + _LARGEST_OF_MANY) for start in first)
        images = images[:, rows, columns]
    # Of large ones a host keeps the transforms of one alone; of small ones every call takes as long as an image.
    step = max(1, _PIXELS_AT_ONCE // math.prod(images.shape[1:])) if array_namespace(images) is np else len(images)
    planes = [
        cross_correlate(part, part[:, None], "n-to-mn", max_shift=LAGS, check_finite=False)
        for part in (images[i : i + step] for i in range(0, len(images), step))
    ]
    return np.concatenate([to_host(plane)[:, 0] for plane in planes]).astype(np.float64)


def noise_share(autocorrelation: NDArray[np.float64]) -> float:
    """Share of an image's variance that is white noise.

    Parameters
    ----------
    autocorrelation : ndarray, shape (2 LAGS + 1, 2 LAGS + 1)
        Zero-mean normalised correlation of the image with itself.

    Returns
    -------
    float
        In [0, 1): how far the value at zero shift, which is one, stands above the even polynomial of sixth order
        through the values at shifts 1, 2 and 3; the mean of both axes.
    """
    a, c = autocorrelation, LAGS
    flanks = [
        (15 * a[c + y, c + x] - 6 * a[c + 2 * y, c + 2 * x] + a[c + 3 * y, c + 3 * x]) / 10 for y, x in ((1, 0), (0, 1))
    ]
    return min(max(float(a[c, c] - np.mean(flanks)), 0.0), 0.999)


def weighting_kernel(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    pixels: float = math.inf,
    *,
    left_is_white: bool = True,
    quiet: float = QUIET,
) -> NDArray[np.float64] | None:
    """Kernel that weights the plane of two images, from their autocorrelations.

    Parameters
    ----------
    left, right : ndarray, shape (2 LAGS + 1, 2 LAGS + 1)
        Zero-mean normalised correlation of each image with itself; NaN where there is none.
    pixels : float
        How many `right` is made of: of no scene, or one of single pixels, it scatters by ``1 / sqrt(pixels)``.
    left_is_white : bool
        Whether the noise of `left` is white. That of a mean of moved frames is not: interpolation has smoothed it, and
        what it then has in common with a scene must not be taken for one; the scene is that of `right`.
    quiet : float
        Share of noise up to which nothing is weighted.

    Returns
    -------
    ndarray, shape (2 RADIUS + 1, 2 RADIUS + 1), or None
        One in the middle, equal under reflection. None where the noise is too small, or nothing is known of
        it or of the scene.
    """
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    noise_left, noise_right = noise_share(left), noise_share(right)
    if max(noise_left, noise_right) <= quiet:
        return None
    clearer = left_is_white and noise_left <= noise_right
    scene = _scene_spectrum(*((left, noise_left) if clearer else (right, noise_right)))
    if not scene.any() or not _shows_scene(right, pixels):
        return None
    cross = (1 - noise_left) * noise_right + (1 - noise_right) * noise_left
    # Where an image has no noise, and the scene nothing of a frequency, nothing is weighted by nothing.
    weight = np.where(scene > 0, scene, 0.0) / np.where(scene > 0, scene * cross + noise_left * noise_right, 1.0)
    kernel = np.roll(np.fft.ifft2(weight).real, (RADIUS, RADIUS), (0, 1))[: 2 * RADIUS + 1, : 2 * RADIUS + 1]
    kernel = kernel * _taper(RADIUS)
    return np.asarray(kernel / kernel[RADIUS, RADIUS])


def smooth(planes: Array, kernel: NDArray[np.float64]) -> Array:
    """Convolve planes (n, ny, nx) with a kernel; the result loses `RADIUS` shifts on every side.

    Invalid shifts (NaN) count as zero for their neighbours and stay invalid.
    """
    xp = array_namespace(planes)
    invalid = xp.isnan(planes)
    known = xp.where(invalid, 0.0, planes)
    window = ShiftWindow(kernel.shape[0] - planes.shape[-2], 0, kernel.shape[1] - planes.shape[-1], 0)
    rows, columns = (
        cut(taps, size, first, 0, 1)
        for taps, size, first in zip(kernel.shape, planes.shape[-2:], (window.dy_min, window.dx_min), strict=True)
    )
    if xp is np and rows is not None and columns is not None:
        # Correlation of the kernel, equal under reflection, with planes: the same, from the last shift to the first.
        transforms = WholeFFTCorrelator(window, (rows, columns))
        smoothed = transforms.sums(transforms.left(kernel[None, None]), known[None])[0, :, ::-1, ::-1]
    else:
        fft = fft_namespace(planes)
        size = [fft.next_fast_len(n, real=True) for n in planes.shape[-2:]]
        spectrum = fft.rfft2(known, size) * fft.rfft2(xp.asarray(kernel), size)
        # What wraps around only meets the rim that is cut off.
        smoothed = fft.irfft2(spectrum, size)[..., 2 * RADIUS : planes.shape[-2], 2 * RADIUS : planes.shape[-1]]
    return xp.where(invalid[..., RADIUS:-RADIUS, RADIUS:-RADIUS], np.nan, smoothed)


def _shows_scene(autocorrelation: NDArray[np.float64], pixels: float) -> bool:
    """Whether an image resembles itself nearby by more than chance."""
    around = [autocorrelation[LAGS - near : LAGS + near + 1, LAGS - near : LAGS + near + 1] for near in _NEAR]
    # One in the middle, and each other value twice.
    return any(each.sum() - 1 > _SURELY * math.sqrt(2 * (each.size - 1) / pixels) for each in around)


def _scene_spectrum(autocorrelation: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Power of the scene with unit variance on a grid of frequencies, averaged over directions (Blackman and Tukey)."""
    scene = autocorrelation.copy()
    scene[LAGS, LAGS] -= noise
    scene *= _taper(LAGS) / (1 - noise)
    grid = np.zeros((_GRID, _GRID))
    grid[: 2 * LAGS + 1, : 2 * LAGS + 1] = scene
    power = np.fft.fft2(np.roll(grid, (-LAGS, -LAGS), (0, 1))).real
    frequency = np.fft.fftfreq(_GRID, 1 / _GRID)
    ring = np.rint(np.hypot(frequency[:, None], frequency[None, :])).astype(int)
    mean = np.bincount(ring.ravel(), power.ravel()) / np.bincount(ring.ravel())
    spectrum: NDArray[np.float64] = np.maximum(mean[ring], 0.0)
    return spectrum


def _taper(reach: int) -> NDArray[np.float64]:
    steps = np.arange(-reach, reach + 1)
    along = np.cos(np.pi * steps / (2 * (reach + 1))) ** 2
    taper: NDArray[np.float64] = np.outer(along, along)
    return taper
