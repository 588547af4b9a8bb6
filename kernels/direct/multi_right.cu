// Multi-right: the warp-shuffle kernel with RIGHTS rights per thread; the left row is loaded and moved through the
// lanes once for all of them.
// Document: "Improving ratio of arithmetic instructions" (one-to-many). Forms one-to-many, n-to-mn and n-to-m.
// FMA : shuffles = r : r + 2, so at most 17 % of the FMA rate for r = 4. On an H200, 256^2, full plane, 16 pairs: 0.131.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif

// The 4 blocks an SM state how many registers there are; left alone, the compiler aims at 64 and spills in double.
extern "C" __global__ void __launch_bounds__(WARPS* WARP, 4)
    multi_right(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int tasks = tiles_x * p.shifts_y;
    const int groups = ceil_div(p.rights_per_left, RIGHTS);  // groups of rights paired with the same left
    const int index = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int group = index / tasks;
    const int first = group / groups * p.rights_per_left + group % groups * RIGHTS;
    if (group / groups * p.rights_per_left >= p.pairs) return;
    const int count = least(RIGHTS, p.rights_per_left - (group % groups) * RIGHTS);
    const int iy = (index % tasks) / tiles_x, ix = (index % tasks) % tiles_x * WARP;
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;
    const Left* left = left_of(p, lefts, first);
    const Span ys = overlap(p.left_height, p.right_height, dy);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx, WARP);

    const Right* right[RIGHTS];
    Sum sum[RIGHTS];
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) {
        right[r] = right_of(p, rights_of_all, first + least(r, count - 1));
        sum[r] = 0;
    }
    for (int y = ys.first; y < ys.last; ++y) {
        const Row<Left> left_row = row_of(left, p.left_height, p.left_width, y + dy);
        for (int x = xs.first; x < xs.last; x += WARP) {
            SlidingRow sliding;
            sliding.load(left_row, x + dx, lane);
            Sum right_elements[RIGHTS];
#pragma unroll
            for (int r = 0; r < RIGHTS; ++r)
                right_elements[r] = row_of(right[r], p.right_height, p.right_width, y).at(x + lane);
#pragma unroll 8
            for (int k = 0; k < WARP; ++k) {
#pragma unroll
                for (int r = 0; r < RIGHTS; ++r) sum[r] += sliding.here * broadcast(right_elements[r], k);
                sliding.slide(lane);
            }
        }
    }
    if (ix + lane >= p.shifts_x) return;
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r)
        if (r < count) plane_of(p, planes, first + r)[(long long)iy * p.shifts_x + ix + lane] = sum[r];
}
