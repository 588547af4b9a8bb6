// The loop over a sub-block as in the document: 32 columns per warp, one per lane; each kernel has its own exchange of
// columns. COLUMN_REUSE and ROW_REUSE switch either step off, for the ablation: no reuse, + column, + row, both.
#pragma once

#include "filter.cuh"

#ifndef COLUMN_REUSE
#define COLUMN_REUSE 1
#endif
#ifndef ROW_REUSE
#define ROW_REUSE 1
#endif
#ifndef WARPS
#define WARPS 4
#endif

// Two neighbours' candidates in 64 bits; a shift by 32 or 0 moves the one to be sent into the low 32 bits. So no array
// is indexed by what only the run knows, and every element stays in a register.
__device__ __forceinline__ float exchanged(float low, float high, int distance, int lane) {
    unsigned long long both = (unsigned long long)__float_as_uint(high) << 32 | __float_as_uint(low);
    both >>= lane & distance ? 0 : 32;
    return __shfl_xor_sync(ALL_LANES, __uint_as_float((unsigned)both), distance);
}

// The FILTER_WIDTH elements of a row that a lane's column needs.
struct Window {
    float at[FILTER_WIDTH];
};
__device__ void exchange_columns(Window& window, const Image* row, int x, int lane);  // each kernel's own

__device__ __forceinline__ Window window_of(const FilterProblem& p, const Image* image, int y, int x, bool inner,
                                            float outside, int lane) {
    Window window;
    const Image* row = image + (long long)source_index(y, p.height) * p.width;
    const bool row_outside = BOUNDARY == BOUNDARY_CONSTANT && !is_inside(y, p.height);
    if (inner && COLUMN_REUSE) {
        exchange_columns(window, row, x, lane);
    } else {
#pragma unroll
        for (int e = 0; e < FILTER_WIDTH; ++e) window.at[e] = (float)row[inner ? x + e : source_index(x + e, p.width)];
    }
#pragma unroll
    for (int e = 0; e < FILTER_WIDTH; ++e)
        if (row_outside || (BOUNDARY == BOUNDARY_CONSTANT && !is_inside(x + e, p.width))) window.at[e] = outside;
    return window;
}

__device__ __forceinline__ float row_product(const Window& window, const Taps& taps, int f, float sum) {
#pragma unroll
    for (int e = 0; e < FILTER_WIDTH; ++e) sum = multiply_add(window.at[e], taps.at[f * FILTER_WIDTH + e], sum);
    return sum;
}

__device__ __forceinline__ void filter_sub_block(const FilterProblem& p, const Image* images, Result* results,
                                                 unsigned long long* clipped, const Taps& taps) {
    const int lane = threadIdx.x % WARP;
    const SubBlock block = sub_block_of<1>(p, images, results, (int)blockIdx.x * WARPS + threadIdx.x / WARP);
    if (block.rows == 0) return;
    const int column = block.x + lane, x = column - LEFT;
    // Edge and last sub-blocks go the direct way, as a whole: an exchange needs every lane's elements.
    const bool inner = block.x >= LEFT && block.x - LEFT + WARP - 1 + FILTER_WIDTH <= p.width;
    const bool has_column = column < p.result_width;
    Result* result = block.result + (long long)block.y * p.result_width + column;
    int mine = 0;
#if ROW_REUSE
    float sum[FILTER_HEIGHT];
#pragma unroll
    for (int f = 0; f < FILTER_HEIGHT; ++f) sum[f] = 0;
#pragma unroll 1
    for (int r = 0; r < block.rows + FILTER_HEIGHT - 1; ++r) {
        const Window window = window_of(p, block.image, block.y + r - TOP, x, inner, taps.outside, lane);
#pragma unroll
        for (int f = FILTER_HEIGHT - 1; f >= 0; --f) sum[f] = row_product(window, taps, f, f > 0 ? sum[f - 1] : 0);
        const int o = r - (FILTER_HEIGHT - 1);
        if (o >= 0 && has_column) mine += put(result + (long long)o * p.result_width, sum[FILTER_HEIGHT - 1]);
    }
#else
#pragma unroll 1
    for (int o = 0; o < block.rows; ++o) {
        float sum = 0;
#pragma unroll
        for (int f = 0; f < FILTER_HEIGHT; ++f)
            sum = row_product(window_of(p, block.image, block.y + o + f - TOP, x, inner, taps.outside, lane), taps, f, sum);
        if (has_column) mine += put(result + (long long)o * p.result_width, sum);
    }
#endif
    add_clipped(clipped, mine);
}
