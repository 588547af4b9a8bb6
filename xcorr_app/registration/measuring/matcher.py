"""One measurement: frames against reference images, through an engine, to shifts and their quality.

The plane is computed a few shifts beyond the window, so that a peak at the window's edge still has the neighbours
that sub-pixel interpolation needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xcorr_app.correlation.engines import Correlator, choose_engine, limits_of
from xcorr_app.correlation.normalize import ZNCC, Overlaps, zncc_for
from xcorr_app.correlation.peaks import neighbourhoods
from xcorr_app.correlation.plane import phase_planes
from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.subpixel import radius_of, refine
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.noise_sums import RowsAndProducts
from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host
from xcorr_app.registration.choice import why_planes
from xcorr_app.registration.measuring.device_matcher import DeviceMatcher, PendingFrames
from xcorr_app.registration.measuring.match import Comparison, Match, Planes, find_rated_peaks
from xcorr_app.registration.quality import NOISE_PERIOD, PERIOD_OF_QUIET, signal_fraction
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes, started_slopes
from xcorr_app.registration.standard_error.uncertainty import peak_shapes

_MIN_SIDE_WITH_TIES = 16
"""Rows and columns from which equal peaks mean a lattice."""

_NEAR_RADIUS = 6
"""Shifts to each side of a smoothed value beyond which what smooths it is all but zero."""


class PreparedReference:
    """Reference images standardised, for any number of frames; what else they are needed as is made when asked for.

    Parameters
    ----------
    values : ndarray, shape (1 or n, h, w)
        Standardised, or as stored where the engine sums them so.
    matcher : Matcher
    """

    def __init__(self, values: Array, matcher: Matcher) -> None:
        self.values = values
        self._matcher = matcher
        self._started: Callable[[], RowsAndProducts] | None = None

    @cached_property
    def operand(self) -> Array:
        """The images as the engine wants them."""
        return self._matcher.correlator.left(self.values[:, None])

    @cached_property
    def overlap(self) -> Overlaps:
        """Their sums over all overlaps."""
        return self._matcher.zncc.left(self.values)

    @cached_property
    def signal_fractions(self) -> NDArray[np.float64]:
        """(1 or n,) fraction of the variance that is not white noise."""
        return signal_fraction(self.values)

    @cached_property
    def tables(self) -> Array:
        """Their summed-area tables, for matching on a device."""
        assert self._matcher.on_device is not None  # noqa: S101 - asked for by that matcher only
        return self._matcher.on_device.tables(self.values)

    @cached_property
    def slopes(self) -> ReferenceSlopes:
        """Their slopes, smoothed as planes are, for standard errors."""
        if "signal_fractions" in self.__dict__ or not is_device_array(self.values) or self.values.dtype != np.float32:
            return ReferenceSlopes(self.values, self._matcher.kernel, self.signal_fractions)
        # A device is waited for once: both look at the same rows.
        found = ReferenceSlopes(self.values, self._matcher.kernel, started=self._started)
        self.signal_fractions, self._started = found.signal_fractions, None
        return found

    def start_slopes(self) -> None:
        """Let a device begin with what `slopes` waits for."""
        if (
            not {"signal_fractions", "slopes"} & self.__dict__.keys()
            and self._started is None
            and self.values.dtype == np.float32
        ):
            self._started = started_slopes(self.values, noisy=True)


class Matcher:
    """Compares frames with a reference within a window of shifts.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the measured images.
    window : ShiftWindow
        Shifts among which the peak is searched.
    settings : Settings
    dtype : float32 or float64
        Precision of the product.
    engine : str
        Name of the engine, not ``auto``: that is resolved once for the whole stack.
    kernel : ndarray or None
        Weighting of frequencies: see :mod:`xcorr_app.correlation.weighting`.
    xp : module
        numpy or cupy.
    canonical_batch : (int, int), optional
        Numbers of references and frames for which a device's kernels are chosen, however many are compared at a time.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        window: ShiftWindow,
        settings: Settings,
        dtype: DTypeLike,
        engine: str,
        kernel: NDArray[np.float64] | None,
        xp: Any,
        canonical_batch: tuple[int, int] | None = None,
    ) -> None:
        near = window.grown(max(radius_of(settings.of_peak), 2))
        self.kernel, weighted = kernel, kernel is not None
        self._shape = shape
        self._window = near if kernel is None else near.grown(RADIUS)
        self._searched = near
        self._inside = window.inside(near)
        # Of frames that are quiet few rows tell their noise: sixteen groups at least.
        self._noise_period = min(max(NOISE_PERIOD, shape[0] // 16), NOISE_PERIOD if weighted else PERIOD_OF_QUIET)
        self._has_ties = min(shape) >= _MIN_SIDE_WITH_TIES
        self._settings, self._dtype, self._xp = settings, dtype, xp
        options = settings.kernel_options
        if options is not None and options.precision == "fp16":
            # Frames that fp16 cannot decide need planes that are more exact.
            options = replace(options, precision="fp16x2")
        self.engine = choose_engine(engine, xp, kernel_options=options)
        self.on_device = None
        limits, name = limits_of(xp), self.engine.name
        if (
            limits is not None
            and name in ("direct", "tensor")
            and why_planes(settings, window.shape, limits, weighted=weighted) is None
        ):
            self.on_device = DeviceMatcher(shape, window, settings, engine=name, canonical_batch=canonical_batch)

    @cached_property
    def correlator(self) -> Correlator:
        """Of what needs planes."""
        return self.engine.bind(self._shape, self._shape, self._window, self._xp)

    @cached_property
    def zncc(self) -> ZNCC:
        """What normalises them."""
        return zncc_for(self._shape, self._shape, self._window, self._settings.min_overlap, self._xp)

    def prepare_reference(self, images: Array) -> PreparedReference:
        """Standardise reference images (1 or n, h, w)."""
        # left = reference, right = frame: the plane then peaks at what must be added to the frame.
        return PreparedReference(self._standard(images), self)

    def begin(self, frames: Array, references: int = 1) -> PendingFrames | None:
        """Let a device begin with frames (n, h, w), whose references are not ready yet; None where it cannot."""
        there = self.on_device
        return there.begin(frames, references, self._xp) if there is not None and there.reads(frames) else None

    def compare(
        self,
        reference: PreparedReference,
        frames: Array,
        pending: PendingFrames | None = None,
    ) -> Comparison:
        """Match frames (n, h, w) with one reference image or each with its own.

        `pending` is what :meth:`begin` returned for these frames, if it was called.
        """
        count = reference.values.shape[0]
        pending = pending or self.begin(frames, count)
        if self.on_device is None or pending is None:
            planes = self.planes(reference, frames)
            match = self.match(planes)
            clean = signal_fraction(planes.values, None, self._noise_period)
            return Comparison(match, clean, planes.values, _shapes(reference, planes.values, match))
        values = frames if frames.dtype.kind in "iu" else self._standard(frames)
        found = self.on_device.match(
            reference.values,
            reference.tables,
            (reference.start_slopes, lambda: reference.slopes),
            pending,
            values,
        )
        if found.others is not None and found.others.size:
            part = PreparedReference(reference.values[found.others], self) if count > 1 else reference
            other = self.match(self.planes(part, frames[found.others]))
            found.match.put(found.others, other)
            found.shapes.put(found.others, _shapes(part, values[found.others], other))
        return found

    def tells_flat(self, frames: Array) -> bool:
        """Whether comparing these frames also tells which of them have one value."""
        there = self.on_device
        return there is not None and there.reads(frames) and there.tells_flat(frames)

    def planes(self, reference: PreparedReference, frames: Array) -> Planes:
        """Correlate frames (n, h, w) with one reference image, or each with its own."""
        values = self._standard(frames)
        each = reference.values.shape[0] > 1
        right = self.correlator.right(values[:, None] if each else values[None])
        sums = self.correlator.sums(reference.operand, right).reshape(values.shape[0], *self._window.shape)
        overlap = self.zncc.right(values)
        scores = self.zncc(sums, reference.overlap, overlap)
        rim = slice(None) if self.kernel is None else slice(RADIUS, -RADIUS)
        searched = scores
        if self.kernel is not None:
            searched = smooth(scores, self.kernel)
        if self._settings.normalization == "none":
            searched = sums[:, rim, rim].astype(np.float64)
        elif self._settings.normalization == "phase":
            rights = values[:, None] if each else values[None]
            searched = phase_planes(reference.values[:, None], rights, self._searched)
            searched = searched.reshape(values.shape[0], *self._searched.shape)
        if self._settings.normalization != "zncc":
            searched = self._xp.where(self.zncc.too_small[rim, rim], np.nan, searched)
        return Planes(values, searched, scores, overlap, reference.values, reference.overlap)

    def _standard(self, images: Array) -> Array:
        return standardize(images, self._dtype).values

    def match(self, planes: Planes, tied: NDArray[np.intp] | None = None) -> Match:
        """Find the peak of each plane, refine it and rate it.

        Parameters
        ----------
        planes : Planes
        tied : ndarray of int, shape (n, 2), optional
            Shifts that are taken for the peaks of planes that are equally high there, up to rounding: a check of them,
            which needs no rating.
        """
        settings = self._settings
        # The height of a plane that is weighted, or normalised otherwise, is no score.
        plain = self.kernel is None and settings.normalization == "zncc"
        first = self._searched.dy_min, self._searched.dx_min
        # On a lattice many shifts are equal; a frame on itself has none. Of a few pixels any may be equal.
        zero = (-first[0], -first[1]) if tied is None and self._has_ties else None
        found = find_rated_peaks(
            planes, self._inside, None if tied is None else tied - first, zero, plain=plain, rate=tied is None
        )
        peak = np.stack([found.row + first[0], found.column + first[1]], axis=1)
        radius = radius_of(settings.of_peak)
        near = found.near[:, 1:2, 1:2] if radius == 0 else found.near
        if radius > 1:
            near = to_host(neighbourhoods(planes.searched, *found.indices(self._xp), radius))
        if settings.normalization == "zncc" and radius == 1 and peak.any():  # opposite shifts from zero overlap alike
            near = self._on_common_overlap(near, planes, peak)
        offset, height = refine(near, settings.of_peak, settings.upsample)
        valid = np.isfinite(found.value)
        shift = np.where(valid[:, None], peak + offset, np.nan)
        score = np.where(valid, np.clip(height if plain else found.around[:, 2, 2], -1.0, 1.0), np.nan)
        rating = found.rating
        return Match(
            peak, shift, score, found.ratio(), found.climbs, found.around, found.near, rating.z, rating.false_alarm
        )

    def _on_common_overlap(
        self, near: NDArray[np.float64], planes: Planes, peak: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Values around peaks, of the parts that overlap there; of a smoothed plane, as far as its kernel matters."""
        row, column = self._xp.asarray((peak - (self._window.dy_min, self._window.dx_min)).T)
        if self.kernel is None:
            around = self._xp.asarray(near)  # the planes searched are the scores themselves
        else:
            around = neighbourhoods(planes.all_scores, row, column, 1 + _NEAR_RADIUS)
        images, overlaps = (planes.references, planes.values), (planes.of_references, planes.overlap)
        common = self.zncc.on_common_overlap(around, images, overlaps, peak, (row, column))
        if self.kernel is None:
            return np.asarray(to_host(common))
        # One by one: how BLAS adds the products of several rows depends on how many there are.
        change = to_host(self._xp.nan_to_num(common - around)).reshape(peak.shape[0], 1, -1)
        return np.asarray(near + (change @ _near_weights(self.kernel)).reshape(near.shape))


def _shapes(reference: PreparedReference, values: Array, match: Match) -> PeakShapes:
    return peak_shapes(reference.slopes, values, match.peak, match.shift, match.near, match.around)


def _near_weights(kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights ((2 r + 1)^2, 9) by which values around a peak enter the 3 x 3 of the plane smoothed by the kernel."""
    first, size = RADIUS - 1 - _NEAR_RADIUS, 3 + 2 * _NEAR_RADIUS
    places = [slice(first - step, first - step + size) for step in (-1, 0, 1)]
    return np.asarray(np.stack([kernel[y, x].ravel() for y in places for x in places], axis=1))
