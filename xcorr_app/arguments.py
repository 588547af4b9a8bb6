"""Checks of single arguments of public functions: what is no number or no array is refused, by name."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from xcorr_app.errors import ArgumentError, DataTypeError

P = ParamSpec("P")
T = TypeVar("T")


def renamed(**now: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function say what keywords of earlier releases are called now."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            for old in now.keys() & kwargs.keys():
                raise ArgumentError(f"{function.__name__}: {old!r} is {now[old]!r} now, and takes the same values")
            return function(*args, **kwargs)

        return checked

    return decorate


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
