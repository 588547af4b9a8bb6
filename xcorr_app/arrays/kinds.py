"""Arrays of other libraries, made NumPy or CuPy arrays without a copy where that can be.

======================================================  ============================================================
given                                                   taken as
======================================================  ============================================================
NumPy (memory maps included), CuPy                      itself
lists, numbers, anything with ``__array__``             ``numpy.asarray``: PyTorch and JAX on the CPU share their
(PyTorch, JAX, zarr, h5py)                              memory, what is in a file is read
``__cuda_array_interface__``, ``__dlpack__`` of a GPU   CuPy array on that memory
``__dlpack__`` of the CPU                               NumPy array on that memory
xarray, `xcorr_app.read_stack`                          what it holds; its dimensions name the axes
a path                                                  what `xcorr_app.read_stack` reads there
bool                                                    uint8, 0 and 1, on the same memory
======================================================  ============================================================

Results are NumPy arrays, CuPy arrays of what is in a GPU's memory, or, where they have the axes of an xarray, an xarray
with its labels. Nothing here imports a library that the caller
has not imported, but for CuPy where an array lives on a GPU.
"""

import functools
import importlib
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from xcorr_app.errors import DataTypeError, DeviceError, ShapeError, install_line
from xcorr_app.gpu.runtime.arrays import Array, is_device_array

