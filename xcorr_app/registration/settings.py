"""What a measurement of shifts is asked to do, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arguments import is_number
from xcorr_app.correlation.engines import check_kernel_options
from xcorr_app.correlation.plane import DEFAULT_MIN_OVERLAP, NORMALIZATIONS
from xcorr_app.correlation.window import ShiftWindow, as_window
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.stack.prefilter import Contrast, Prefilter

Roi: TypeAlias = tuple[slice, slice]

WEIGHTINGS = ("auto", "none")

PHASE = "phase"
"""Sub-pixel step after the fit to the plane: see :mod:`xcorr_app.registration.measuring.phase_ramp`."""
Subpixel = Literal["gaussian", "dft", "quadratic", "parabolic", "none", "phase"]
SUBPIXEL: tuple[str, ...] = get_args(Subpixel)

DEFAULT_MIN_SCORE = 0.85
"""A frame is doubtful whose score is below this fraction of what its noise allows."""

DEFAULT_TOLERANCE = 0.01
"""Largest accepted difference in pixels between an engine's shift and the float64 FFT reference's."""

MIN_OVERLAP_OF_MASKS = 0.1
"""Share of the most pixels that count in two images at any shift, which meet at least."""

DEFAULT_MAX_SIGMA = 0.5
"""Standard error in pixels above which a shift is uncertain, unless"""
OF_MOTION = 0.02
"""share of the range of a stack's shifts is more: what is left is a fiftieth of what was."""

MAX_SMOOTH_TIME = 1000
"""Most frames that may be averaged around each."""


@dataclass(frozen=True)
class Settings:
    """Options of :func:`xcorr_app.estimate_shifts`, where each is explained.

    Raises
    ------
    ArgumentError
        If an option is unknown or out of range.
    """

    max_shift: float | tuple[float, float] | None = None
    normalization: str = "zncc"
    subpixel: str = "gaussian"
    upsample: int = 100
    weighting: str = "auto"
    prefilter: Prefilter = field(default_factory=Prefilter)
    contrast: Contrast = field(default_factory=lambda: Contrast(auto=True))
    roi: Roi | None = None
    engine: str = "auto"
    kernel_options: KernelOptions | None = None
    min_overlap: float = DEFAULT_MIN_OVERLAP
    min_score: float = DEFAULT_MIN_SCORE
    tolerance: float = DEFAULT_TOLERANCE
    max_sigma: float | None = None
    smooth_time: int = 1
    masks: Masks | None = None

    def __post_init__(self) -> None:
        if self.normalization not in NORMALIZATIONS:
            raise ArgumentError(f"unknown normalization {self.normalization!r}: use one of {', '.join(NORMALIZATIONS)}")
        if self.subpixel not in SUBPIXEL:
            raise ArgumentError(f"unknown subpixel method {self.subpixel!r}: use one of {', '.join(SUBPIXEL)}")
        if self.normalization == "phase" and self.engine not in ("auto", "fft"):
            raise ArgumentError(f"normalization 'phase' exists only in engine 'fft', not in {self.engine!r}")
        check_kernel_options("fft" if self.normalization == "phase" else self.engine, self.kernel_options)
        if self.weighting not in WEIGHTINGS:
            raise ArgumentError(f"unknown weighting {self.weighting!r}: use one of {', '.join(WEIGHTINGS)}")
        if not isinstance(self.upsample, (int, np.integer)) or not 1 <= self.upsample <= 10_000:
            raise ArgumentError(f"upsample is {self.upsample!r}: use 1 to 10000 grid points per pixel")
        if not isinstance(self.smooth_time, (int, np.integer)) or not 1 <= self.smooth_time <= MAX_SMOOTH_TIME:
            raise ArgumentError(f"smooth_time is {self.smooth_time!r}: use 1 to {MAX_SMOOTH_TIME} frames")
        if self.roi is not None:
            _check_roi(self.roi)
        for name in ("min_overlap", "min_score"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 1:
                raise ArgumentError(f"{name} is {value!r}: it is a fraction in [0, 1]")
        for name in ("tolerance", "max_sigma"):
            value = getattr(self, name)
            if (value is not None or name == "tolerance") and not (is_number(value) and value > 0):
                raise ArgumentError(f"{name} is {value!r}: give a positive number of pixels")

    @staticmethod
    def overlap(wanted: float | None, masks: Masks | None) -> float:
        """Smallest overlap, where it is not given: of what counts in two images little may meet."""
        return wanted if wanted is not None else DEFAULT_MIN_OVERLAP if masks is None else MIN_OVERLAP_OF_MASKS

    @property
    def sure_sigma(self) -> float:
        """Standard error in pixels up to which a shift is sure by itself, however far others move."""
        return DEFAULT_MAX_SIGMA if self.max_sigma is None else self.max_sigma

    def sigma_limit(self, shifts: NDArray[np.float64]) -> float:
        """Standard error in pixels above which a shift is uncertain, in a stack known to move by these (n, 2)."""
        if self.max_sigma is not None or not len(shifts):
            return self.sure_sigma
        return max(DEFAULT_MAX_SIGMA, OF_MOTION * float(np.ptp(shifts, axis=0).max()))

    @property
    def finds_nuisances(self) -> bool:
        """Whether what is no scene is looked for: how frames are compared is left to the program."""
        return self.contrast.auto and self.normalization == "zncc" and self.kernel_options is None

    @property
    def by_default(self) -> bool:
        """Whether nothing was asked for that would change what nuisances show."""
        return self.finds_nuisances and self.prefilter.name is None

    @property
    def of_peak(self) -> str:
        """Sub-pixel method that is applied to the plane."""
        return "gaussian" if self.subpixel == PHASE else self.subpixel

    @property
    def apart(self) -> int:
        """How far the number of a frame may be from another's that it shares averaged frames with."""
        return self.smooth_time // 2 * 2

    def measured_shape(self, frame_shape: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of the part of a frame that is measured.

        Raises
        ------
        ArgumentError
            If the region of interest is empty or reaches outside the frame.
        """
        if self.roi is None:
            return frame_shape
        sizes = []
        for name, part, size in zip(("rows", "columns"), self.roi, frame_shape, strict=True):
            start = 0 if part.start is None else part.start
            stop = size if part.stop is None else part.stop
            if not 0 <= start < stop <= size:
                raise ArgumentError(f"roi {name} {start}:{stop} do not lie inside 0:{size}, or are empty")
            sizes.append(stop - start)
        return sizes[0], sizes[1]

    def window(self, frame_shape: tuple[int, int]) -> ShiftWindow:
        """Window of shifts that is searched: `max_shift`, by default a quarter of the measured part on each axis."""
        shape = self.measured_shape(frame_shape)
        if self.max_shift is None:
            return ShiftWindow.symmetric(*(int(np.ceil(size / 4)) if size > 1 else 0 for size in shape))
        return as_window(self.max_shift, shape, shape)


def _check_roi(roi: Roi) -> None:
    slices = isinstance(roi, tuple) and len(roi) == 2 and all(isinstance(part, slice) for part in roi)
    if slices:
        ends = [end for part in roi for end in (part.start, part.stop) if end is not None]
        whole = all(isinstance(end, (int, np.integer)) for end in ends)
        if whole and all(part.step is None for part in roi):
            return
    raise ArgumentError(f"roi is {roi!r}: give two slices of whole pixels, (rows, columns), without a step")
