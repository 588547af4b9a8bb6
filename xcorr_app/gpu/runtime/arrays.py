"""Which array library an array belongs to: the one place that tells NumPy from CuPy.

Code above this layer is written once against the module returned here. CuPy is imported only when an array of
its own is handed in, so a machine without it never notices.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import DataTypeError

if TYPE_CHECKING:
    from types import ModuleType

Array: TypeAlias = Any
"""A ``numpy.ndarray`` or a ``cupy.ndarray``."""


def is_device_array(x: object) -> bool:
    """Whether ``x`` is a ``cupy.ndarray``; never imports CuPy."""
    kind = type(x)
    # The type is asked, since the attribute of the array would be computed: microseconds, for a call that takes ten.
    return kind.__module__.partition(".")[0] == "cupy" and hasattr(kind, "__cuda_array_interface__")


def array_namespace(x: object) -> ModuleType:
    """Return the module (``numpy`` or ``cupy``) whose functions work on ``x``.

    Parameters
    ----------
    x : numpy.ndarray or cupy.ndarray
        Any shape and type of element.

    Returns
    -------
    module
        ``numpy`` for a NumPy array (memory maps included), ``cupy`` for a CuPy array.

    Raises
    ------
    DataTypeError
        ``x`` is anything else: a list, a masked array (its mask would be lost), an array of another library.

    Examples
    --------
    >>> array_namespace(np.zeros((2, 3))).__name__
    'numpy'
    """
    if type(x) is np.ndarray:
        return np
    if isinstance(x, np.ma.MaskedArray):
        raise DataTypeError("a masked array would lose its mask: pass array.filled(value) instead")
    if isinstance(x, np.ndarray):
        return np
    if is_device_array(x):
        return sys.modules["cupy"]
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    raise DataTypeError(f"expected a NumPy or CuPy array, got {kind}: convert it with numpy.asarray first")


def fft_namespace(x: object) -> ModuleType:
    """Return the module of FFTs that keep single precision for ``x``: ``scipy.fft`` or ``cupyx.scipy.fft``.

    Raises
    ------
    DataTypeError
        As `array_namespace`.
    """
    return importlib.import_module("scipy.fft" if array_namespace(x) is np else "cupyx.scipy.fft")


def to_host(array: Array) -> Any:
    """Return a NumPy array with the same values; a NumPy array is handed back as it is."""
    return array if isinstance(array, np.ndarray) else array.get()


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
    """Return a new array of the current device, whatever it holds."""
    return sys.modules["cupy"].empty(shape, dtype)


def dense(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return a device array as kernels read it: itself where its elements lie one behind the other."""
    return sys.modules["cupy"].ascontiguousarray(array, dtype)


def placed(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return an array in the memory of the current device: itself where it is there."""
    return sys.modules["cupy"].asarray(array, dtype)
