"""Many filters over one image at once, with one or several channels.

On the CPU everything is computed in float64: OpenCV's direct sums for small filters; for larger ones the Fourier
transform, where the image's spectrum serves all filters. A value that is not finite would spread over the whole plane
in a transform, so it is taken out first, and what its neighbourhood reaches is marked afterwards. CuPy arrays stay on
their device: `xcorr_app.filtering.bank_device`.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import scipy.fft

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.array_choice import decide_bank, is_wide
from xcorr_app.filtering.bank_device import bank_of_device_images
from xcorr_app.filtering.boundary import MODES, Mode, padded
from xcorr_app.gpu.runtime.arrays import Array, is_device_array

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


def filter_bank(images: Array, bank: npt.ArrayLike, *, mode: Mode = "reflect", cval: float = 0.0) -> Array:
    """Correlate images with every filter of a bank.

    ``out[j, y, x] = sum over r, u, v of image[r, y + u, x + v] * bank[j, r, u, v]``; with every mode but ``valid``, the
    filters are centred on the pixel (on element ``F // 2`` of each side) and the result has the size of the image.

    Parameters
    ----------
    images : (..., H, W) or (..., C_i, H, W) array
        NumPy or CuPy; integers of up to 32 bits, float32 or float64. With channels where `bank` has them.
    bank : (C_o, F_h, F_w) or (C_o, C_i, F_h, F_w) array of float
        The filters, not flipped; see `xcorr_app.filtering.banks` for common ones, and ``numpy.load`` for your own.
    mode : {"reflect", "constant", "nearest", "mirror", "wrap", "valid"}
        What lies outside an image, as ``scipy.ndimage`` names it; ``valid`` keeps the outputs that need nothing from
        there, (H - F_h + 1, W - F_w + 1).
    cval : float
        Value outside under ``constant``, in the units of `images`.

    Returns
    -------
    (..., C_o, H', W') array
        float64 for float64 and integers of 32 bits, float32 otherwise; rounded once, from float64. NaN wherever a
        filter's footprint holds a value that is not finite. Of a CuPy array on its device, where float32 results have
        float32 sums: n products are off by at most ``n * 2**-24`` of the sum of their sizes.

    Raises
    ------
    ShapeError
        The shapes do not belong together, or ``valid`` leaves no output.
    ArgumentError
        `bank` holds values that are not finite; `mode` is unknown; `cval` is not finite.
    DataTypeError
        `images` is not a NumPy or CuPy array of a supported type.
    DeviceMemoryError
        The result does not fit into the memory of the images' device.

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.array([[[-1, 1]], [[1, 1]]])
    >>> filter_bank(np.array([[1.0, 2, 4]]), steps, mode="valid").tolist()
    [[[1.0, 2.0]], [[3.0, 6.0]]]
    """
    on_device = is_device_array(images)
    if not (on_device or isinstance(images, np.ndarray)) or images.dtype.newbyteorder("=").name not in _TYPES:
        raise DataTypeError(f"images: expected a NumPy or CuPy array of one of {', '.join(_TYPES)}")
    filters = _checked_bank(bank)
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is unknown: take one of {', '.join(MODES)}")
    if not np.isfinite(cval):
        raise ArgumentError(f"cval={cval}: give a finite value")
    channels, height, width = filters.shape[1:]
    with_channels = np.ndim(bank) == 4
    if images.ndim < 2 + with_channels or 0 in images.shape or (with_channels and images.shape[-3] != channels):
        wanted = f"(..., {channels}, H, W)" if with_channels else "(..., H, W)"
        raise ShapeError(f"images have shape {images.shape}: a bank of shape {np.shape(bank)} takes {wanted}")
    rows, columns = images.shape[-2:]
    if mode == "valid":
        rows, columns = rows - height + 1, columns - width + 1
        if rows < 1 or columns < 1:
            raise ShapeError(f"filters of {height} x {width} do not fit into images of {images.shape[-2:]}: pad them")
    leading = images.shape[: images.ndim - 2 - with_channels]
    stack = images.reshape(-1, channels, *images.shape[-2:])
    shape = (len(stack), len(filters), rows, columns)

    def on_host(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return _on_host(images, filters, (len(images), *shape[1:]), mode, cval)

    result = bank_of_device_images(stack, filters, shape, mode, cval, on_host) if on_device else on_host(stack)
    return result.reshape(*leading, *shape[1:])


def _on_host(
    stack: npt.NDArray[Any], filters: npt.NDArray[np.float64], shape: tuple[int, ...], mode: Mode, cval: float
) -> npt.NDArray[Any]:
    result = np.empty(shape, np.float64 if is_wide(stack.dtype) else np.float32)
    height, width = filters.shape[2:]
    margins = (height // 2, height - 1 - height // 2), (width // 2, width - 1 - width // 2)
    for image, out in zip(stack, result, strict=True):
        _correlate(np.stack([padded(plane, *margins, mode, cval, np.float64) for plane in image]), filters, out)
    return result


def _checked_bank(bank: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        filters = np.asarray(bank, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("bank: expected an array of numbers") from error
    if filters.ndim not in (3, 4) or filters.size == 0:
        raise ShapeError(f"bank has shape {filters.shape}: expected (C_o, F_h, F_w) or (C_o, C_i, F_h, F_w)")
    if not np.isfinite(filters).all():
        raise ArgumentError("bank holds values that are not finite")
    return filters if filters.ndim == 4 else filters[:, None]


def _correlate(image: npt.NDArray[np.float64], filters: npt.NDArray[np.float64], out: npt.NDArray[Any]) -> None:
    """Write the correlations that need nothing from outside; `image` (C_i, H, W) is overwritten."""
    bad = ~np.isfinite(image).all(axis=0)
    spoilt = bool(bad.any())
    if spoilt:
        image[:, bad] = 0
    count, channels, rows, columns = filters.shape
    shape = (1, channels, *image.shape[-2:])
    engine = decide_bank(shape, image.dtype, (count, channels, rows, columns), None).engine
    # Sums beyond float32 become infinite, as they would in its own arithmetic.
    with np.errstate(over="ignore"):
        (_direct if engine == "opencv" else _by_spectrum)(image, filters, out)
    if spoilt:
        # Counts of bad pixels in every footprint, from sums over rectangles.
        counts = np.pad(bad, ((1, 0), (1, 0))).astype(np.int64).cumsum(axis=0).cumsum(axis=1)
        height, width = filters.shape[-2:]
        inside = (
            counts[height:, width:] - counts[:-height, width:] - counts[height:, :-width] + counts[:-height, :-width]
        )
        out[:, inside > 0] = np.nan


def _direct(image: npt.NDArray[np.float64], filters: npt.NDArray[np.float64], out: npt.NDArray[Any]) -> None:
    rows, columns = out.shape[-2:]
    for of_filter, result in zip(filters, out, strict=True):
        total = np.zeros((rows, columns))
        for plane, taps in zip(image, of_filter, strict=True):
            # The anchor is the first element: what OpenCV takes from outside touches only what is cut off.
            sums = cv2.filter2D(plane, cv2.CV_64F, taps, anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
            total += sums[:rows, :columns]
        result[...] = total


def _by_spectrum(image: npt.NDArray[np.float64], filters: npt.NDArray[np.float64], out: npt.NDArray[Any]) -> None:
    height, width = (scipy.fft.next_fast_len(size, real=True) for size in image.shape[-2:])
    spectrum = scipy.fft.rfft2(image, (height, width))
    rows, columns = out.shape[-2:]
    for of_filter, result in zip(filters, out, strict=True):
        of_taps = scipy.fft.rfft2(of_filter, (height, width))
        product = np.einsum("ryx,ryx->yx", spectrum, of_taps.conj())
        result[...] = scipy.fft.irfft2(product, (height, width))[:rows, :columns]
