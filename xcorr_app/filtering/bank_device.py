"""Banks of filters over images in device memory: which kernels run a bank, and what happens where memory runs out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.array_choice import decide_bank, is_wide
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.device import filter_device_frames
from xcorr_app.gpu.im2win.bank_run import bank_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import in_parts, with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of

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
        decision = decide_bank(stack.shape, stack.dtype, bank.shape, device_limits(current_device()), mode)
        run = functools.partial(at_once, decision.kernel) if decision.engine == "im2win" else one_by_one

        def some(start: int, stop: int) -> None:
            run(stack[start:stop], bank, mode, cval, result[start:stop])

        def alone(i: int) -> None:
            result[i : i + 1].set(on_host(stack[i : i + 1].get()))

        for _ in in_parts(some, len(stack), alone=alone):
            pass
        return result


def at_once(kernel: str, images: Array, bank: npt.NDArray[np.float64], mode: Mode, cval: float, out: Array) -> None:
    """All filters together, by a kernel of the table of Im2win."""
    source = images.astype(np.int16) if images.dtype == np.int8 else images
    bank_on_device(source, bank, out, kernel=kernel, boundary=mode, outside=cval)


def one_by_one(images: Array, bank: npt.NDArray[np.float64], mode: Mode, cval: float, out: Array) -> None:
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
