"""Everything about a correlation that follows from shapes and types alone: worked out once, then kept.

Small matrices correlate in microseconds on a device, less than it takes to decide how.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.correlation.engines import Correlator, check_kernel_options, choose_engine
from xcorr_app.correlation.forms import broadcast_left, broadcast_right, check_form, result_shape
from xcorr_app.correlation.problem import problem_of
from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.window import ShiftWindow, as_window
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.placement import current_device


@dataclass(frozen=True)
class Arrangement:
    """How a call of :func:`xcorr_app.cross_correlate` is carried out."""

    window: ShiftWindow
    dtype: np.dtype[np.floating]
    """Precision of the planes, and of standardised matrices."""
    left_shape: tuple[int, ...]
    """``(N, 1, H, W)``, see :mod:`xcorr_app.correlation.forms`."""
    right_shape: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the result."""
    left_type: np.dtype[Any]
    """What the engine is handed where the matrices are not standardised."""
    right_type: np.dtype[Any]
    correlator: Correlator | None
    """None for phase correlation, which is bound to the FFT."""


def arrange(
    left: Array,
    right: Array,
    form: str,
    max_shift: float | tuple[float, float] | ShiftWindow | None,
    normalization: str,
    engine: str,
    kernel_options: KernelOptions | None,
    xp: Any,
) -> Arrangement:
    """Arrange a correlation, or take the arrangement of an earlier call of the same kind."""
    # What cannot be a key of the arrangements that are kept is no name either.
    if not (isinstance(form, str) and isinstance(engine, str)):
        raise ArgumentError(f"form is {form!r} and engine {engine!r}: give their names")
    if normalization == "phase" and engine not in ("auto", "fft"):
        raise ArgumentError(f"normalization 'phase' exists only in engine 'fft', not in {engine!r}")
    check_kernel_options("fft" if normalization == "phase" else engine, kernel_options)
    if max_shift is not None and not isinstance(max_shift, (int, float, ShiftWindow)):
        # Two values may come as a list or an array, which cannot be a key.
        check_form(left, right, form)
        max_shift = as_window(max_shift, left.shape[-2:], right.shape[-2:])
    device = None if xp is np else current_device()
    return _arranged(
        left.shape, left.dtype, right.shape, right.dtype, form, max_shift, normalization, engine, kernel_options,
        xp.__name__, device,
    )  # fmt: skip


@functools.lru_cache(maxsize=128)
def _arranged(
    left_shape: tuple[int, ...],
    left_type: np.dtype[Any],
    right_shape: tuple[int, ...],
    right_type: np.dtype[Any],
    form: str,
    max_shift: float | ShiftWindow | None,
    normalization: str,
    engine: str,
    kernel_options: KernelOptions | None,
    library: str,
    _device: int | None,
) -> Arrangement:
    # Arrays of these shapes and types that take no memory.
    left = np.broadcast_to(np.empty((), left_type), left_shape)
    right = np.broadcast_to(np.empty((), right_type), right_shape)
    check_form(left, right, form)
    dtype = working_dtype(left, right)
    lefts, rights = broadcast_left(left), broadcast_right(right)
    left_size, right_size = _size(left_shape), _size(right_shape)
    window = as_window(max_shift, left_size, right_size)
    shape = (*result_shape(lefts.shape, rights.shape, form), *window.shape)
    correlator = None
    types: list[np.dtype[Any]] = [dtype, dtype]
    if normalization != "phase":
        xp = importlib.import_module(library)
        pairs = lefts.shape[0], rights.shape[0] * rights.shape[1], rights.shape[1]
        problem = problem_of(left_size, right_size, window, *pairs)
        dtypes = engine_dtypes(left_type, right_type, normalization)
        chosen = choose_engine(engine, xp, problem, kernel_options, dtypes)
        correlator = chosen.bind(left_size, right_size, window, xp)
        if dtype == np.float32:
            types = [kind if kind in chosen.reads else dtype for kind in (left_type, right_type)]
    return Arrangement(window, dtype, lefts.shape, rights.shape, shape, types[0], types[1], correlator)


def engine_dtypes(left: np.dtype[Any], right: np.dtype[Any], normalization: str) -> tuple[str, str]:
    """Names of the types that an engine is handed: scores are of standardised images, plain sums of what is stored."""
    if working_dtype(np.empty(0, left), np.empty(0, right)) != np.float32:
        return "float64", "float64"
    return (left.name, right.name) if normalization == "none" else ("float32", "float32")


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[-2], shape[-1]
