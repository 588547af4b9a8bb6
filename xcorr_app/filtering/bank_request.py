"""What a call of `filter_bank` asks for, checked: the same words for arrays of NumPy and of CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xcorr_app.arguments import as_number
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.array_choice import is_wide
from xcorr_app.filtering.boundary import MODES, Mode
from xcorr_app.gpu.im2win.options import Im2winOptions, kernel_and_macros

BankMethod: TypeAlias = Literal["auto", "im2win", "im2win-basic", "implicit", "implicit-basic"]
BANK_METHODS: tuple[BankMethod, ...] = get_args(BankMethod)

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


@dataclass(frozen=True, eq=False)
class BankRequest:
    """Images, filters and results of a call.

    Attributes
    ----------
    filters : (C_o, C_i, F_h, F_w) array
        The bank, float64.
    stack_shape : tuple of int
        Of the images, (N, C_i, H, W).
    shape : tuple of int
        Of the results, (N, C_o, H', W').
    result_shape : tuple of int
        The same with the images' leading axes.
    target : dtype
        Of the results.
    mode : str
        Of the boundary.
    cval : float
        The outside under ``"constant"``.
    stride : int
        Pixels from one result to the next.
    """

    filters: npt.NDArray[np.float64]
    stack_shape: tuple[int, int, int, int]
    shape: tuple[int, int, int, int]
    result_shape: tuple[int, ...]
    target: np.dtype[Any]
    mode: Mode
    cval: float
    stride: int


def checked_bank(
    image_shape: tuple[int, ...],
    image_type: np.dtype[Any],
    bank: npt.ArrayLike,
    mode: Mode,
    cval: float,
    stride: int,
    method: BankMethod | Im2winOptions,
) -> BankRequest:
    """Check everything about a call but its images' values."""
    if image_type.newbyteorder("=").name not in _TYPES:
        raise DataTypeError(f"images: expected a NumPy or CuPy array of one of {', '.join(_TYPES)}")
    filters = _checked_filters(bank)
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is unknown: take one of {', '.join(MODES)}")
    if kernel_and_macros(method)[0] not in BANK_METHODS:
        raise ArgumentError(f"method {method!r} is unknown: take one of {', '.join(BANK_METHODS)}")
    if not np.isfinite(as_number(cval, "cval")):
        raise ArgumentError(f"cval={cval}: give a finite value")
    if not isinstance(stride, (int, np.integer)) or isinstance(stride, bool) or stride < 1:
        raise ArgumentError(f"stride {stride!r}: give a whole number of pixels, 1 or more")
    count, channels, height, width = filters.shape
    with_channels = np.ndim(bank) == 4
    if len(image_shape) < 2 + with_channels or 0 in image_shape or (with_channels and image_shape[-3] != channels):
        wanted = f"(..., {channels}, H, W)" if with_channels else "(..., H, W)"
        raise ShapeError(f"images have shape {image_shape}: a bank of shape {np.shape(bank)} takes {wanted}")
    rows, columns = image_shape[-2:]
    if mode == "valid":
        rows, columns = rows - height + 1, columns - width + 1
        if rows < 1 or columns < 1:
            raise ShapeError(f"filters of {height} x {width} do not fit into images of {image_shape[-2:]}: pad them")
    leading = image_shape[: len(image_shape) - 2 - with_channels]
    number = int(np.prod(leading, dtype=np.int64))
    of_one = (count, (rows - 1) // int(stride) + 1, (columns - 1) // int(stride) + 1)
    target = np.dtype(np.float64 if is_wide(image_type) else np.float32)
    stack_shape = (number, channels, image_shape[-2], image_shape[-1])
    shapes: Any = {"stack_shape": stack_shape, "shape": (number, *of_one), "result_shape": (*leading, *of_one)}
    return BankRequest(filters, **shapes, target=target, mode=mode, cval=float(cval), stride=int(stride))


def _checked_filters(bank: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        filters = np.array(bank, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("bank: expected an array of numbers") from error
    if filters.ndim not in (3, 4) or filters.size == 0:
        raise ShapeError(f"bank has shape {filters.shape}: expected (C_o, F_h, F_w) or (C_o, C_i, F_h, F_w)")
    if not np.isfinite(filters).all():
        raise ArgumentError("bank holds values that are not finite")
    return filters if filters.ndim == 4 else filters[:, None]
