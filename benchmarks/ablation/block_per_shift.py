"""A block for every shift, which the document on correlation asks about and leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.ablation.local_arrays import attempt_of_source
from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.harness.contender import Attempt
from xcorr_app.gpu.runtime.launch import Launch

SOURCE = r"""
#include "problem.cuh"
#include "warp.cuh"
extern "C" __global__ void __launch_bounds__(THREADS)
    block_per_shift(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    __shared__ Sum of_warps[THREADS / WARP];
    const int shifts = p.shifts_y * p.shifts_x;
    const int pair = (int)blockIdx.x / shifts, shift = (int)blockIdx.x % shifts;
    const int dy = p.shift_y0 + shift / p.shifts_x, dx = p.shift_x0 + shift % p.shifts_x;
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    const Span ys = overlap(p.left_height, p.right_height, dy), xs = overlap(p.left_width, p.right_width, dx);
    const int width = xs.last - xs.first, down = THREADS / width, along = THREADS % width;
    Sum sum = 0;
    for (int y = ys.first + (int)threadIdx.x / width, x = (int)threadIdx.x % width; y < ys.last; y += down) {
        sum += (Sum)left[(long long)(y + dy) * p.left_width + dx + xs.first + x] *
               (Sum)right[(long long)y * p.right_width + xs.first + x];
        x += along;
        if (x >= width) {
            x -= width;
            ++y;
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < THREADS / WARP; ++warp) sum += of_warps[warp];
    planes[blockIdx.x] = sum;
}
"""


def block_per_shift_attempt(case: Case, data: Data, _: str, macros: Mapping[str, int]) -> Attempt:
    """Make it ready for full planes, every shift of which overlaps."""
    shifts = case.problem.pairs * math.prod(case.problem.plane_shape)
    launch = Launch("direct/block_per_shift", dict(macros), shifts, macros["THREADS"])
    source = "".join(f"#define {name} {value}\n" for name, value in macros.items()) + SOURCE
    return attempt_of_source(source, launch, case, data)
