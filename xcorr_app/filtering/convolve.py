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

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.arrays.axes import named_axes
from xcorr_app.arrays.kinds import as_array, exact_float64, is_lazy, keeps_labels, rounded_to
from xcorr_app.arrays.lazy import over_frames
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.device import filter_device_frames
from xcorr_app.filtering.engines.choice import run_engine
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.kernel_names import FilterKernel, kernel_name, require_gpu
from xcorr_app.filtering.request import Request, checked_request
from xcorr_app.filtering.rounding import ResultType, store
from xcorr_app.filtering.taps import Filter, Origin
from xcorr_app.filtering.transfer import filter_through_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.stencil.exchange import ExchangeOptions
from xcorr_app.system import worker_count

_INTEGERS = ("uint8", "uint16", "int16")
"""Whose sums are computed as what they are."""
_PIXELS_FOR_THREADS = 1 << 18
"""Of a stack with fewer, threads cost more than they save."""
_BYTES_AT_ONCE = 1 << 32
"""Of the frames that threads work on together; one frame may take more."""
_BYTES_OF_PIXEL = 48
"""What a frame takes while it is filtered, at most: 4 to 46 were measured, most of them by spectra in float64."""


@keeps_labels
def convolve(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    kernel: FilterKernel | ExchangeOptions = "auto",
) -> Array:
    """Convolve every frame with two-dimensional taps, as ``scipy.ndimage.convolve`` does but faster.

    Parameters
    ----------
    images : (..., H, W) array_like
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes; uint8, uint16, int16, float32, float64, or other
        integers up to 2**53, which are computed in float64. Not modified. Of a dask array, the result is a dask array,
        whose blocks overlap as the taps need. The result of a CuPy array is on its device, where the project's own
        kernels compute it.
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
    kernel : {"auto", "reuse", "exchange", "separable", "sliding"} or ExchangeOptions
        ``"auto"`` takes what is fastest and exact enough, where the array lives. Else a kernel by name, which needs a
        GPU: NumPy arrays go there and come back, in parts that its memory holds. ``"reuse"`` has ring
        buffers of rows, ``"exchange"`` is the published kernel of column and row reuse (`ExchangeOptions` has its
        options), ``"separable"`` takes taps of rank 1 or 2, ``"sliding"`` Gaussians whose taps reach 8 pixels or more.

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
        An option is unknown or out of range, or the kernel cannot take these taps or images.
    DeviceError
        A kernel by name, and no GPU can be used.
    DeviceMemoryError
        The memory of the device that holds ``images`` does not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> convolve(np.array([[0, 0, 9, 0]], dtype=np.uint8), [[1, 2, 3]])
    array([[ 0,  9, 18, 27]], dtype=uint8)
    """
    options: Any = {"cval": cval, "origin": origin, "dtype": dtype, "kernel": kernel}
    return _filtered(images, taps, mode, options, flip=True)


@keeps_labels
def filter_taps(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    kernel: FilterKernel | ExchangeOptions = "auto",
) -> Array:
    """Correlate every frame with taps: `convolve` without the flip, as ``scipy.ndimage.correlate``.

    Parameters
    ----------
    images, taps, mode, cval, origin, dtype, kernel
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
    options: Any = {"cval": cval, "origin": origin, "dtype": dtype, "kernel": kernel}
    return _filtered(images, taps, mode, options, flip=False)


def _filtered(images: Any, taps: npt.ArrayLike | Filter, mode: Mode, options: Any, *, flip: bool) -> Array:
    """Filter any kind of array; the blocks of a dask array when they are computed."""
    images, _ = named_axes(images, None)

    def of_block(block: Array) -> Array:
        if block.dtype.kind in "iu" and block.dtype.newbyteorder("=").name not in _INTEGERS:
            found = filter_frames(exact_float64(block, "images"), taps, mode, **options, flip=flip, count=False)[0]
            return rounded_to(found, block.dtype) if options["dtype"] == "same" else found
        return filter_frames(block, taps, mode, **options, flip=flip, count=False)[0]

    if not is_lazy(images):
        return of_block(as_array(images, "images"))
    if mode in ("valid", "wrap"):
        return over_frames(of_block, images)
    rows, columns = taps.shape if isinstance(taps, Filter) else np.shape(taps)
    moved = np.broadcast_to(np.abs(options["origin"]), 2)
    return over_frames(of_block, images, (int(rows // 2 + moved[0]), int(columns // 2 + moved[1])))


def filter_frames(
    images: Array,
    taps: npt.ArrayLike | Filter,
    mode: Mode = "reflect",
    *,
    cval: float = 0.0,
    origin: Origin = 0,
    dtype: ResultType = "same",
    kernel: FilterKernel | ExchangeOptions = "auto",
    flip: bool = True,
    out: Array | None = None,
    count: bool = True,
) -> tuple[Array, int]:
    """Filter as `convolve` does and count the pixels that were clipped; can fill an existing array.

    Examples
    --------
    >>> import numpy as np
    >>> filter_frames(np.array([[0, 100, 200]], dtype=np.uint8), [[2]])
    (array([[  0, 200, 255]], dtype=uint8), 1)
    """
    array_namespace(images)
    named = kernel_name(kernel)
    if is_device_array(images):
        options: Any = {"cval": cval, "origin": origin, "dtype": dtype, "kernel": kernel}
        return filter_device_frames(images, taps, mode, **options, flip=flip, out=out, count=count)
    request = checked_request(images.shape, images.dtype, taps, mode, cval=cval, origin=origin, dtype=dtype, flip=flip)
    if out is None:
        out = np.empty(request.shape, request.target)
    elif out.shape != request.shape or out.dtype != request.target:
        raise ShapeError(f"out must be {request.target} of shape {request.shape}, not {out.dtype} of shape {out.shape}")
    elif np.may_share_memory(out, images):
        raise ArgumentError("out must not overlap with the images in memory")
    if named != "auto":
        require_gpu(named)
        how: Any = {"mode": mode, "cval": cval, "origin": origin, "dtype": dtype, "flip": flip, "kernel": kernel}
        return out, filter_through_device(images, taps, out, how, functools.partial(_on_host, request))
    return out, _on_host(request, images, out)


def _on_host(request: Request, images: npt.NDArray[Any], out: npt.NDArray[Any]) -> int:
    """Fill ``out``; return how many pixels were clipped."""

    def of_frame(index: tuple[int, ...]) -> int:
        task = Task(images[index], request.kernel, request.mode, request.cval, request.target.kind != "f")
        return store(run_engine(task), request.kernel.exponent, out[index])

    frames = list(np.ndindex(images.shape[:-2]))
    rows, columns = (size + taps for size, taps in zip(images.shape[-2:], request.kernel.shape, strict=True))
    workers = max(1, min(worker_count(), _BYTES_AT_ONCE // (rows * columns * _BYTES_OF_PIXEL)))
    if workers == 1 or len(frames) == 1 or images.size < _PIXELS_FOR_THREADS:
        return sum(map(of_frame, frames))
    with ThreadPoolExecutor(workers, thread_name_prefix="xcorr") as pool:
        return sum(pool.map(of_frame, frames, chunksize=1))
