"""Sums from which the noise of images in device memory is told: one launch for all of them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = ["LAGS", "READ", "mean_products", "noise_sums", "noise_sums_launch"]

LAGS = 3
"""Pixels between the factors of a product at most, down or across."""
READ = {**INPUT_TYPES, "float64": "double"}
"""Types of images."""
_SUMS = 2 * (2 * LAGS + 1)
_THREADS = 256


def noise_sums_launch(images: int, element: str) -> Launch:
    """Choose the launch for images of a type, as NumPy names it."""
    return Launch("peaks/noise_sums", {"RIGHT_TYPE": READ[element]}, images, _THREADS, 8 * _SUMS * (_THREADS // 32))


def noise_sums(images: Any, period: int, groups: int) -> NDArray[np.float64]:
    """Mean products (n, 7) of pixels about their mean, of four rows in every `period`: see `mean_products`."""
    cupy = importlib.import_module("cupy")
    count, height, width = images.shape
    sums = cupy.empty((count, _SUMS))
    numbers = height, width, period, groups
    start(noise_sums_launch(count, name_of(images.dtype)), (cupy.ascontiguousarray(images), sums), numbers)
    return mean_products(sums.get(), groups, width)


def mean_products(sums: NDArray[np.float64], groups: int, width: int) -> NDArray[np.float64]:
    """Mean products about the mean of all pixels: of none, 1, 2 and 3 pixels apart down, then 1, 2 and 3 across."""
    rows = LAGS + 1
    lags = np.arange(1, LAGS + 1)
    pairs = groups * np.concatenate([[rows * width], (rows - lags) * width, rows * (width - lags)])
    products, factors = sums[:, ::2] / pairs, sums[:, 1::2] / pairs
    mean = factors[:, :1] / 2
    found: NDArray[np.float64] = products - mean * factors + mean * mean
    return found
