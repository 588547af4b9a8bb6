"""Banks of filters over images in device memory: which kernels run a bank, and what happens where memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.device import filter_device_frames
from xcorr_app.gpu.im2win.bank_run import bank_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.memory import attempt, release_unused, with_second_try
from xcorr_app.gpu.runtime.placement import on_device_of

FEWEST_AT_ONCE = 12
"""Filters of one channel from which all are computed at once; fewer leave most of a tile of filters empty."""

OnHost = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""The same bank over NumPy images (N, C_i, H, W)."""


def bank_of_device_images(
    stack: Array, bank: npt.NDArray[np.float64], shape: tuple[int, ...], mode: Mode, cval: float, on_host: OnHost
) -> Array:
    """Correlate images with every filter of a bank, on the device that holds them."""
    with on_device_of(stack):
        xp, wide = array_namespace(stack), is_wide(stack.dtype)
        what = f"a result of shape {shape}"
        result = with_second_try(xp.empty, shape, np.float64 if wide else np.float32, what=what)
        run = _at_once if runs_at_once(stack.dtype, bank.shape) else _one_by_one
        if attempt(run, stack, bank, mode, cval, result):
            return result
        for i in range(len(stack)):
            release_unused()
            image, out = stack[i : i + 1], result[i : i + 1]
            if not attempt(run, image, bank, mode, cval, out):
                out.set(on_host(image.get()))
        return result


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Whether images of a type are summed in float64 and their results float64."""
    return dtype == np.float64 or (dtype.kind in "iu" and dtype.itemsize > 2)


def runs_at_once(dtype: np.dtype[Any], bank_shape: tuple[int, ...]) -> bool:
    """Whether one kernel computes all filters together, rather than one filter after the other."""
    filters, channels = bank_shape[:2]
    return not is_wide(dtype) and (channels > 1 or filters >= FEWEST_AT_ONCE)


def _at_once(images: Array, bank: npt.NDArray[np.float64], mode: Mode, cval: float, out: Array) -> bool:
    source = images.astype(np.int16) if images.dtype == np.int8 else images
    bank_on_device(source, bank, out, boundary=mode, outside=cval)
    return True


def _one_by_one(images: Array, bank: npt.NDArray[np.float64], mode: Mode, cval: float, out: Array) -> bool:
    """Filter by filter; what is not finite becomes NaN, which it is in the other kernel too."""
    xp = array_namespace(images)
    if images.dtype == np.int8:
        images = images.astype(np.int16)
    elif images.dtype.kind == "f":
        images = xp.where(xp.isfinite(images), images, images.dtype.type(np.nan))
    elif is_wide(images.dtype):
        images = images.astype(np.float64)
    target: Any = {"dtype": "same" if is_wide(images.dtype) else "float32"}
    options: Any = {"cval": cval, "origin": 0, "engine": "auto", "flip": False, "count": False, **target}
    for j, of_filter in enumerate(bank):
        for r, taps in enumerate(of_filter):
            sums, _ = filter_device_frames(images[:, r], taps, mode, **options)
            out[:, j] = sums if r == 0 else out[:, j] + sums
    return True
