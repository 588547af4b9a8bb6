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
import scipy  # whose parts are loaded when they are asked for

from xcorr_app.arrays.kinds import as_array, is_lazy, keeps_labels_but_channels
from xcorr_app.arrays.lazy import with_filters
from xcorr_app.filtering.array_choice import decide_bank
from xcorr_app.filtering.bank_device import bank_of_device_images
from xcorr_app.filtering.bank_request import BankMethod, BankRequest, checked_bank
from xcorr_app.filtering.boundary import Mode, padded
from xcorr_app.filtering.kernel_names import on_gpu
from xcorr_app.gpu.im2win.options import Im2winOptions, kernel_and_macros
from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host


@keeps_labels_but_channels
def filter_bank(
    images: Array,
    bank: npt.ArrayLike,
    *,
    mode: Mode = "reflect",
    cval: float = 0.0,
    stride: int = 1,
    method: BankMethod | Im2winOptions = "auto",
) -> Array:
    """Correlate images with every filter of a bank.

    ``out[j, y, x] = sum over r, u, v of image[r, y + u, x + v] * bank[j, r, u, v]``; with every mode but ``valid``, the
    filters are centred on the pixel (on element ``F // 2`` of each side) and the result has the size of the image.

    Parameters
    ----------
    images : (..., H, W) or (..., C_i, H, W) array_like
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes (of dask, the result is dask); integers of up to
        32 bits, float32 or float64. With channels where `bank` has them.
    bank : (C_o, F_h, F_w) or (C_o, C_i, F_h, F_w) array of float
        The filters, not flipped; see `xcorr_app.filtering.banks` for common ones, and ``numpy.load`` for your own.
    mode : {"reflect", "constant", "nearest", "mirror", "wrap", "valid"}
        What lies outside an image, as ``scipy.ndimage`` names it; ``valid`` keeps the outputs that need nothing from
        there, (H - F_h + 1, W - F_w + 1).
    cval : float
        Value outside under ``constant``, in the units of `images`.
    stride : int
        Pixels from one output to the next, along both axes: what is computed is ``out[..., ::stride, ::stride]``.
    method : {"auto", "im2win", "im2win-basic", "implicit", "implicit-basic"} or Im2winOptions
        A kernel by name, which needs a GPU and sums in float32; NumPy arrays go there and come back. ``"im2win"``
        makes the window tensor and multiplies it by tiles (`Im2winOptions` has them, and its steps),
        ``"im2win-basic"`` by a thread a result; ``"implicit"`` and ``"implicit-basic"`` take the tensor's elements
        from the images.

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
        `bank` holds values that are not finite; `mode` or `method` is unknown, or the method does not compute these
        filters; `cval` is not finite; `stride` is not a whole number above 0.
    DataTypeError
        `images` is not a NumPy or CuPy array of a supported type.
    DeviceError
        A method was asked for, and no GPU can be used.
    DeviceMemoryError
        The result does not fit into the memory of the images' device.

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.array([[[-1, 1]], [[1, 1]]])
    >>> filter_bank(np.array([[1.0, 2, 4]]), steps, mode="valid").tolist()
    [[[1.0, 2.0]], [[3.0, 6.0]]]
    """
    if is_lazy(images):
        how: Any = {"mode": mode, "cval": cval, "stride": stride, "method": method}
        return with_filters(lambda block: filter_bank(block, bank, **how), images, channels=np.ndim(bank) == 4)
    images = as_array(images, "images")
    if is_device_array(images):
        return bank_of_device_images(images, bank, mode, cval, stride, method, _on_host)
    request = checked_bank(images.shape, images.dtype, bank, mode, cval, stride, method)
    if method != "auto":
        source = on_gpu(kernel_and_macros(method)[0], images)
        return to_host(bank_of_device_images(source, bank, mode, cval, stride, method, _on_host))
    return _on_host(images.reshape(request.stack_shape), request).reshape(request.result_shape)


def _on_host(stack: npt.NDArray[Any], request: BankRequest) -> npt.NDArray[Any]:
    result = np.empty((len(stack), *request.shape[1:]), request.target)
    filters, step = request.filters, slice(None, None, request.stride)
    height, width = filters.shape[2:]
    margins = (height // 2, height - 1 - height // 2), (width // 2, width - 1 - width // 2)
    for image, out in zip(stack, result, strict=True):
        whole = np.stack([padded(plane, *margins, request.mode, request.cval, np.float64) for plane in image])
        every = out
        if request.stride > 1:
            rows, columns = (size - taps + 1 for size, taps in zip(whole.shape[1:], (height, width), strict=True))
            every = np.empty((len(filters), rows, columns), request.target)
        _correlate(whole, filters, every)
        if every is not out:
            out[...] = every[:, step, step]
    return result


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
