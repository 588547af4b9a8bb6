"""When peaks are found sooner on tensor cores: a model of the time, with constants measured on one H200."""

from __future__ import annotations

import math

from xcorr_app.gpu.correlation_costs import costs
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.hankel_launch import hankel_launch
from xcorr_app.gpu.launch import DeviceLimits

__all__ = ["microseconds", "tensor_cores_are_faster"]

_PRODUCTS = 2.5e8
"""Products of halves a microsecond, over whole tiles of shifts (512 frames of 512^2, 32 x 32 shifts)."""
_NEIGHBOURHOOD = 1.3e-6
"""Microseconds an element that the sums around a peak take in single precision."""
_CALL = 40.0
"""Microseconds of the launches that the other ways do without."""
_SEARCH = 1e-5
"""Microseconds a shift of the search, which the FFT and kernels that write planes need too."""


def microseconds(problem: Problem, device: DeviceLimits | None = None) -> float:
    """Return the expected time of sums, search and neighbourhoods.

    Parameters
    ----------
    problem : Problem
        Whose rights slide over the left that they meet.
    device : DeviceLimits, optional
        Decides the tile of shifts.

    Returns
    -------
    float
        Without the tables of rectangle sums, which every way needs.
    """
    launch = hankel_launch(problem, warpgroup=True, device=device).launch
    tile = 8 * int(launch.defines["N_TILES"]) * 16 * int(launch.defines["M_TILES"])
    tiles = launch.extra[0] * launch.extra[1]
    pixels = problem.pairs * math.prod(problem.right_shape)
    return _CALL + pixels * (tile * tiles / _PRODUCTS + _NEIGHBOURHOOD) + _search(problem)


def tensor_cores_are_faster(problem: Problem, device: DeviceLimits | None = None) -> bool:
    """Whether they find the peaks of frames against references sooner than the FFT and the other kernels.

    Parameters
    ----------
    problem : Problem
        A batch of frames; at least four must share a reference, as the measured kernel takes as many at once.
    device : DeviceLimits, optional
        One of compute capability 9.0.

    Returns
    -------
    bool
        By the model and the table of measurements.
    """
    if problem.rights_per_left < 4:
        return False
    return microseconds(problem, device) < min(costs(problem, device).values()) + _search(problem)


def _search(problem: Problem) -> float:
    return _SEARCH * problem.pairs * math.prod(problem.plane_shape)
