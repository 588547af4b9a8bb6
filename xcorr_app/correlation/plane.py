"""The correlation plane: the public entry point over forms, engines and normalisations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from xcorr_app.arrays.kinds import as_array, is_lazy
from xcorr_app.arrays.lazy import of_pairs
from xcorr_app.correlation.arrangement import Arrangement, arrange
from xcorr_app.correlation.batches import all_finite, planes_in_batches
from xcorr_app.correlation.engines.base import Correlator
from xcorr_app.correlation.engines.fft import FFTCorrelator
from xcorr_app.correlation.engines.overlapping import over_overlaps
from xcorr_app.correlation.forms import Form, check_form
from xcorr_app.correlation.normalize import zncc_for
from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.correlation.window import ShiftWindow, as_window
from xcorr_app.errors import ArgumentError, DataTypeError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.peaks.standard_values import started_ranges
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.memory import attempt, with_second_try
from xcorr_app.gpu.runtime.placement import on_device_of

__all__ = [
    "DEFAULT_MIN_OVERLAP",
    "NORMALIZATIONS",
    "Normalization",
    "as_window",
    "check_range",
    "cross_correlate",
    "phase_planes",
]

Normalization = Literal["zncc", "none", "phase"]
NORMALIZATIONS: tuple[str, ...] = get_args(Normalization)

DEFAULT_MIN_OVERLAP = 0.25
"""Fraction of the smaller matrix that must overlap for a shift to score."""

_Ranges: TypeAlias = tuple[Array, Array]
"""Of lefts and rights, None where they are not known."""
_UNKNOWN: _Ranges = (None, None)


def cross_correlate(
    left: Array,
    right: Array,
    form: Form = "one-to-one",
    max_shift: float | tuple[float, float] | ShiftWindow | None = None,
    *,
    normalization: Normalization = "zncc",
    engine: str = "auto",
    kernel_options: KernelOptions | None = None,
    min_overlap: float = DEFAULT_MIN_OVERLAP,
    check_finite: bool = True,
) -> Array:
    """Cross-correlate matrices over a window of shifts.

    ``C[dy, dx] = sum over y, x of left[y + dy, x + dx] * right[y, x]``: where `left` shows `right` displaced by
    d, the plane peaks at shift d.

    Parameters
    ----------
    left, right : array_like
        NumPy or CuPy arrays (both of one kind, on one device, which does the work), or what
        :mod:`xcorr_app.arrays.kinds` takes, real; where one is a dask array, the planes are. Shapes by `form`:
        ``one-to-one`` (H, W) and (H', W'); ``one-to-many`` (H, W) and (M, H', W'); ``n-to-mn`` (N, H, W) and
        (N, M, H', W'), each left with its own rights; ``n-to-m`` (N, H, W) and (M, H', W'), every left with every
        right.
    form : {'one-to-one', 'one-to-many', 'n-to-mn', 'n-to-m'}
    max_shift : int, (int, int) or ShiftWindow, optional
        Largest shift in pixels along rows and columns, or any rectangle of shifts. Default: the full plane.
    normalization : {'zncc', 'none', 'phase'}
        ``zncc``: zero-mean normalised over each overlap, in [-1, 1], NaN where the overlap is smaller than
        `min_overlap` or constant. ``none``: the plain sums. ``phase``: modulus of every frequency set to one,
        after a Hann taper (FFT only, equal shapes).
    engine : str
        ``auto`` (the fastest for these shapes by a table of measurements), ``fft``, ``direct`` (CuPy arrays of at most
        16 bits or float32), ``tensor`` (the same arrays, on tensor cores: errors below 1e-6 of the product of both
        matrices' norms, unless `kernel_options` ask for another precision) or ``definition``.
    kernel_options : KernelOptions, optional
        Variant and tuning of the kernels of ``direct``, or precision of ``tensor``; ``auto`` is then that engine.
    min_overlap : float
        Fraction of the smaller matrix, in [0, 1]; ``zncc`` only.
    check_finite : bool
        Whether to look for NaN and infinite values, in the matrices and, with normalization ``none``, in the planes.
        Without it a call on CuPy arrays with that normalization returns while the device is still working; values
        that are not finite, and sums that do not fit the planes' type, then give an undefined plane.

    Returns
    -------
    ndarray, shape (ny, nx), (M, ny, nx) or (N, M, ny, nx)
        Same kind of array as the input. Element ``[i, j]`` belongs to shift ``(dy_min + i, dx_min + j)``; for the
        full plane ``dy_min = 1 - H'``. float32 if both inputs have at most 16 bits or are float32, else float64.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For unknown names, shapes that do not fit the form, non-finite values, sums that do not fit the planes' type,
        arrays of two kinds.
    DeviceError
        If the engine cannot run on such arrays, or they live on two devices.
    DeviceMemoryError
        If the planes, or one pair of matrices, do not fit into the device's memory; a batch that does not is cut.

    References
    ----------
    Lewis 1995, "Fast normalized cross-correlation"; Padfield 2012, doi 10.1109/TIP.2011.2181402; Kuglin and Hines
    1975, "The phase correlation image alignment method".

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> right = np.random.default_rng(0).normal(size=(48, 64))
    >>> left = np.roll(right, (2, -3), axis=(0, 1))
    >>> plane = xc.cross_correlate(left, right, max_shift=5)
    >>> [int(i) - 5 for i in np.unravel_index(plane.argmax(), plane.shape)]
    [2, -3]
    """
    if is_lazy(left) or is_lazy(right):
        options: Any = {"normalization": normalization, "engine": engine, "kernel_options": kernel_options}
        options |= {"min_overlap": min_overlap, "check_finite": check_finite}
        check_form(left, right, form)
        return of_pairs(lambda one, other: cross_correlate(one, other, form, max_shift, **options), left, right, form)
    left, right = as_array(left, "left"), as_array(right, "right")
    xp = check_operands(left, right, normalization, min_overlap)
    with on_device_of(left, right):
        how = with_second_try(
            arrange, left, right, form, max_shift, normalization, engine, kernel_options, xp, what="tables do not fit"
        )
        refuse, ranges = started_refusal(left, right) if check_finite else (_nothing, _UNKNOWN)
        planes_of = functools.partial(planes_of_pairs, how, normalization, min_overlap, ranges=ranges)
        lefts, rights = left.reshape(how.left_shape), right.reshape(how.right_shape)
        planes = planes_in_batches(planes_of, lefts, rights, how.window.shape, how.dtype)
        refuse()
        if check_finite and normalization == "none":
            check_range(planes, left, right)
        return planes.reshape(how.shape)


def check_operands(left: Array, right: Array, normalization: str, min_overlap: float) -> Any:
    """Return the module of both arrays, numpy or cupy; raise where they are of two, or where an argument is none."""
    xp = array_namespace(left)
    if type(right) is not type(left) and array_namespace(right) is not xp:
        raise DataTypeError("left and right must both be NumPy or both be CuPy arrays")
    if normalization not in NORMALIZATIONS:
        raise ArgumentError(f"unknown normalization {normalization!r}: use one of {', '.join(NORMALIZATIONS)}")
    if not isinstance(min_overlap, (int, float, np.integer, np.floating)) or not 0 <= min_overlap <= 1:
        raise ArgumentError(f"min_overlap is {min_overlap!r}: it is a fraction in [0, 1]")
    return xp


def planes_of_pairs(
    how: Arrangement,
    normalization: str,
    min_overlap: float,
    lefts: Array,
    rights: Array,
    ranges: _Ranges = _UNKNOWN,
) -> Array:
    """Planes (N, M, ny, nx) of every pair that broadcasting lefts (N, 1, H, W) and rights (1 or N, M, H', W') makes.

    `ranges` are those of all matrices that there are; of parts of them, they are found again.
    """
    if how.correlator is None:
        planes = phase_planes(lefts, rights, how.window)
    elif normalization == "none":
        return _plain_sums(lefts, rights, how, how.correlator)
    else:
        planes = _scores(lefts, rights, how, how.correlator, min_overlap, ranges)
    return planes.astype(how.dtype, copy=False)


def started_refusal(left: Array, right: Array) -> tuple[Callable[[], None], _Ranges]:
    """Refuse matrices that are not finite: at once, or where a device is asked, when what is returned is called.

    The ranges of matrices that a device finds on the way are those that standardising needs.
    """
    sides = left, right
    if not all(is_device_array(side) and side.dtype == np.float32 and side.ndim > 1 and side.size for side in sides):
        refuse_not_finite(left=left, right=right)
        return _nothing, _UNKNOWN
    # A device makes the planes before anybody waits for the answer.
    if not (started := attempt(started_ranges, *sides)):
        return functools.partial(refuse_not_finite, left=left, right=right), _UNKNOWN
    (of_left, of_right), is_finite = started[0]
    return lambda: None if is_finite() else refuse_not_finite(left=left, right=right), (of_left, of_right)


def _nothing() -> None:
    """What there is to do where nothing is to be refused."""


def refuse_not_finite(**arrays: Array) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not all_finite(array):
            raise ArgumentError(f"{name} holds NaN or infinite values: replace them, for example by the mean")


def check_range(planes: Array, left: Array, right: Array) -> None:
    """Refuse plain sums of finite values that left the range of their type; those of integers never do.

    Parameters
    ----------
    planes : ndarray, shape (..., ny, nx)
    left, right : ndarray
        What was correlated; only the types are looked at.

    Raises
    ------
    ArgumentError
        If a sum is infinite or NaN.
    """
    if "f" in (left.dtype.kind, right.dtype.kind) and not all_finite(planes):
        wider = " convert them to float64," if planes.dtype == np.float32 else ""
        raise ArgumentError(
            f"sums of left times right do not fit {planes.dtype}: scale the values down,{wider} or use zncc"
        )


def _plain_sums(lefts: Array, rights: Array, how: Arrangement, correlator: Correlator) -> Array:
    left, right = lefts.astype(how.left_type, copy=False), rights.astype(how.right_type, copy=False)
    # NumPy would warn of sums that overflow; `check_range` tells it in words.
    with np.errstate(over="ignore", invalid="ignore") if isinstance(lefts, np.ndarray) else nullcontext():
        sums = correlator.sums(correlator.left(left), correlator.right(right))
        return sums if sums.dtype == how.dtype else sums.astype(how.dtype)


def _scores(
    lefts: Array, rights: Array, how: Arrangement, correlator: Correlator, min_overlap: float, ranges: _Ranges
) -> Array:
    zncc = zncc_for(lefts.shape[-2:], rights.shape[-2:], how.window, min_overlap, array_namespace(lefts))
    # Of an image with itself, what overlaps on one side at a shift does so on the other at the opposite one.
    is_same = getattr(lefts, "__array_interface__", None) == getattr(rights, "__array_interface__", ())
    values = [
        standardize(side, how.dtype, _of_all(side, known)).values
        for side, known in zip((lefts, rights)[: 2 - is_same], ranges, strict=False)
    ]
    sums = correlator.sums(correlator.left(values[0]), correlator.right(values[-1]))
    left = zncc.left(values[0])
    is_mirrored = is_same and how.window == ShiftWindow.symmetric(how.window.dy_max, how.window.dx_max)
    return zncc(sums, left, tuple(part[..., ::-1, ::-1] for part in left) if is_mirrored else zncc.right(values[-1]))


def _of_all(matrices: Array, ranges: Array) -> Array:
    """Ranges, where they are those of all these matrices (..., H, W) and no others."""
    return ranges if ranges is not None and ranges.shape[0] == math.prod(matrices.shape[:-2]) else None


def phase_planes(lefts: Array, rights: Array, window: ShiftWindow) -> Array:
    """Phase correlation of matrices ``(N, 1, H, W)`` and ``(1 or N, M, H, W)`` over a window.

    Each matrix loses its mean and is tapered by a Hann window, since the edges of a crop would otherwise dominate
    the phases. Shifts without overlap are zero.
    """
    xp: Any = array_namespace(lefts)
    if lefts.shape[-2:] != rights.shape[-2:]:
        raise ArgumentError(
            f"normalization 'phase' needs matrices of one shape, got {lefts.shape[-2:]} and {rights.shape[-2:]}"
        )
    dtype = working_dtype(lefts, rights)
    rows, columns = (xp.asarray(_hann(n), dtype=dtype) for n in lefts.shape[-2:])
    taper = rows[:, None] * columns[None, :]
    shape = lefts.shape[-2:]

    def make(computed: ShiftWindow) -> Correlator:
        return FFTCorrelator(shape, shape, computed, xp, whiten=True)

    correlator = over_overlaps(make, shape, shape, window, xp)
    left = correlator.left(standardize(lefts, dtype).values * taper)
    right = correlator.right(standardize(rights, dtype).values * taper)
    return correlator.sums(left, right)


def _hann(size: int) -> Any:
    """Hann window that is not zero at its ends, so that one-pixel images keep their pixel."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size) if size > 1 else np.ones(1)
