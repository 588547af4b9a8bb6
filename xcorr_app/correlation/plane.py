"""The correlation plane: the public entry point over forms, engines and normalisations."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from xcorr_app.correlation.engines import choose_engine
from xcorr_app.correlation.engines.fft import FFTCorrelator
from xcorr_app.correlation.forms import Form, broadcast_left, broadcast_right, check_form, result_shape
from xcorr_app.correlation.normalize import ZNCC
from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError, DataTypeError
from xcorr_app.gpu.arrays import Array, array_namespace

Normalization = Literal["zncc", "none", "phase"]
NORMALIZATIONS: tuple[str, ...] = get_args(Normalization)

DEFAULT_MIN_OVERLAP = 0.25
"""Fraction of the smaller matrix that must overlap for a shift to score."""


def cross_correlate(
    left: Array,
    right: Array,
    form: Form = "one-to-one",
    max_shift: float | tuple[float, float] | ShiftWindow | None = None,
    *,
    normalization: Normalization = "zncc",
    engine: str = "auto",
    min_overlap: float = DEFAULT_MIN_OVERLAP,
) -> Array:
    """Cross-correlate matrices over a window of shifts.

    ``C[dy, dx] = sum over y, x of left[y + dy, x + dx] * right[y, x]``: where `left` shows `right` displaced by
    d, the plane peaks at shift d.

    Parameters
    ----------
    left, right : ndarray
        NumPy or CuPy arrays (both of one kind), real. Shapes by `form`: ``one-to-one`` (H, W) and (H', W');
        ``one-to-many`` (H, W) and (M, H', W'); ``n-to-mn`` (N, H, W) and (N, M, H', W'), each left with its own
        rights; ``n-to-m`` (N, H, W) and (M, H', W'), every left with every right.
    form : {'one-to-one', 'one-to-many', 'n-to-mn', 'n-to-m'}
    max_shift : int, (int, int) or ShiftWindow, optional
        Largest shift in pixels along rows and columns, or any rectangle of shifts. Default: the full plane.
    normalization : {'zncc', 'none', 'phase'}
        ``zncc``: zero-mean normalised over each overlap, in [-1, 1], NaN where the overlap is smaller than
        `min_overlap` or constant. ``none``: the plain sums. ``phase``: modulus of every frequency set to one,
        after a Hann taper (FFT only, equal shapes).
    engine : str
        ``auto``, ``fft``, ``warp-shuffle`` (CuPy arrays of at most 16 bits or float32) or ``definition``.
    min_overlap : float
        Fraction of the smaller matrix, in [0, 1]; ``zncc`` only.

    Returns
    -------
    ndarray, shape (ny, nx), (M, ny, nx) or (N, M, ny, nx)
        Same kind of array as the input. Element ``[i, j]`` belongs to shift ``(dy_min + i, dx_min + j)``; for the
        full plane ``dy_min = 1 - H'``. float32 if both inputs have at most 16 bits or are float32, else float64.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For unknown names, shapes that do not fit the form, non-finite values, arrays of two kinds.
    DeviceError
        If the engine cannot run on such arrays.

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
    xp = array_namespace(left)
    if array_namespace(right) is not xp:
        raise DataTypeError("left and right must both be NumPy or both be CuPy arrays")
    check_form(left, right, form)
    if normalization not in NORMALIZATIONS:
        raise ArgumentError(f"unknown normalization {normalization!r}: use one of {', '.join(NORMALIZATIONS)}")
    if not 0 <= min_overlap <= 1:
        raise ArgumentError(f"min_overlap is {min_overlap}: it is a fraction in [0, 1]")
    dtype = working_dtype(left, right)
    for name, array in (("left", left), ("right", right)):
        if array.dtype.kind == "f" and not bool(xp.isfinite(array).all()):
            raise ArgumentError(f"{name} holds NaN or infinite values: replace them, for example by the mean")

    lefts, rights = broadcast_left(left), broadcast_right(right)
    window = as_window(max_shift, left.shape[-2:], right.shape[-2:])
    if normalization == "phase":
        planes = phase_planes(lefts, rights, window, engine)
    else:
        correlator = choose_engine(engine, xp).bind(left.shape[-2:], right.shape[-2:], window, xp)
        if normalization == "none":
            lefts, rights = lefts.astype(dtype, copy=False), rights.astype(dtype, copy=False)
            planes = correlator.sums(correlator.left(lefts), correlator.right(rights))
        else:
            lefts, rights = standardize(lefts, dtype).values, standardize(rights, dtype).values
            zncc = ZNCC(left.shape[-2:], right.shape[-2:], window, min_overlap, xp)
            sums = correlator.sums(correlator.left(lefts), correlator.right(rights))
            planes = zncc(sums, zncc.left(lefts), zncc.right(rights))
    shape = result_shape(lefts.shape, rights.shape, form)
    return planes.reshape(*shape, *window.shape).astype(dtype, copy=False)


def as_window(
    max_shift: float | tuple[float, float] | ShiftWindow | None,
    left_shape: tuple[int, int],
    right_shape: tuple[int, int],
) -> ShiftWindow:
    """Window of shifts from what a user may state; None is the full plane.

    Raises
    ------
    ArgumentError
        If a largest shift is negative, not a number, or not one or two values.
    """
    if isinstance(max_shift, ShiftWindow):
        return max_shift
    if max_shift is None:
        return ShiftWindow.full(left_shape, right_shape)
    try:
        largest = np.broadcast_to(np.asarray(max_shift, dtype=np.float64), (2,))
    except (TypeError, ValueError):
        raise ArgumentError(f"max_shift is {max_shift!r}: give one number of pixels, or two (rows, columns)") from None
    if not np.isfinite(largest).all() or (largest < 0).any():
        raise ArgumentError(f"max_shift is {max_shift!r}: it must be a finite number of pixels, zero or more")
    full = ShiftWindow.full(left_shape, right_shape)
    max_dy = min(int(np.ceil(largest[0])), max(full.dy_max, -full.dy_min))
    max_dx = min(int(np.ceil(largest[1])), max(full.dx_max, -full.dx_min))
    return ShiftWindow.symmetric(max_dy, max_dx)


def phase_planes(lefts: Array, rights: Array, window: ShiftWindow, engine: str) -> Array:
    """Phase correlation of matrices ``(N, 1, H, W)`` and ``(1 or N, M, H, W)`` over a window.

    Each matrix loses its mean and is tapered by a Hann window, since the edges of a crop would otherwise dominate
    the phases.
    """
    xp: Any = array_namespace(lefts)
    if engine not in ("auto", "fft"):
        raise ArgumentError(f"normalization 'phase' exists only in engine 'fft', not in {engine!r}")
    if lefts.shape[-2:] != rights.shape[-2:]:
        raise ArgumentError(
            f"normalization 'phase' needs matrices of one shape, got {lefts.shape[-2:]} and {rights.shape[-2:]}"
        )
    dtype = working_dtype(lefts, rights)
    rows, columns = (xp.asarray(_hann(n), dtype=dtype) for n in lefts.shape[-2:])
    taper = rows[:, None] * columns[None, :]
    correlator = FFTCorrelator(lefts.shape[-2:], rights.shape[-2:], window, xp, whiten=True)
    left = correlator.left(standardize(lefts, dtype).values * taper)
    right = correlator.right(standardize(rights, dtype).values * taper)
    return correlator.sums(left, right)


def _hann(size: int) -> Any:
    """Hann window that is not zero at its ends, so that one-pixel images keep their pixel."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size) if size > 1 else np.ones(1)
