"""Batched convolution with a bank of filters, as neural networks call it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xcorr_app.arrays.kinds import as_array
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
    stride: int | Sequence[int] = 1,
    layout: Layout = "NCHW",
    *,
    padding: int | Sequence[int] | Literal["valid", "same"] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    bias: npt.ArrayLike | None = None,
    method: BankMethod | Im2winOptions = "auto",
) -> Array:
    """Correlate a batch of images with filters of as many channels.

    ``out[i, j, m, n] = sum over r, u, v of images[i, r, m * stride + u, n * stride + v] * filters[j, r, u, v]``: the
    convolution of neural networks, which does not flip, with the options that PyTorch's ``conv2d`` has. Source:
    "Im2win: An Efficient Convolution Paradigm on GPU" (arXiv:2306.14316), corrected.

    Parameters
    ----------
    images : (N, C_i, H, W) or (N, H, W, C_i) array_like
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes; integers of up to 32 bits, float32 or float64.
    filters : (C_o, C_i / groups, F_h, F_w) array of float
        In this order whatever the layout; in host memory, or beside float32 images of a device.
    stride : int or (int, int)
        Pixels from one output to the next, along rows and columns. Of two that differ, all outputs at steps of their
        greatest common divisor are computed.
    layout : {"NCHW", "NHWC"}
        Order of the axes of images and result. The kernels read the first, to which others are copied.
    padding : int, (int, int), "valid" or "same"
        Zeros on each side; ``same`` gives a result as large as the images, at stride 1.
    dilation : int or (int, int)
        Pixels from one tap to the next; the taps between are zeros that are computed with.
    groups : int
        Parts of the channels, each of which has its own filters.
    bias : (C_o,) array of float, optional
        Added to each channel of the result.
    method : {"auto", "im2win", "im2win-basic", "implicit", "implicit-basic", "shallow"} or Im2winOptions
        A kernel by name, as in `xcorr_app.filter_bank`.

    Returns
    -------
    (N, C_o, H', W') or (N, H', W', C_o) array
        With ``H' = (H + 2 * padding - dilation * (F_h - 1) - 1) // stride + 1``; float64 for float64 and integers of 32
        bits, float32 otherwise. On a device float32 results have float32 sums; on the CPU all sums are float64.

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
    images = as_array(images, "images")
    shape = np.shape(filters)  # of a CuPy array too
    if images.ndim != 4 or len(shape) != 4:
        raise ShapeError(
            f"images {images.shape} and filters {shape} need four axes: (N, C, H, W) and (C_o, C, F_h, F_w)"
        )
    if not isinstance(groups, (int, np.integer)) or groups < 1 or shape[0] % groups:
        raise ArgumentError(f"groups is {groups!r}: give a number that divides the {shape[0]} filters")
    xp = array_namespace(images)
    planar = images if layout == "NCHW" else images.transpose(0, 3, 1, 2)
    if planar.shape[1] != shape[1] * groups:
        raise ShapeError(f"{planar.shape[1]} channels in {groups} groups do not fit filters of {shape[1]}")
    taps = _dilated(filters, _pair(dilation, "dilation", 1))
    planar = _padded(planar, padding, taps.shape[2:])
    steps = _pair(stride, "stride", 1)
    step = math.gcd(*steps)
    inputs, outputs = shape[1], shape[0] // groups
    parts = [
        _convolved(planar[:, g * inputs : (g + 1) * inputs], taps[g * outputs : (g + 1) * outputs], step, method)
        for g in range(groups)
    ]
    result = parts[0] if groups == 1 else xp.concatenate(parts, axis=1)
    result = result[:, :, :: steps[0] // step, :: steps[1] // step]
    if bias is not None:
        added = xp.asarray(bias, dtype=result.dtype)
        if added.shape != shape[:1]:
            raise ShapeError(f"bias has shape {added.shape}: give one number for each of {shape[0]} filters")
        result = result + added[:, None, None]
    return xp.ascontiguousarray(result if layout == "NCHW" else result.transpose(0, 2, 3, 1))


def _convolved(planar: Array, taps: Array, stride: int, method: BankMethod | Im2winOptions) -> Array:
    """One group, without padding."""
    if array_namespace(planar) is np or planar.dtype != np.float32:
        return filter_bank(planar, taps, mode="valid", stride=stride, method=method)
    bank = np.zeros(taps.shape, np.float32) if is_device_array(taps) else taps  # its values stay where they are
    checked_bank(planar.shape, planar.dtype, bank, "valid", 0.0, stride, method)
    with on_device_of(planar):
        on_device = sys.modules["cupy"].asarray(taps, dtype=np.float32)
        return im2win_on_device(planar, on_device, stride, form=method)


def _pair(value: int | Sequence[int], name: str, minimum: int) -> tuple[int, int]:
    """Whole numbers for rows and columns."""
    pair = np.asarray(value)
    if pair.dtype.kind not in "iu" or pair.shape not in ((), (2,)) or (pair < minimum).any():
        raise ArgumentError(f"{name} is {value!r}: give a whole number of {minimum} or more, or two")
    rows, columns = np.broadcast_to(pair, 2).tolist()
    return rows, columns


def _dilated(filters: Array, steps: tuple[int, int]) -> Array:
    taps = filters if is_device_array(filters) else np.asarray(filters)
    if steps == (1, 1):
        return taps
    height, width = ((size - 1) * step + 1 for size, step in zip(taps.shape[2:], steps, strict=True))
    spread = array_namespace(taps).zeros((*taps.shape[:2], height, width), taps.dtype)
    spread[:, :, :: steps[0], :: steps[1]] = taps
    return spread


def _padded(planar: Array, padding: int | Sequence[int] | str, taps: tuple[int, int]) -> Array:
    if padding == "same":
        widths = [((size - 1) // 2, size // 2) for size in taps]
    elif isinstance(padding, str) and padding != "valid":
        raise ArgumentError(f"padding is {padding!r}: give pixels, 'valid' or 'same'")
    else:
        widths = [(each, each) for each in _pair(0 if isinstance(padding, str) else padding, "padding", 0)]
    if not np.any(widths):
        return planar
    return array_namespace(planar).pad(planar, ((0, 0), (0, 0), *widths))
