"""Launch of the kernel that makes scores of planes of plain sums: a problem in; grid, defines and memory out."""

from __future__ import annotations

import functools
import math

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import Launch, ceil_div

_THREADS = 128
_SHIFTS = {False: 1, True: 4}
"""Shifts of a thread, of few shifts and of many: a score takes long, loads one after the other."""
_MANY = 1 << 20
_SCORE_BYTES = 96
_SUMS = {"float32": "float", "float64": "double"}
_MIN_VARIANCE = {"float32": "1e-4", "float64": "1e-10"}
"""Variance of an overlap, as a share of the whole matrix's, below which rounding would decide: of values so exact."""


@functools.lru_cache(maxsize=256)
def zncc_planes_launch(problem: Problem, sums: str, values: str) -> Launch:
    """Choose the launch for planes of `sums` of matrices standardised as `values`, both NumPy names of types."""
    shifts = math.prod(problem.plane_shape)
    of_thread = _SHIFTS[problem.pairs * shifts > _MANY]
    blocks = ceil_div(shifts, _THREADS * of_thread)
    defines: dict[str, str | int] = {
        "SUM_TYPE": _SUMS[sums],
        "THREADS": _THREADS,
        "SHIFTS_A_THREAD": of_thread,
        "RELATIVE_VARIANCE": _MIN_VARIANCE[values],
    }
    return Launch("peaks/zncc_planes", defines, problem.pairs * blocks, _THREADS, _SCORE_BYTES, (blocks,))