_CPU, _CUDA, _CUDA_MANAGED = 1, 2, 13
"""Device types of DLPack."""
_NUMBERS = "biufc"
_EXACT = 2**53
"""Integers up to here are float64's own."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def is_lazy(x: object) -> bool:
    """Whether ``x`` is a dask array; never imports dask."""
    kind = type(x)
    return kind.__module__.partition(".")[0] == "dask" and hasattr(kind, "__dask_graph__") and hasattr(x, "chunks")


def is_xarray(x: object) -> bool:
    """Whether ``x`` is a ``DataArray``; never imports xarray."""
    kind = type(x)
    return kind.__module__.partition(".")[0] == "xarray" and hasattr(kind, "dims") and hasattr(kind, "data")


def is_stack(x: object) -> bool:
    """Whether ``x`` is what :func:`xcorr_app.read_stack` returns."""
    kind = type(x)
    return kind.__module__ == "xcorr_app.io.stack" and hasattr(x, "metadata") and hasattr(x, "data")


def is_stored(x: object) -> bool:
    """Whether ``x`` is an array in a file that is read by slices (zarr, h5py); never imports either."""
    return type(x).__module__.partition(".")[0] in ("zarr", "h5py") and hasattr(x, "shape") and hasattr(x, "dtype")


def opened(x: Any) -> Any:
    """Return the stack in the file that a path leads to, or what is no path as it is."""
    if isinstance(x, (str, os.PathLike)):
        return importlib.import_module("xcorr_app.io.stack").read_stack(x)  # of a layer above this one
    return x


def labelled_like(given: Any, result: Any, mixed: int | None = None) -> Any:
    """Return a result as an xarray with the labels of what was given, where that is one with as many axes.

    Labels along dimensions whose size changes are lost, and those along the axis of channels that were `mixed`.
    """
    if not is_xarray(given) or not hasattr(given, "coords") or result.ndim != given.ndim:
        return result
    other = set() if mixed is None else {given.dims[mixed]}
    kept = {name for name, old, new in zip(given.dims, given.shape, result.shape, strict=True) if old == new} - other
    labels = {name: each for name, each in given.coords.items() if set(each.dims) <= kept}
    return type(given)(result, coords=labels, dims=given.dims, name=given.name, attrs=given.attrs)


def keeps_labels(function: _Function, mixed: int | None = None) -> _Function:
    """Make a function of an array, its first argument, return an xarray of one; see `labelled_like`."""
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def labelled(*args: Any, **options: Any) -> Any:
        given, result = args[0] if args else options.get(first), function(*args, **options)
        return labelled_like(given, result, options.get("channel_axis", mixed))

    return cast("_Function", labelled)


def keeps_labels_but_channels(function: _Function) -> _Function:
    """The same of a function that mixes channels, of planes (..., C, H, W) unless its ``channel_axis`` is another."""
    return keeps_labels(function, mixed=-3)


def as_array(x: Any, name: str = "array") -> Array:
    """Return ``x`` as a NumPy or CuPy array, on the same memory where that can be; see the head of this module.

    Parameters
    ----------
    x : array_like
    name : str
        What messages call it.

    Raises
    ------
    DataTypeError
        ``x`` holds no numbers, or is masked: a mask would be lost.
    ShapeError
        ``x`` is a nested list whose rows have different lengths.
    DeviceError
        ``x`` is in a GPU's memory, and CuPy is not installed.

    Examples
    --------
    >>> as_array([[1, 2], [3, 4]]).shape
    (2, 2)
    >>> as_array(np.array([True, False]))
    array([1, 0], dtype=uint8)
    """
    if isinstance(x, bytes):
        raise DataTypeError(f"{name} is {str(x)[:80]}, no array")
    x = opened(x)
    if is_stack(x):
        return as_array(x.data, name)
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray):
            raise DataTypeError(f"{name}: a masked array would lose its mask: pass array.filled(value) instead")
        return _numbers(x, name)
    if is_device_array(x):
        return _numbers(x, name)
    if is_xarray(x):
        return as_array(x.data, name)
    if is_lazy(x):
        return as_array(x.compute(), name)
    return _numbers(_converted(x, name), name)


def exact_float64(array: Array, name: str) -> Array:
    """Integers as float64, which holds them exactly; raises DataTypeError where one has more than 53 bits."""
    if array.size and max(abs(int(array.min())), abs(int(array.max()))) > _EXACT:
        raise DataTypeError(f"{name} of {array.dtype} holds values beyond 2**53, which float64 rounds: scale them down")
    return array.astype(np.float64)


def rounded_to(values: Array, dtype: np.dtype) -> Array:
    """Values as integers of a type: rounded half to even, clipped."""
    limits = np.iinfo(dtype)
    # The largest of 64 bits is none of float64.
    highest = min(float(limits.max), np.nextafter(2.0 ** (limits.bits - (limits.min < 0)), 0))
    return values.round().clip(float(limits.min), highest).astype(dtype)


def _converted(x: Any, name: str) -> Array:
    device = x.__dlpack_device__()[0] if hasattr(x, "__dlpack_device__") else _CPU
    if device in (_CUDA, _CUDA_MANAGED) or hasattr(x, "__cuda_array_interface__"):
        try:
            cupy = importlib.import_module("cupy")
        except ImportError as error:
            raise DeviceError(f"{name} is in the memory of a GPU, which needs CuPy: {install_line('gpu')}") from error
        return cupy.asarray(x) if hasattr(x, "__cuda_array_interface__") else cupy.from_dlpack(x)
    if device != _CPU:
        raise DeviceError(f"{name} is on a device that is neither the CPU nor a CUDA GPU: copy it to the CPU")
    try:
        # NumPy takes any object for an array of one object.
        only_dlpack = hasattr(x, "__dlpack__") and not hasattr(x, "__array__")
        return np.from_dlpack(x) if only_dlpack else np.asarray(x)
    except ValueError as error:
        raise ShapeError(f"{name} cannot be made an array: {error}") from error
    except (TypeError, RuntimeError, BufferError) as error:
        raise DataTypeError(f"{name} cannot be made an array: {error}") from error


def _numbers(array: Array, name: str) -> Array:
    kind = array.dtype.kind
    if kind == "b":
        return array.view(np.uint8)
    if kind not in _NUMBERS:
        raise DataTypeError(f"{name} holds {array.dtype}, not numbers: expected an array of numbers")
    return array
