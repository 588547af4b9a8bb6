// The body of multi_right.cu, multi_left_right.cu, multi_row.cu and combined_shuffle.cu: the warp shuffle of several
// matrices and several rows a thread.
//
// A warp sums 32 neighbouring dx, a lane each, of SHIFTS neighbouring dy, for LEFTS x RIGHTS pairs, LEFT_ROWS left rows at a
// time. Left rows slide through the lanes, right elements are broadcast: LEFTS * RIGHTS * SHIFTS * LEFT_ROWS FMA for
// 2 * LEFTS * LEFT_ROWS + RIGHTS * (SHIFTS + LEFT_ROWS - 1) shuffles. Left row y + u pairs with right row y + u - dy for the dy of
// each sum: right row k = u - j + SHIFTS - 1 for sum j. All indices are compile-time constants, so arrays stay in registers.
//
// PHASES: where the SHIFTS dy of a thread have different overlaps, the first and last left rows overlap only some of the
// right rows. 0: one loop for all, in which a row outside its matrix is read as zero. 1: as the document has it, an init
// phase and a drain phase, one left row at a time and only with the right rows that there are, and between them a body in
// which all rows lie inside.
//
// DISTRIBUTION: the left rows of one group of dy are split among warps, which add their sums with atomicAdd: zero the plane
// first; the last bits then depend on the order of the warps. Without (NONE) sums are stored.
#pragma once
#include "problem.cuh"
#include "warp.cuh"
#include "distribution.cuh"

#ifndef PHASES
#define PHASES 0
#endif
#ifndef DISTRIBUTION
#define DISTRIBUTION NONE
#endif
#ifndef MAX_ROWS
#define MAX_ROWS 32
#endif

// Steps unrolled: as many as keep the code of a row in the instruction cache.
constexpr int STEPS_AT_ONCE = LEFTS * RIGHTS * SHIFTS * LEFT_ROWS > 64 ? 2 : 8;

// What a warp works on. Matrices beyond the last of a group are the last once more, and not stored.
struct Operands {
    const Left* left[LEFTS];
    const Right* right[RIGHTS];
    int dy, dx;  // of sum 0, lane 0
    Span xs;
};
struct Sums {
    Sum at[LEFTS][RIGHTS][SHIFTS];
};

template <bool INSIDE, typename Element>
__device__ __forceinline__ Row<Element> row_at(const Element* matrix, int height, int width, int y) {
    if (!INSIDE) return row_of(matrix, height, width, y);
    const Row<Element> row = {matrix + (long long)y * width, width};
    return row;
}

// Adds the products of ROWS left rows from y on, before y_last. INSIDE: these and their right rows are all there.
template <int ROWS, bool INSIDE>
__device__ __forceinline__ void add_rows(const Problem& p, const Operands& of, int y, int y_last, int lane, Sums& sum) {
    constexpr int RIGHT_ROWS = ROWS + SHIFTS - 1;
    const int right_y = y - of.dy - (SHIFTS - 1);
    // Rows of the next task must not count; beyond all tasks they are multiplied with rows of zeros.
    const int left_height = DISTRIBUTION == NONE ? p.left_height : y_last;
    for (int x = of.xs.first; x < of.xs.last; x += WARP) {
        SlidingRow sliding[LEFTS][ROWS];
        Sum right_elements[RIGHTS][RIGHT_ROWS];
#pragma unroll
        for (int l = 0; l < LEFTS; ++l)
#pragma unroll
            for (int u = 0; u < ROWS; ++u)
                sliding[l][u].load(row_at<INSIDE>(of.left[l], left_height, p.left_width, y + u), x + of.dx, lane);
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r)
#pragma unroll
            for (int k = 0; k < RIGHT_ROWS; ++k)
                right_elements[r][k] = row_at<INSIDE>(of.right[r], p.right_height, p.right_width, right_y + k).at(x + lane);
#pragma unroll STEPS_AT_ONCE
        for (int step = 0; step < WARP; ++step) {
#pragma unroll
            for (int k = 0; k < RIGHT_ROWS; ++k) {
                // Of a single left row: the phases that know which right rows there are. The whole warp agrees.
                if (PHASES && !INSIDE && (unsigned)(right_y + k) >= (unsigned)p.right_height) continue;
#pragma unroll
                for (int r = 0; r < RIGHTS; ++r) {
                    const Sum element = broadcast(right_elements[r][k], step);
#pragma unroll
                    for (int u = 0; u < ROWS; ++u) {
                        const int j = u - k + SHIFTS - 1;
                        if (j < 0 || j >= SHIFTS) continue;
#pragma unroll
                        for (int l = 0; l < LEFTS; ++l) sum.at[l][r][j] += sliding[l][u].here * element;
                    }
                }
            }
#pragma unroll
            for (int l = 0; l < LEFTS; ++l)
#pragma unroll
                for (int u = 0; u < ROWS; ++u) sliding[l][u].slide(lane);
        }
    }
}

