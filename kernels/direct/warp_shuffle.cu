// Warp shuffle: a warp = 32 consecutive dx of one dy. The left row moves through the lanes, the right element is
// broadcast.
// Document: "Warp shuffle algorithm". Elements outside the left matrix are read as zero, so lanes do not diverge.
// FMA : shuffles = 1 : 3, so at most 8.5 % of the FMA rate on a device whose shuffles run at a quarter of it.
// On an H200, 256^2, full plane, 16 pairs: 0.069.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 4
#endif

extern "C" __global__ void __launch_bounds__(WARPS* WARP)
    warp_shuffle(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int task = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int tasks = tiles_x * p.shifts_y;
    if (task >= p.pairs * tasks) return;
    const int pair = task / tasks;
    const int iy = (task % tasks) / tiles_x, ix = (task % tasks) % tiles_x * WARP;
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;  // dx of lane 0
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    const Span ys = overlap(p.left_height, p.right_height, dy);
    const Sum sum = slid_rows(p, left, right, dy, dx, ys.first, ys.last, lane);
    if (ix + lane < p.shifts_x) plane_of(p, planes, pair)[(long long)iy * p.shifts_x + ix + lane] = sum;
}
