"""Batched convolution with a bank of filters, as neural networks call it: no padding, any stride."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.filtering.bank_request import BankMethod, checked_bank
from xcorr_app.filtering.filter_bank import filter_bank
from xcorr_app.gpu.im2win.options import Im2winOptions
from xcorr_app.gpu.im2win.run import im2win_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.placement import on_device_of

Layout: TypeAlias = Literal["NCHW", "NHWC"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def conv2d(
    images: Array,
    filters: npt.ArrayLike,
    stride: int = 1,
    layout: Layout = "NCHW",
    *,
    method: BankMethod | Im2winOptions = "auto",
) -> Array:
    """Correlate a batch of images with filters of as many channels.

    ``out[i, j, m, n] = sum over r, u, v of images[i, r, m * stride + u, n * stride + v] * filters[j, r, u, v]``: the
    convolution of neural networks, which does not flip, without padding. Source: "Im2win: An Efficient Convolution
    Paradigm on GPU" (arXiv:2306.14316), corrected.

    Parameters
    ----------
    images : (N, C_i, H, W) or (N, H, W, C_i) array
        NumPy or CuPy; integers of up to 32 bits, float32 or float64.
    filters : (C_o, C_i, F_h, F_w) array of float
        In this order whatever the layout; in host memory, or beside float32 images of a device.
    stride : int
        Pixels from one output to the next, along both axes.
    layout : {"NCHW", "NHWC"}
        Order of the axes of images and result. The kernels read the first, to which others are copied.
    method : {"auto", "im2win", "im2win-basic", "implicit", "implicit-basic", "shallow"} or Im2winOptions
        A kernel by name, as in `xcorr_app.filter_bank`.

    Returns
    -------
    (N, C_o, H', W') or (N, H', W', C_o) array
        With ``H' = (H - F_h) // stride + 1``; float64 for float64 and integers of 32 bits, float32 otherwise. On a
        device float32 results have float32 sums; on the CPU all sums are float64.

    Raises
    ------
    ShapeError
        The shapes do not belong together, or the filters do not fit into the images.
    ArgumentError
        An option is unknown or out of range, or the method does not compute these filters.
    DataTypeError
        A type of element is not supported.
    DeviceError
        A method was asked for, and no GPU can be used.
    DeviceMemoryError
        The memory of the device that holds `images` does not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> conv2d(np.arange(12.0).reshape(1, 1, 3, 4), np.ones((1, 1, 2, 2)), stride=2).tolist()
    [[[[10.0, 18.0]]]]
    """
    if layout not in LAYOUTS:
        raise ArgumentError(f"layout {layout!r} is unknown: take one of {', '.join(LAYOUTS)}")
    xp = array_namespace(images)
    on_device = is_device_array(filters)
    shape = np.shape(filters)  # of a CuPy array too
    if images.ndim != 4 or len(shape) != 4:
        raise ShapeError(
            f"images {images.shape} and filters {shape} need four axes: (N, C, H, W) and (C_o, C, F_h, F_w)"
        )
    planar = images if layout == "NCHW" else images.transpose(0, 3, 1, 2)
    if xp is not np and images.dtype == np.float32:
        bank = np.zeros(shape, np.float32) if on_device else filters  # its values stay where they are
        checked_bank(planar.shape, planar.dtype, bank, "valid", 0.0, stride, method)
        with on_device_of(images):
            taps = sys.modules["cupy"].asarray(filters, dtype=np.float32)
            result = im2win_on_device(planar, taps, int(stride), form=method)
    else:
        result = filter_bank(planar, filters, mode="valid", stride=stride, method=method)
    return result if layout == "NCHW" else xp.ascontiguousarray(result.transpose(0, 2, 3, 1))
