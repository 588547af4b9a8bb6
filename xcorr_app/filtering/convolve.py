"""Filtering of images with any taps: `convolve`, `filter_taps` and, with a count of clipped pixels, `filter_frames`.

What is computed
    ``scipy.ndimage.convolve`` (or ``correlate``) of every frame in float64, origin and even sizes included, on the
    last two axes. With ``mode="valid"``, only the outputs whose footprint lies inside the image. Images smaller than
    the filter are folded as often as needed, where SciPy's ``reflect`` errs in more than one dimension.
How exactly
    float64 images to 1e-12, float32 results to 2e-6 of the largest sum of ``|taps| * |image|`` in a frame.
    Integers are that float64 result rounded half to even and clipped, never truncated or wrapped; only a result
    within 1e-2 of a half may go to the other neighbour.
NaN and infinity
    Touch no output whose footprint, the rectangle of the taps, does not cover them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, DeviceError, ShapeError
from xcorr_app.filtering.boundary import MODES, Mode
from xcorr_app.filtering.engines.choice import ENGINES, EngineName, run_engine
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.rounding import ResultType, result_type, store
from xcorr_app.filtering.taps import Filter, Kernel, Origin, correlation_kernel
from xcorr_app.gpu.arrays import Array, array_namespace, is_device_array

IMAGE_TYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "int16", "float32", "float64"))
"""Types of pixels that can be filtered."""


def convolve(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    engine: EngineName = "auto",
) -> Array:
    """Convolve every frame with two-dimensional taps, as ``scipy.ndimage.convolve`` does but faster.

    Parameters
    ----------
    images : (..., H, W) array
        NumPy; uint8, uint16, int16, float32 or float64. Not modified.
    taps : (F_H, F_W) array_like or Filter
        Any sizes, odd or even; a `Filter` comes from ``xcorr_app.filters``. Not modified.
    mode : {"reflect", "constant", "nearest", "mirror", "wrap", "valid"}
        What lies outside an image, as in ``scipy.ndimage``; ``"valid"`` returns only outputs that need nothing from
        outside, ``(H - F_H + 1, W - F_W + 1)`` of them.
    cval : float
        The outside under ``mode="constant"``, in the units of ``images``.
    origin : int or pair of int
        Moves the filter by so many pixels (rows, columns), as in ``scipy.ndimage``; 0 for ``mode="valid"``.
    dtype : {"same", "float32"}
        Type of the result: that of ``images``, or float32 without rounding.
    engine : {"auto", "opencv", "separable", "fft", "scipy"}
        How to compute it. ``"auto"`` takes the fastest that is exact enough; ``"separable"`` needs taps of rank 1 or
        2, ``"fft"`` finite images; ``"scipy"`` is the slow float64 reference.

    Returns
    -------
    array
        New, of the shape of ``images`` (smaller under ``"valid"``).

    Raises
    ------
    ShapeError
        ``images`` is empty or has fewer than two axes, ``taps`` is not a matrix, or under ``"valid"`` the filter is
        larger than the images.
    DataTypeError
        A type of element is not supported.
    ArgumentError
        An option is unknown or out of range, or the engine cannot run these taps or images.
    DeviceError
        ``images`` is in device memory.

    Examples
    --------
    >>> import numpy as np
    >>> convolve(np.array([[0, 0, 9, 0]], dtype=np.uint8), [[1, 2, 3]])
    array([[ 0,  9, 18, 27]], dtype=uint8)
    """
    return filter_frames(images, taps, mode, cval=cval, origin=origin, dtype=dtype, engine=engine)[0]


def filter_taps(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    engine: EngineName = "auto",
) -> Array:
    """Correlate every frame with taps: `convolve` without the flip, as ``scipy.ndimage.correlate``.

    Parameters
    ----------
    images, taps, mode, cval, origin, dtype, engine
        As in `convolve`.

    Returns
    -------
    array
        As from `convolve`.

    Raises
    ------
    ShapeError, DataTypeError, ArgumentError, DeviceError
        As in `convolve`.

    Examples
    --------
    >>> import numpy as np
    >>> filter_taps(np.array([[0, 0, 9, 0]], dtype=np.uint8), [[1, 2, 3]])
    array([[ 0, 27, 18,  9]], dtype=uint8)
    """
    return filter_frames(images, taps, mode, cval=cval, origin=origin, dtype=dtype, engine=engine, flip=False)[0]


def filter_frames(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    engine: EngineName = "auto",
    flip: bool = True,
    out: npt.NDArray[Any] | None = None,
) -> tuple[Array, int]:
    """Filter as `convolve` does and count the pixels that were clipped; can fill an existing array.

    Parameters
    ----------
    images, taps, mode, cval, origin, dtype, engine
        As in `convolve`.
    flip : bool
        Convolution; ``False`` is correlation, as in `filter_taps`.
    out : array, optional
        Takes the result: of its shape and type, not overlapping with ``images`` in memory.

    Returns
    -------
    filtered : array
        ``out`` or a new array.
    clipped : int
        Results that did not fit the integer type and were set to its nearest limit, over all frames.

    Raises
    ------
    ShapeError, DataTypeError, ArgumentError, DeviceError
        As in `convolve`; also for an unfit ``out``.

    Examples
    --------
    >>> import numpy as np
    >>> filter_frames(np.array([[0, 100, 200]], dtype=np.uint8), [[2]])
    (array([[  0, 200, 255]], dtype=uint8), 1)
    """
    _check_images(images)
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is unknown: take one of {', '.join(MODES)}")
    if engine not in ENGINES:
        raise ArgumentError(f"engine {engine!r} is unknown: take one of {', '.join(ENGINES)}")
    if images.dtype.kind != "f" and not math.isfinite(cval):
        raise ArgumentError(f"cval must be finite for images of {images.dtype}, not {cval}")
    target = result_type(images.dtype, dtype)
    # Half an ulp of a float32 sum; everything else is held to float64.
    kernel = correlation_kernel(taps, origin, flip=flip, tolerance=6e-8 if target == np.float32 else 1e-12)
    shape = images.shape[:-2] + _result_shape(images.shape[-2:], kernel, mode, origin)
    if out is None:
        out = np.empty(shape, target)
    elif out.shape != shape or out.dtype != target:
        raise ShapeError(f"out must be {target} of shape {shape}, not {out.dtype} of shape {out.shape}")
    elif np.may_share_memory(out, images):
        raise ArgumentError("out must not overlap with the images in memory")
    clipped = 0
    for index in np.ndindex(images.shape[:-2]):
        task = Task(images[index], kernel, mode, cval, integer_result=target.kind != "f")
        clipped += store(run_engine(engine, task), kernel.exponent, out[index])
    return out, clipped


def _check_images(images: Array) -> None:
    array_namespace(images)
    if is_device_array(images):
        raise DeviceError("filtering runs on the CPU: pass cupy.asnumpy(images)")
    if images.dtype.newbyteorder("=") not in IMAGE_TYPES:
        known = ", ".join(map(str, IMAGE_TYPES))
        raise DataTypeError(f"images of {images.dtype} cannot be filtered: convert them to one of {known}")
    if images.ndim < 2 or not images.size:
        raise ShapeError(f"images must be of shape (..., H, W) and not empty, not {images.shape}")


def _result_shape(frame: tuple[int, int], kernel: Kernel, mode: Mode, origin: Origin) -> tuple[int, int]:
    if mode != "valid":
        return frame
    if np.any(np.asarray(origin)):
        raise ArgumentError("mode 'valid' has no outside to move into: origin must be 0")
    height, width = (size - taps + 1 for size, taps in zip(frame, kernel.shape, strict=True))
    if height < 1 or width < 1:
        raise ShapeError(f"mode 'valid' needs images of at least {kernel.shape}, the size of the taps, not {frame}")
    return height, width
