"""The displacement of a pattern between two images on a grid, as particle image velocimetry and strain work want it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from xcorr_app.arguments import as_number
from xcorr_app.arrays.kinds import as_array
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.field.field_passes import OUTLIER, compared, refined
from xcorr_app.registration.field.measured_field import DisplacementField
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.solver.whole_frames import centred
from xcorr_app.registration.warping.grid import Grid

Refine = Literal["none", "icgn"]
REFINEMENTS = ("none", "icgn")
DEFAULT_WINDOW, DEFAULT_STEP, DEFAULT_PASSES = 32, 16, 3
"""Pixels a side of a window and from one to the next, and passes."""

_MIN_SIDE = 8
"""Pixels a side of a window at least."""
_FLATTEST = 1e-12
"""Of the largest value: what varies less is rounding."""


@one_blas_thread()
def displacement_field(
    first: Array,
    second: Array,
    window: int = DEFAULT_WINDOW,
    step: int = DEFAULT_STEP,
    passes: int = DEFAULT_PASSES,
    *,
    max_displacement: float | None = None,
    median_threshold: float = OUTLIER,
    mask: Array | None = None,
    refine: Refine = "none",
) -> DisplacementField:
    """Measure how the second image shows the pattern of the first displaced, on a grid.

    The first pass compares windows of twice the size; in each that follows, the second image is looked at through the
    displacement found so far, so that windows may be strained. After each pass, vectors whose peak chance may have
    made, that lie on the edge of the search, or that fail the normalised median test are replaced by the
    Gaussian-weighted local-linear regression of the others.

    Parameters
    ----------
    first, second : array_like, shape (Y, X)
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes; finite where not masked.
    window : int
        Rows and columns of a window, 8 or more.
    step : int
        Pixels, at most, from one window to the next; they are spread evenly from edge to edge.
    passes : int
        1 or more. A single pass compares windows of the size asked for, and fits the shift of each to its pixels.
    max_displacement : float, optional
        Largest displacement in pixels along each axis that the first pass searches. Default: half a window.
    median_threshold : float
        Residual of the normalised median test above which a vector is replaced.
    mask : array_like, shape (Y, X), optional
        Nonzero where pixels of the first image count. Points whose windows have less than half of them are NaN.
    refine : {'none', 'icgn'}
        Last step: inverse-compositional Gauss-Newton with first-order shape functions per window.

    Returns
    -------
    DisplacementField
        ``displacement`` (gy, gx, 2) in pixels, rows down and columns right, at ``rows`` and ``columns``.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For options out of range, images that differ in shape, are smaller than a window, flat or not finite.

    References
    ----------
    Westerweel and Scarano 2005, doi 10.1007/s00348-005-0016-6 (median test); Scarano 2002, doi
    10.1088/0957-0233/13/1/201 (window deformation); Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6 (``icgn``).

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(140, 140)), 1.5)
    >>> field = xc.displacement_field(scene[6:134, 6:134], scene[3:131, 8:136])
    >>> np.median(field.displacement, axis=(0, 1)).round(1) + 0.0
    array([ 3., -2.])
    """
    first, second = as_array(first, "first"), as_array(second, "second")
    reach = _checked(first, second, window, step, passes, max_displacement, median_threshold, refine)
    with on_device_of(first, second):
        valid = None
        if mask is not None:
            mask = as_array(mask, "mask")
            if mask.shape != first.shape:
                raise ShapeError(f"the mask has shape {mask.shape}: the images are {first.shape}")
            valid = array_namespace(first).asarray(mask) != 0
        images = [_prepared(image, valid, name) for image, name in ((first, "first"), (second, "second"))]
        sizes = [window] if passes == 1 else [min(2 * window, *first.shape), *[window] * (passes - 1)]
        found: DisplacementField | None = None
        for number, size in enumerate(sizes):
            grid = Grid.of(first.shape, size, step * size / window)
            within = reach if number == 0 else max(3, window // 4)
            found = compared(images, grid, within, found, valid, median_threshold)
        assert found is not None  # noqa: S101 - there is at least one pass
        how = "shift" if passes == 1 and refine == "none" else refine
        return refined(images, Grid.of(first.shape, window, step), found, valid, median_threshold, how)


def _checked(
    first: Array,
    second: Array,
    window: int,
    step: int,
    passes: int,
    max_displacement: float | None,
    median_threshold: float,
    refine: str,
) -> int:
    """Refuse what makes no sense; return the largest whole displacement of the first pass."""
    if array_namespace(first) is not array_namespace(second):
        raise DataTypeError("first and second must both be NumPy or both be CuPy arrays")
    if first.ndim != 2 or first.shape != second.shape:
        raise ShapeError(f"images have shapes {first.shape} and {second.shape}: give two of one shape (Y, X)")
    for name, image in (("first", first), ("second", second)):
        if image.dtype.kind not in "iuf":
            raise DataTypeError(f"{name} has dtype {image.dtype}: convert it to integers or floating point")
    if not isinstance(window, (int, np.integer)) or window < _MIN_SIDE:
        raise ArgumentError(f"window is {window!r}: give {_MIN_SIDE} pixels or more")
    if min(first.shape) < window:
        raise ShapeError(f"windows of {window} pixels do not fit into {first.shape[0]} x {first.shape[1]}: give less")
    if not isinstance(step, (int, np.integer)) or step < 1:
        raise ArgumentError(f"step is {step!r}: give one pixel or more")
    if not isinstance(passes, (int, np.integer)) or not 1 <= passes <= 20:
        raise ArgumentError(f"passes is {passes!r}: give 1 to 20")
    if not as_number(median_threshold, "median_threshold") > 0:
        raise ArgumentError(f"median_threshold is {median_threshold!r}: give a positive number")
    if refine not in REFINEMENTS:
        raise ArgumentError(f"unknown refinement {refine!r}: use {' or '.join(REFINEMENTS)}")
    if max_displacement is None:
        return window // 2
    if not 0 < as_number(max_displacement, "max_displacement") <= max(first.shape):
        raise ArgumentError(f"max_displacement is {max_displacement!r}: give pixels, more than none")
    return int(np.ceil(max_displacement))


def _prepared(image: Array, valid: Array | None, name: str) -> Array:
    """An image as float32 without its mean; what is masked is zero."""
    if valid is not None and not bool(valid.any()):
        raise ArgumentError("the mask leaves nothing to see: it is zero everywhere")
    # Beyond the mask there may be anything, in the second image too.
    values, damaged = centred(image[None], None if valid is None else valid[None])
    if bool(damaged[0]):
        raise ArgumentError(f"the {name} image holds NaN or infinite values: mask them, or replace them")
    low, high = float(image.min()), float(image.max())
    if not bool(values.any()) or (valid is None and not high - low > _FLATTEST * max(abs(low), abs(high))):
        raise ArgumentError(f"the {name} image is flat: there is no pattern to follow")
    return values[0]
