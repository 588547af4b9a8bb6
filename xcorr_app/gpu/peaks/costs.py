"""How long the ways to the records of peaks take that need no tensor cores: constants measured on one H200."""

from __future__ import annotations

import math

from xcorr_app.gpu.direct.costs import combined_cost, share_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.search import peak_launch
from xcorr_app.gpu.runtime.limits import DeviceLimits

_SEARCH = 1e-5
"""Microseconds a shift of the search of planes in memory, where every multiprocessor searches one."""
_ADDING = 7e-4
"""Microseconds a sum that a pair's last block adds up, where the kernel that searches as it sums cuts pairs."""
_NEXT_PAIR = 14.0
"""Microseconds between two pairs of one multiprocessor, in the kernel that searches as it sums."""
_ARRAYS, _ARRAYS_OF_PLANES, _ARRAYS_LATENCY = 6e-5, 1.7e-4, 6e3
"""Microseconds an element of the images, where scores are asked for, or else of the planes, and at least: of the array
operations that search what the FFT made."""


def search_cost(problem: Problem, device: DeviceLimits) -> float:
    """Microseconds of the search of planes in memory."""
    in_turn = max(device.multiprocessors, problem.pairs) * share_of(device)
    return _SEARCH * in_turn * math.prod(problem.plane_shape)


def fft_search_cost(problem: Problem, device: DeviceLimits, *, normalize: bool) -> float:
    """Microseconds of array operations that find the peaks of planes by the FFT."""
    of_pair = (
        _ARRAYS * math.prod(problem.right_shape) if normalize else _ARRAYS_OF_PLANES * math.prod(problem.plane_shape)
    )
    return search_cost(problem, device) + max(_ARRAYS_LATENCY, of_pair * problem.pairs)


def combined_peak_cost(problem: Problem, device: DeviceLimits) -> float:
    """Microseconds of the launch that searches as it sums; infinite where a block does not cover the window."""
    launch = peak_launch(problem, normalize=True, left_type="float32", right_type="float32", device=device)
    if launch is None:
        return math.inf
    segments = launch.segments
    adding = segments * math.prod(problem.plane_shape) * _ADDING if segments > 1 else 0.0
    further = max(0.0, problem.pairs / device.multiprocessors - 1)
    return combined_cost(problem, device) + adding + _NEXT_PAIR * further
