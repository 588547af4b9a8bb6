"""Images made ready for a product: zero mean, of magnitude one, in the precision asked for.

Subtracting an image's own mean does not change zero-mean normalised correlation but keeps its rounding small;
scaling keeps squares of values around 1e30 or 1e-30 inside single precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import DTypeLike, NDArray

from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.peaks.standard_values import READ, image_ranges, standard_values
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.types import name_of

_PLAIN_RANGE = (1e-15, 1e15)
"""Magnitudes that need no care in either precision."""

_EXACT_BYTES = 4
"""Of integers that float64 holds."""
_SUMMED_EXACTLY = (np.uint8, np.uint16, np.int16)
"""Types that OpenCV sums without rounding."""
_SINGLE = (np.uint8, np.int8, np.uint16, np.int16, np.float16, np.float32)


@dataclass(frozen=True)
class StandardImages:
    """Images ready for correlation."""

    values: Array
    """Shape (..., H, W): zero mean, largest magnitude one; all zero for a flat image."""
    flat: Array
    """Shape (...): the pixels are all equal up to rounding."""


def working_dtype(*arrays: Array) -> np.dtype[np.floating]:
    """Precision that keeps every input exact or nearly so: float32 up to 16 bits and for float32, else float64.

    Raises
    ------
    DataTypeError
        For complex, boolean-like or other elements that are not real numbers.
    """
    for array in arrays:
        if array.dtype.kind not in "iuf":
            raise DataTypeError(f"images of {array.dtype} cannot be correlated: convert them to integers or floats")
    single = all(array.dtype.newbyteorder("=") in _SINGLE for array in arrays)
    return np.dtype(np.float32 if single else np.float64)


def standardize(images: Array, dtype: DTypeLike, ranges: Array = None) -> StandardImages:
    """Subtract each image's mean and divide by its largest deviation.

    Parameters
    ----------
    images : ndarray, shape (..., H, W)
        Any real dtype, finite; the statistics are taken in float64.
    dtype : float32 or float64
        Precision of the result.
    ranges : ndarray, optional
        Of device arrays, what :func:`xcorr_app.gpu.peaks.standard_values.started_ranges` found of all these images.

    Returns
    -------
    StandardImages
    """
    xp = array_namespace(images)
    axes = (-2, -1)
    if is_device_array(images) and name_of(images.dtype) in READ and images.size:
        return StandardImages(*standard_values(images, np.dtype(dtype), _rounding(images.dtype), ranges))
    if xp is np and images.dtype in _SUMMED_EXACTLY and images.size:
        return _of_short_integers(images, np.dtype(dtype))
    low, high = (extreme(axis=axes, keepdims=True).astype(np.float64) for extreme in (images.min, images.max))
    largest = xp.maximum(abs(low), abs(high))
    if images.dtype.kind == "f":
        # Far from one, squares and sums would leave the range of the type: bring such values near one first.
        far = (largest > _PLAIN_RANGE[1]) | (largest < _PLAIN_RANGE[0])
        if bool(far.any()):
            factor = xp.where(far & (largest > 0), largest, 1.0)
            # In float64, since a device may take the smallest numbers of float32 for zero.
            images = (images.astype(np.float64) / factor).astype(images.dtype)
            low, high = low / factor, high / factor
            largest = xp.maximum(abs(low), abs(high))
    mean = images.mean(axis=axes, keepdims=True, dtype=np.float64)
    deviation = xp.maximum(high - mean, mean - low)
    flat = _is_flat(low, high, images.dtype)
    scale = xp.where(flat, 0.0, 1.0 / xp.where(flat, 1.0, deviation))
    if np.dtype(dtype) == np.float32 and working_dtype(images) == np.float32:
        values = xp.empty(images.shape, np.float32)
        # On a host one by one, so that each stays in the cache.
        for index in np.ndindex(images.shape[:-2]) if xp is np else ((...,),):
            image = values[index]
            image[...] = images[index]
            image -= mean[index].astype(np.float32)
            image *= scale[index].astype(np.float32)
    else:
        values = images - mean
        values *= scale
    return StandardImages(values.astype(dtype, copy=False), flat[..., 0, 0])


def _of_short_integers(images: NDArray[np.integer], dtype: np.dtype[Any]) -> StandardImages:
    """Standardise integers on the host, of which the range, the mean and the scaled values are a pass each."""
    values, flat = np.empty(images.shape, dtype), np.zeros(images.shape[:-2], dtype=bool)
    depth = cv2.CV_64F if dtype == np.float64 else cv2.CV_32F
    for index in np.ndindex(flat.shape):
        low, high, _, _ = cv2.minMaxLoc(images[index])
        mean = cv2.mean(images[index])[0]
        deviation = max(high - mean, mean - low)
        if high > low:
            ends = (low - mean) / deviation, (high - mean) / deviation
            cv2.normalize(images[index], values[index], *ends, cv2.NORM_MINMAX, depth)
        else:
            flat[index], values[index] = True, 0
    return StandardImages(values, flat)


def flat_images(images: Array) -> Array:
    """Whether each image (..., H, W) has the same value everywhere, up to the rounding of its type.

    Of types that kernels read the answer is on the host, wherever the images are.
    """
    is_exact = images.dtype.kind != "f" and images.dtype.itemsize <= _EXACT_BYTES
    if is_device_array(images) and name_of(images.dtype) in READ and images.size:
        low, high = image_ranges(images)
    elif is_exact and isinstance(images, np.ndarray):
        return _of_one_value(images)
    else:
        low, high = (extreme(axis=(-2, -1)) for extreme in (images.min, images.max))
    if is_exact:
        return low == high
    return _is_flat(low.astype(np.float64), high.astype(np.float64), images.dtype)


def _of_one_value(images: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether all pixels of each image (..., H, W) on the host are the same: nearly all tell it by their first row."""
    found = _have_one_value(images[..., :1, :])
    found[found] = _have_one_value(images[found])
    return found


def _have_one_value(images: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = np.asarray(images.min(axis=(-2, -1)) == images.max(axis=(-2, -1)))
    return same


def _is_flat(low: Array, high: Array, dtype: np.dtype[Any]) -> Array:
    xp = array_namespace(low)
    # Halves, since the difference of the largest numbers of a type overflows.
    return high / 2 - low / 2 <= _rounding(dtype) * (xp.maximum(abs(low), abs(high)) / 2)


def _rounding(dtype: np.dtype[Any]) -> float:
    # Integers are compared as float64, which matters from 50 bits on: below, the rounding is less than one.
    return float(4 * np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
