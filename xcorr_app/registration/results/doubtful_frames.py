"""What becomes of a frame whose shift is not to be trusted.

Drift is steady and doubt is not: between two trusted frames the shift lies near the line that joins them, while the
peak of a doubtful frame may lie anywhere. So a frame is moved by what was measured, or by what lies between that; or,
where no frame may show what was not measured, it is left out. A few trusted frames among many that are not may be
chance, and are no line to follow: then all stay where they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError

POLICIES = ("interpolate", "apply", "leave", "drop")
DEFAULT_POLICY = "interpolate"


def applied_shifts(
    measured: NDArray[np.float64], trusted: NDArray[np.bool_], policy: str = DEFAULT_POLICY
) -> NDArray[np.float64]:
    """Shifts (T, 2) to apply, from those measured (T, 2), NaN where there is none, and which of them are trusted (T,).

    A shift that is not trusted is replaced by what lies on the line between its trusted neighbours in time, held at
    the ends (``interpolate``; all are zero where fewer than half of the shifts are trusted), taken all the same
    (``apply``, which interpolates only where there is none), zero (``leave``), or NaN (``drop``: the frame is to be
    left out). Where none can be taken, all are zero, or NaN.
    """
    known = np.isfinite(measured[:, 0]) & np.isfinite(measured[:, 1])
    taken = known if check_policy(policy) == "apply" else known & trusted
    if policy == "drop":
        return np.where(taken[:, None], measured, np.nan)
    if stays(taken, known, policy):
        return np.zeros_like(measured)
    if policy == "leave" or not taken.any():
        return np.where(np.stack([taken, taken], axis=1), measured, 0.0)
    frames = np.arange(taken.size)
    shifts = measured.copy()
    for axis in range(2):
        shifts[~taken, axis] = np.interp(frames[~taken], frames[taken], measured[taken, axis])
    return shifts


def stays(trusted: NDArray[np.bool_], known: NDArray[np.bool_], policy: str) -> bool:
    """Whether no frame is moved, since fewer than half of the known shifts are trusted, and others would follow these.

    Frames without a shift, dark ones say, are no sign that others are trusted by chance.
    """
    return policy == "interpolate" and bool(2 * trusted.sum() < known.sum())


def check_policy(policy: str) -> str:
    """Return a policy that exists; raises ArgumentError for any other."""
    if policy not in POLICIES:
        raise ArgumentError(f"unknown policy {policy!r} for doubtful frames: use {', '.join(POLICIES)}")
    return policy
