// Multi-left-and-right: LEFTS x RIGHTS pairs per thread; each left row slides once, each right element is broadcast
// once.
// Document: announced in "Problems with local memory"; compile-time indices keep every array in registers. Form n-to-m
// only (every left is paired with the same rights). FMA : shuffles = l * r : 2 l + r,
// so at most 34 % of the FMA rate for 4 x 4. On an H200, 256^2, full plane, 16 pairs: 0.203.
// A launch processes whole lefts: the number of pairs is a multiple of rights_per_left.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef LEFTS
#define LEFTS 4
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif

// As in multi_right.cu: without the number of blocks some counts of lefts and rights spill.
extern "C" __global__ void __launch_bounds__(WARPS* WARP, 4)
    multi_left_right(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int tasks = tiles_x * p.shifts_y;
    const int groups = ceil_div(p.rights_per_left, RIGHTS);
    const int left_count = p.pairs / p.rights_per_left;
    const int index = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int group = index / tasks;
    const int first_left = group / groups * LEFTS;
    if (first_left >= left_count) return;
    const int first_right = (group % groups) * RIGHTS;
    const int right_count = least(RIGHTS, p.rights_per_left - first_right);
    const int iy = (index % tasks) / tiles_x, ix = (index % tasks) % tiles_x * WARP;
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;
    const Span ys = overlap(p.left_height, p.right_height, dy);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx, WARP);

    const Left* left[LEFTS];
    const Right* right[RIGHTS];
    Sum sum[LEFTS][RIGHTS];
#pragma unroll
    for (int l = 0; l < LEFTS; ++l) {
        const int nth = first_left + l < left_count ? first_left + l : left_count - 1;
        left[l] = left_of(p, lefts, nth * p.rights_per_left);
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r) sum[l][r] = 0;
    }
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r)
        right[r] = right_of(p, rights_of_all, first_right + least(r, right_count - 1));

    for (int y = ys.first; y < ys.last; ++y) {
        for (int x = xs.first; x < xs.last; x += WARP) {
            SlidingRow sliding[LEFTS];
            Sum right_elements[RIGHTS];
#pragma unroll
            for (int l = 0; l < LEFTS; ++l)
                sliding[l].load(row_of(left[l], p.left_height, p.left_width, y + dy), x + dx, lane);
#pragma unroll
            for (int r = 0; r < RIGHTS; ++r)
                right_elements[r] = row_of(right[r], p.right_height, p.right_width, y).at(x + lane);
#pragma unroll 8
            for (int k = 0; k < WARP; ++k) {
#pragma unroll
                for (int r = 0; r < RIGHTS; ++r) {
                    const Sum element = broadcast(right_elements[r], k);
#pragma unroll
                    for (int l = 0; l < LEFTS; ++l) sum[l][r] += sliding[l].here * element;
                }
#pragma unroll
                for (int l = 0; l < LEFTS; ++l) sliding[l].slide(lane);
            }
        }
    }
    if (ix + lane >= p.shifts_x) return;
#pragma unroll
    for (int l = 0; l < LEFTS; ++l)
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r)
            if (first_left + l < left_count && r < right_count) {
                const int pair = (first_left + l) * p.rights_per_left + first_right + r;
                plane_of(p, planes, pair)[(long long)iy * p.shifts_x + ix + lane] = sum[l][r];
            }
}
