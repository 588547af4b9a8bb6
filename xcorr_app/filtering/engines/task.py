"""What every engine is handed: one frame, the taps, and how exact the sums must be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.boundary import Mode, padded
from xcorr_app.filtering.taps import Kernel
from xcorr_app.gpu.runtime.arrays import Array

SINGLE_LENGTH = 129
"""Longest chain of float32 additions that stays within 2e-6 of the sum of magnitudes."""
SINGLE_ERROR = 2e-6
"""Error of such a chain, as a fraction of the sum of magnitudes."""
ROUNDING_ERROR = 5e-3
"""Largest error of a sum that is rounded to an integer; twice as much may send it to the other neighbour."""
SINGLE_RANGE = (1e-25, 1e30)
"""Largest magnitudes of a frame whose sums neither vanish nor overflow in float32."""


@dataclass(frozen=True, eq=False)
class Task:
    """One frame to correlate with a kernel.

    Attributes
    ----------
    frame : (H, W) array
        NumPy or, for the engine ``fft``, CuPy; of any type of pixels; not modified.
    kernel : Kernel
        In correlation form.
    mode : str
        Of the boundary.
    cval : float
        The outside under ``"constant"``.
    integer_result : bool
        Whether the sums will be rounded to integers.
    """

    frame: Array
    kernel: Kernel
    mode: Mode
    cval: float
    integer_result: bool

    @cached_property
    def largest(self) -> float:
        """Largest magnitude in the frame and outside it; NaN or infinite where a pixel is."""
        largest = float(max(self.frame.max(), -float(self.frame.min())))
        if math.isnan(largest) or self.mode != "constant":
            return largest
        return self.cval if math.isnan(self.cval) else max(largest, abs(self.cval))

    @property
    def finite(self) -> bool:
        """Whether no pixel, and nothing outside, is NaN or infinite."""
        return math.isfinite(self.largest)

    def working_type(self, additions: int) -> type[np.float32 | np.float64]:
        """Return the type in which a chain of so many additions is exact enough."""
        single = additions <= SINGLE_LENGTH and self.frame.dtype.itemsize < 8 and self.finite
        if self.integer_result:
            allowed = math.ldexp(ROUNDING_ERROR, min(-self.kernel.exponent, 1000))
            single = single and SINGLE_ERROR * self.largest * self.kernel.weight <= allowed
        elif self.largest:
            single = single and SINGLE_RANGE[0] <= self.largest <= SINGLE_RANGE[1]
        return np.float32 if single else np.float64

    def padded(self, dtype: npt.DTypeLike) -> Array:
        """Return the frame with the margins of the kernel, in a type of floating point."""
        rows, columns = self.kernel.margins
        return padded(self.frame, rows, columns, self.mode, self.cval, dtype)
