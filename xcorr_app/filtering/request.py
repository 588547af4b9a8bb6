"""What a call of `convolve` asks for, checked: the same words for arrays of NumPy and of CuPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.arguments import as_number
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.boundary import MODES, Mode
from xcorr_app.filtering.rounding import ResultType, result_type
from xcorr_app.filtering.taps import Filter, Kernel, Origin, correlation_kernel

IMAGE_TYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "int16", "float32", "float64"))
"""Types of pixels that can be filtered."""


@dataclass(frozen=True, eq=False)
class Request:
    """Taps in correlation form, and what comes out.

    Attributes
    ----------
    kernel : Kernel
        The taps.
    mode : str
        Of the boundary.
    cval : float
        The outside under ``"constant"``.
    shape : tuple of int
        Of the whole result.
    target : dtype
        Of the result.
    """

    kernel: Kernel
    mode: Mode
    cval: float
    shape: tuple[int, ...]
    target: np.dtype[Any]


def checked_request(
    shape: tuple[int, ...],
    image_type: np.dtype[Any],
    taps: npt.ArrayLike | Filter,
    mode: Mode,
    *,
    cval: float,
    origin: Origin,
    dtype: ResultType,
    flip: bool,
) -> Request:
    """Check everything about a call but its arrays' values."""
    if image_type.newbyteorder("=") not in IMAGE_TYPES:
        known = ", ".join(map(str, IMAGE_TYPES))
        raise DataTypeError(f"images of {image_type} cannot be filtered: convert them to one of {known}")
    if len(shape) < 2 or 0 in shape:
        raise ShapeError(f"images must be of shape (..., H, W) and not empty, not {shape}")
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is unknown: take one of {', '.join(MODES)}")
    if not math.isfinite(as_number(cval, "cval")) and image_type.kind != "f":
        raise ArgumentError(f"cval must be finite for images of {image_type}, not {cval}")
    target = result_type(image_type, dtype)
    # Half an ulp of a float32 sum; everything else is held to float64.
    kernel = correlation_kernel(taps, origin, flip=flip, tolerance=6e-8 if target == np.float32 else 1e-12)
    frame = _result_frame((shape[-2], shape[-1]), kernel, mode, origin)
    return Request(kernel, mode, cval, (*shape[:-2], *frame), target)


def _result_frame(frame: tuple[int, int], kernel: Kernel, mode: Mode, origin: Origin) -> tuple[int, int]:
    if mode != "valid":
        return frame
    if np.any(np.asarray(origin)):
        raise ArgumentError("mode 'valid' has no outside to move into: origin must be 0")
    height, width = (size - taps + 1 for size, taps in zip(frame, kernel.shape, strict=True))
    if height < 1 or width < 1:
        raise ShapeError(f"mode 'valid' needs images of at least {kernel.shape}, the size of the taps, not {frame}")
    return height, width
