"""Two images, by the signature of ``skimage.registration.phase_cross_correlation``."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arrays.kinds import as_array
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace
from xcorr_app.registration.estimate import estimate_shifts

_FAR_OVERLAP = 0.02
"""Share of the images that overlaps at the farthest shifts of `disambiguate`."""
_IMAGINARY = 0.1
"""Share of the largest value of an image above which its imaginary part is not that of a shift by part of a pixel."""
_ACROSS = 64
"""Pixels across that a single line is given."""


def phase_cross_correlation(
    reference_image: Array,
    moving_image: Array,
    *,
    upsample_factor: int = 1,
    space: Literal["real", "fourier"] = "real",
    disambiguate: bool = False,
    reference_mask: Array | None = None,
    moving_mask: Array | None = None,
    overlap_ratio: float = 0.3,
    normalization: Literal["phase"] | None = "phase",
) -> tuple[NDArray[np.floating[Any]], float, float]:
    """Shift between two images, in place of scikit-image's function of this name: the import alone changes.

    The images are measured as :func:`xcorr_app.estimate_shifts` measures frames, which also says how certain that is.
    ``xc.shift_pair`` is the same function.

    Parameters
    ----------
    reference_image, moving_image : array_like, shape (Y, X)
        Of one size, unless both have masks.
    upsample_factor : int
        1: whole pixels. More: fractions of a pixel, with masks too, not rounded to a grid.
    space : {'real', 'fourier'}
        ``fourier``: the images are spectra of real images, as ``fftn`` makes them.
    disambiguate : bool
        Search all shifts that leave 2 % of the images overlapping, otherwise up to half their size. Nothing wraps
        around in either case.
    reference_mask, moving_mask : array_like, optional
        True where pixels count; without the second, the first is of both images.
    overlap_ratio : float
        With masks: the smallest overlap, as a fraction of the largest there is.
    normalization : {'phase', None}
        Taken, and not used: images are compared by the zero-mean normalised correlation of what overlaps, which noise
        misleads less than ``phase``, and uneven brightness less than None.

    Returns
    -------
    shift : ndarray, shape (2,)
        Rows and columns to add to the moving image; of images of two sizes, from middle to middle.
    error : float
        ``sqrt(1 - score**2)`` of the normalised correlation there: 0 for equal images, 1 for unrelated ones.
    phasediff : float
        0: images that are real, at the highest of their correlations, differ by no phase.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For unknown words, images that are not two-dimensional, of two sizes, or with NaN that no mask leaves out, and
        spectra of complex images.

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(100, 100)), 2)
    >>> shift, error, phasediff = xc.phase_cross_correlation(scene[10:74, 10:74], scene[13:77, 8:72])
    >>> shift
    array([ 3., -2.])
    """
    if normalization not in ("phase", None):
        raise ArgumentError(f"normalization is {normalization!r}: use 'phase' or None")
    masked = not (reference_mask is None and moving_mask is None)
    images = [_image(reference_image, "reference_image", space), _image(moving_image, "moving_image", space)]
    counts = _counts(
        images, [None if mask is None else as_array(mask, "mask") != 0 for mask in (reference_mask, moving_mask)]
    )
    shapes = np.array([image.shape for image in images])
    size = shapes.max(axis=0)
    reach = np.where(size == 1, 1, size - 1 if masked or disambiguate else size // 2)
    shift, score = np.zeros(2), math.nan
    if all(_varies(image, mask) for image, mask in zip(images, counts, strict=True)):
        result = estimate_shifts(
            _together(images, size, counts),
            0,
            (int(reach[0]), int(reach[1])),
            subpixel="none" if upsample_factor == 1 else "gaussian" if masked else "phase",
            mask=_together(counts, size) if masked else None,
            min_overlap=overlap_ratio if masked else _FAR_OVERLAP if disambiguate else None,
        )
        shift, score = result.shifts[1], float(result.score[1])
    if not np.isfinite(score):
        if disambiguate:
            warnings.warn("Could not determine real-space shift: an image is empty", stacklevel=2)
        warnings.warn("Could not determine RMS error between images: one may be empty", stacklevel=2)
        shift = np.zeros(2)
    shift = np.where(size == 1, 0.0, shift) + (shapes[1] - shapes[0]) / 2
    error = math.sqrt(max(1 - score * score, 0.0)) if math.isfinite(score) else math.nan
    return shift.astype(_float_type(reference_image, moving_image)), error, 0.0


shift_pair = phase_cross_correlation


def _image(given: Any, name: str, space: str) -> Array:
    image = as_array(given, name)
    if image.ndim != 2 or not image.size:
        raise ShapeError(
            f"{name} has shape {image.shape}: pairs are (Y, X), with pixels; skimage.registration measures volumes"
        )
    if space.lower() == "real":
        return image
    if space.lower() != "fourier":
        raise ArgumentError(f"space is {space!r}: use 'real' or 'fourier'")
    image = fft_namespace(image).ifftn(image)
    if float(abs(image.imag).max()) > _IMAGINARY * float(abs(image).max()):
        raise ArgumentError(f"{name} is no spectrum of a real image: skimage.registration takes those of complex ones")
    return image.real


def _counts(images: list[Array], masks: list[Array | None]) -> list[Array]:
    """Which pixels count of each image, whose sizes and values are checked."""
    xp = array_namespace(images[0])
    if all(mask is None for mask in masks):
        if images[0].shape != images[1].shape:
            raise ShapeError("the images are of two sizes: give each a mask, of ones where all of it counts")
        if not all(bool(xp.isfinite(image).all()) for image in images):
            raise ArgumentError("the images hold NaN or infinite pixels: leave them out by reference_mask, moving_mask")
    first = xp.ones(images[0].shape, bool) if masks[0] is None else masks[0]
    counts = [first, first if masks[1] is None else masks[1]]
    if any(mask.shape != image.shape for mask, image in zip(counts, images, strict=True)):
        raise ShapeError("a mask is of another size than its image: images of two sizes need a mask each")
    return counts


def _varies(image: Array, counts: Array) -> bool:
    values = image[counts]
    return bool(values.size) and bool(values.min() != values.max())


def _together(images: list[Array], size: NDArray[Any], counts: list[Array] | None = None) -> Array:
    """Two images as frames (2, h, w) of the size of the larger, with zeros below and to the right of what they hold.

    Zeros stand where nothing `counts`, too. A single line is made an image: of what counts by repeating it, of all else
    by a texture across, which holds the other axis.
    """
    xp = array_namespace(images[0])
    frames = xp.zeros((2, *size.tolist()), np.result_type(*(image.dtype for image in images)))
    for frame, image, counted in zip(frames, images, counts or (True, True), strict=True):
        frame[: image.shape[0], : image.shape[1]] = xp.where(counted, image, 0)
    for axis in np.flatnonzero(size == 1) + 1:
        if counts:
            across = xp.cos(xp.arange(_ACROSS) ** 2 / _ACROSS)
            frames = (frames - frames.mean(axis=(1, 2), keepdims=True)) * (across[:, None] if axis == 1 else across)
        else:
            frames = frames.repeat(_ACROSS, axis=axis)
    return frames


def _float_type(*images: Any) -> type[np.floating[Any]]:
    """Type of number of a shift, as scikit-image has it: float32 of images in that or less."""
    names = {str(getattr(image, "dtype", "float64")).rpartition(".")[2] for image in images}
    return np.float32 if names <= {"float16", "float32", "complex64"} else np.float64
