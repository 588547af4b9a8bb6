"""What becomes of a frame whose shift is not to be trusted.

Drift is steady and doubt is not: between two trusted frames the shift lies near the line that joins them, while the
peak of a doubtful frame may lie anywhere. So a frame is moved by what was measured, or by what lies between that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError

POLICIES = ("interpolate", "apply", "leave")
DEFAULT_POLICY = "interpolate"


def applied_shifts(
    measured: NDArray[np.float64], trusted: NDArray[np.bool_], policy: str = DEFAULT_POLICY
) -> NDArray[np.float64]:
    """Shifts (T, 2) to apply, from those measured (T, 2), NaN where there is none, and which of them are trusted (T,).

    A shift that is not trusted is replaced by what lies on the line between its trusted neighbours in time, held at
    the ends (``interpolate``), taken all the same (``apply``, which interpolates only where there is none), or zero
    (``leave``). Where none can be taken, all are zero.
    """
    known = np.isfinite(measured).all(axis=1)
    taken = known if check_policy(policy) == "apply" else known & trusted
    if policy == "leave" or not taken.any():
        return np.where(np.stack([taken, taken], axis=1), measured, 0.0)
    frames = np.arange(taken.size)
    shifts = measured.copy()
    for axis in range(2):
        shifts[~taken, axis] = np.interp(frames[~taken], frames[taken], measured[taken, axis])
    return shifts


def check_policy(policy: str) -> str:
    """Return a policy that exists; raises ArgumentError for any other."""
    if policy not in POLICIES:
        raise ArgumentError(f"unknown policy {policy!r} for doubtful frames: use {', '.join(POLICIES)}")
    return policy