__device__ __forceinline__ void add_all_rows(const Problem& p, const Operands& of, int y, int y_last, int lane, Sums& sum) {
    if (!PHASES) {
        for (; y < y_last; y += LEFT_ROWS) add_rows<LEFT_ROWS, false>(p, of, y, y_last, lane, sum);
        return;
    }
    const int body_first = min(y_last, of.dy + SHIFTS - 1), body_last = min(y_last, p.right_height + of.dy);
    for (; y < body_first; ++y) add_rows<1, false>(p, of, y, y_last, lane, sum);  // init
    for (; y + LEFT_ROWS <= body_last; y += LEFT_ROWS) add_rows<LEFT_ROWS, true>(p, of, y, y_last, lane, sum);
    for (; y < y_last; ++y) add_rows<1, false>(p, of, y, y_last, lane, sum);  // drain
}

__device__ __forceinline__ void shuffled_tile(const Problem& p, const Left* lefts, const Right* rights_of_all, Sum* planes) {
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int tasks = tiles_x * workers_of(p, DISTRIBUTION, MAX_ROWS, SHIFTS);
    const int right_groups = ceil_div(p.rights_per_left, RIGHTS), left_count = p.pairs / p.rights_per_left;
    const int index = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (tasks == 0) return;  // no shift has any overlap, and no row a worker
    const int group = index / tasks, in_group = index % tasks;
    const int first_left = group / right_groups * LEFTS, first_right = group % right_groups * RIGHTS;
    if (first_left >= left_count) return;
    const Task task = task_of_worker(p, DISTRIBUTION, MAX_ROWS, in_group / tiles_x, SHIFTS);
    if (task.iy < 0) return;  // the whole warp is surplus
    const int right_count = min(RIGHTS, p.rights_per_left - first_right);
    const int ix = in_group % tiles_x * WARP;

    Operands of;
    Sums sum;
    of.dy = p.shift_y0 + task.iy;
    of.dx = p.shift_x0 + ix;
    of.xs = overlap_of_any(p.left_width, p.right_width, of.dx, WARP);
#pragma unroll
    for (int l = 0; l < LEFTS; ++l) {
        of.left[l] = left_of(p, lefts, min(first_left + l, left_count - 1) * p.rights_per_left);
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r)
#pragma unroll
            for (int j = 0; j < SHIFTS; ++j) sum.at[l][r][j] = 0;
    }
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r)
        of.right[r] = right_of(p, rights_of_all, first_left * p.rights_per_left + first_right + min(r, right_count - 1));

    const int first_row = max(0, of.dy);
    add_all_rows(p, of, first_row + task.first, first_row + task.last, lane, sum);

    if (ix + lane >= p.shifts_x) return;
#pragma unroll
    for (int l = 0; l < LEFTS; ++l)
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r)
#pragma unroll
            for (int j = 0; j < SHIFTS; ++j) {
                if (first_left + l >= left_count || r >= right_count || task.iy + j >= p.shifts_y) continue;
                const int pair = (first_left + l) * p.rights_per_left + first_right + r;
                Sum* element = plane_of(p, planes, pair) + (long long)(task.iy + j) * p.shifts_x + ix + lane;
                if (DISTRIBUTION == NONE)
                    *element = sum.at[l][r][j];
                else
                    atomicAdd(element, sum.at[l][r][j]);
            }
}
