// Taps of low rank: what a warp of the fused pass stages, its layout in shared memory, and how its sums become results.
//
// result[y][x] = sum over t of (sum over f of column[t][f] * (sum over e of row[t][e] * image[y + f - TOP][x + e - LEFT]))
//
// A warp processes a strip of STRIP columns, STEP_ROWS rows at a time, so that a lane forms ROW_SUMS neighbouring sums
// of one row. Each warp has its own shared memory: no block-wide barrier is needed.
#pragma once
#include "vector_pixels.cuh"

#ifndef TERMS  // 1 or 2
#define TERMS 1
#endif
#ifndef LANE_COLUMNS  // 4, 2 or 1: columns whose rolling sums a lane holds
#define LANE_COLUMNS 4
#endif
#ifndef ROW_SUMS  // 8 or 4: neighbouring sums that a lane forms of one row
#define ROW_SUMS 8
#endif

#define VEC4 4
#define STRIP (LANE_COLUMNS * WARP)
#define STEP_ROWS (ROW_SUMS * WARP / STRIP)

// The staged row begins at a column that is a multiple of four, `SKIP` elements before the first that is needed.
#define LEFT_PAD ((LEFT + VEC4 - 1) / VEC4 * VEC4)
#define SKIP (LEFT_PAD - LEFT)
#define WINDOW_VEC4S ((SKIP + FILTER_WIDTH + ROW_SUMS - 1 + VEC4 - 1) / VEC4)
#define STAGED_VEC4S ((STRIP - ROW_SUMS) / VEC4 + WINDOW_VEC4S)
#define STAGED_COLUMNS (STAGED_VEC4S * VEC4)

// A lane loads one float4 of every row; those beyond the 32nd are shared out, of REST_ROWS rows at a time.
#define REST (STAGED_VEC4S - WARP)
#define REST_LANES (REST <= 4 ? 4 : REST <= 8 ? 8 : REST <= 16 ? 16 : WARP)
#define REST_ROWS (WARP / REST_LANES)
#define LOADS (REST > 0 ? STEP_ROWS + (STEP_ROWS + REST_ROWS - 1) / REST_ROWS : STEP_ROWS)

// An odd number of float4s from row to row: the eight lanes of a 16-byte access, four of each of two rows, cover all banks.
#define STAGED_PITCH ((STAGED_VEC4S | 1) * VEC4)
#define PASSED_PITCH ((STRIP / VEC4 | 1) * VEC4)

struct WarpMemory {
    Sum staged[STEP_ROWS * STAGED_PITCH];         // rows of the image, converted, with what the row taps reach
    Sum passed[TERMS * STEP_ROWS * PASSED_PITCH];  // the same rows behind the row taps
    int source[STAGED_COLUMNS];  // where a staged column is read, counted from the first of its float4
};
#ifdef WARP_BYTES  // what the launch asks for
static_assert(sizeof(WarpMemory) == WARP_BYTES, "the launch and the kernel disagree about shared memory");
#endif

struct Terms {
    double weight;  // sum of all taps multiplied out
    Sum column[TERMS][FILTER_HEIGHT], row[TERMS][FILTER_WIDTH];
    Sum outside;  // value outside the image, for BOUNDARY_CONSTANT
};

// Load i of a lane: the row of the step and the staged float4 that it loads.
__device__ __forceinline__ int row_of_load(int i, int lane) {
    return i < STEP_ROWS ? i : (i - STEP_ROWS) * REST_ROWS + lane / REST_LANES;
}
__device__ __forceinline__ int vec4_of_load(int i, int lane) { return i < STEP_ROWS ? lane : WARP + lane % REST_LANES; }
__device__ __forceinline__ bool is_load_needed(int i, int lane) {
    return vec4_of_load(i, lane) < STAGED_VEC4S && row_of_load(i, lane) < STEP_ROWS;
}

// Where a float4 of a row is read at once, and how its elements follow each other. A float4 outside an image stands for one
// inside; in images of whole float4s it is one of theirs as well, but with BOUNDARY_MIRROR (below).
enum Order { ONWARDS, BACKWARDS, FIRST_ALONE, LAST_ALONE, SCATTERED };
struct Vec4Source {
    int column;  // of the first element in memory; SCATTERED: of the float4 itself, inside the image or not
    Order order;
};
__device__ __forceinline__ Vec4Source source_of_vec4(int column, int width, bool whole_vec4s) {
    const int first = source_index(column, width), last = source_index(column + VEC4 - 1, width);
    Vec4Source source = {column, SCATTERED};
    if (!whole_vec4s) return source;
    if (last - first == VEC4 - 1 && first % VEC4 == 0) source = {first, ONWARDS};
    if (first - last == VEC4 - 1 && last % VEC4 == 0) source = {last, BACKWARDS};
    if (first == last) source = {first / VEC4 * VEC4, first == 0 ? FIRST_ALONE : LAST_ALONE};
    return source;
}
template <typename T>
__device__ __forceinline__ void put_in_order(Group<T, VEC4>& vec4, Order order) {
    const Group<T, VEC4> read = vec4;
#pragma unroll
    for (int k = 0; k < VEC4; ++k) {
        if (BOUNDARY == BOUNDARY_REFLECT)
            vec4.at[k] = order == BACKWARDS ? read.at[VEC4 - 1 - k] : read.at[k];
        if (BOUNDARY == BOUNDARY_NEAREST)
            vec4.at[k] = order == FIRST_ALONE ? read.at[0] : order == LAST_ALONE ? read.at[VEC4 - 1] : read.at[k];
    }
}

// BOUNDARY_MIRROR: what a float4 outside stands for belongs to two float4s. Where the warp stages both, nothing outside is
// read:
// staged column `to` + c becomes a copy of staged column `from` - c, for every c below `count`.
struct Copies {
    int to, from, count;
};
// Those of a warp whose staged columns begin at `left`; none where they would not give all that its results need.
__device__ __forceinline__ Copies copies_beyond_border(int left, int width) {
    const int last = min(left + STAGED_COLUMNS, width + FILTER_WIDTH - 1 - LEFT) - 1;  // that a result needs
    Copies copies = {0, 0, 0};
    if (BOUNDARY != BOUNDARY_MIRROR) return copies;
    if (left < 0 && last < width && -left <= last) copies = {0, -2 * left, -left};
    if (left >= 0 && last >= width && 2 * (width - 1) - last >= left)
        copies = {width - left, width - 2 - left, last - width + 1};
    return copies;
}

// An element some rows further on (not back), of rows of `pitch` bytes: one multiply-add.
template <typename T>
__device__ __forceinline__ T* rows_on(T* address, int rows, int pitch) {
    return (T*)((char*)address + (unsigned long long)(unsigned)rows * (unsigned)pitch);
}

// Row and first column of a lane's row sums. Eight sums are two float4s: lanes 0 to 3 and 4 to 7 lie in two rows then.
__device__ __forceinline__ int row_of_sums(int lane) {
    return ROW_SUMS == VEC4 ? lane / (STRIP / VEC4) : (lane >> 2 & 1) + 2 * (lane / (STRIP / VEC4));
}
__device__ __forceinline__ int column_of_sums(int lane) {
    return ROW_SUMS * (ROW_SUMS == VEC4 ? lane % (STRIP / VEC4) : (lane & 3) + 4 * ((lane >> 3) % (STRIP / WARP)));
}
