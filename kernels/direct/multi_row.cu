// Multi-row: SHIFTS consecutive dy per thread and LEFT_ROWS left rows per step, so that SHIFTS * LEFT_ROWS products
// share 2 * LEFT_ROWS + SHIFTS + LEFT_ROWS - 1 shuffles. The best of the document's forms for a single pair.
// Document: "Improving ratio of arithmetic instructions", multiple rows from the same right matrix. Its init and drain
// phases (only some of the right rows overlap) use the same loop body here: a row outside the right matrix is read as
// zero. Left row y + u is multiplied with right row y + u - dy for the dy of each sum: right row index = u - j + const
// for sum j. 8 x 4: FMA : shuffles = 32 : 19, so at most 43 % of the FMA rate. On an H200, 256^2, full plane, 16 pairs:
// 0.248.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef SHIFTS
#define SHIFTS 8
#endif
#ifndef LEFT_ROWS
#define LEFT_ROWS 4
#endif
#define RIGHT_ROWS (SHIFTS + LEFT_ROWS - 1)

extern "C" __global__ void __launch_bounds__(WARPS* WARP, 1)
    multi_row(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int tasks = tiles_x * ceil_div(p.shifts_y, SHIFTS);
    const int index = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (index >= p.pairs * tasks) return;
    const int pair = index / tasks;
    const int iy = (index % tasks) / tiles_x * SHIFTS, ix = (index % tasks) % tiles_x * WARP;
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;  // of sum 0, lane 0
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    // Left rows that overlap with a right row at any of the shifts.
    const int y_first = most(0, dy), y_last = least(p.left_height, p.right_height + dy + SHIFTS - 1);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx, WARP);

    Sum sum[SHIFTS];
#pragma unroll
    for (int j = 0; j < SHIFTS; ++j) sum[j] = 0;
    for (int y = y_first; y < y_last; y += LEFT_ROWS) {
        for (int x = xs.first; x < xs.last; x += WARP) {
            SlidingRow sliding[LEFT_ROWS];
            Sum right_elements[RIGHT_ROWS];
#pragma unroll
            for (int u = 0; u < LEFT_ROWS; ++u)
                sliding[u].load(row_of(left, p.left_height, p.left_width, y + u), x + dx, lane);
#pragma unroll
            for (int k = 0; k < RIGHT_ROWS; ++k)
                right_elements[k] =
                    row_of(right, p.right_height, p.right_width, y - dy - (SHIFTS - 1) + k).at(x + lane);
#pragma unroll 8
            for (int step = 0; step < WARP; ++step) {
#pragma unroll
                for (int k = 0; k < RIGHT_ROWS; ++k) {
                    const Sum element = broadcast(right_elements[k], step);
#pragma unroll
                    for (int u = 0; u < LEFT_ROWS; ++u) {
                        const int j = u - k + SHIFTS - 1;  // right row k = left row u minus shift j
                        if (j >= 0 && j < SHIFTS) sum[j] += sliding[u].here * element;
                    }
                }
#pragma unroll
                for (int u = 0; u < LEFT_ROWS; ++u) sliding[u].slide(lane);
            }
        }
    }
    if (ix + lane >= p.shifts_x) return;
#pragma unroll
    for (int j = 0; j < SHIFTS; ++j)
        if (iy + j < p.shifts_y) plane_of(p, planes, pair)[(long long)(iy + j) * p.shifts_x + ix + lane] = sum[j];
}
