"""Checks of single arguments of public functions: what is no number or no array is refused, by name."""

from __future__ import annotations

import reprlib
from numbers import Real
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError, DataTypeError


def is_number(value: Any) -> bool:
    """Tell whether a value is one real number: of Python, of NumPy, or an array without axes."""
    if getattr(value, "shape", None) == ():
        return value.dtype.kind in "biuf"
    return isinstance(value, Real)


def as_number(value: Any, name: str) -> float:
    """Return one real number as a float. Raises ArgumentError for anything else, text included."""
    if not is_number(value):
        raise ArgumentError(f"{name} is {reprlib.repr(value)}: give a number")
    return float(value)


def check_image(value: Any, name: str) -> None:
    """Raise DataTypeError unless a value is an array of real numbers, wherever its memory is, none of them masked."""
    if isinstance(value, np.ma.MaskedArray):
        raise DataTypeError(f"{name} is a masked array: fill it, its mask would be lost")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if not hasattr(value, "shape") or kind not in {"b", "i", "u", "f"}:
        raise DataTypeError(f"{name} is {reprlib.repr(value)}: give an array of real numbers")
