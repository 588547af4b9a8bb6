// Column and row reuse for large filters: a warp owns ROWS rows of 128 columns, four a lane, and keeps all their sums.
// As in reuse.cu an input row is loaded once and its columns are exchanged by shuffles, one quad of columns for every four
// taps of a filter row; but the loops over filter rows and columns stay loops, so that neither registers nor code grow
// with the filter. The row is multiplied with every filter row it meets; a filter row's products are summed on their own
// first, which keeps the rounding of thousands of products small.
// Documents: "Column Reuse", "Row Reuse".
// FMA : shuffles = 4 * ROWS : 1. Floor: FILTER_WIDTH * FILTER_HEIGHT multiply-adds an element at the FMA rate.
#include "filter.cuh"
#include "quad.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef ROWS
#define ROWS 8
#endif

#define FULL_QUADS (FILTER_WIDTH / COLUMNS)
#define REST (FILTER_WIDTH % COLUMNS)
#define HALO_QUADS ((FILTER_WIDTH - 1 + COLUMNS - 1) / COLUMNS)

// Adds to each result row's sum the products of `taps_used` taps, from `first_tap` on, of the filter row it meets.
template <int TAPS_USED>
__device__ __forceinline__ void add_products(Quad<Sum> (&row_sum)[ROWS], const Quad<Sum>& here, const Quad<Sum>& next,
                                             const Taps& taps, int r, int first_tap) {
    const Sum window[2 * COLUMNS] = {here.at[0], here.at[1], here.at[2], here.at[3],
                                     next.at[0], next.at[1], next.at[2], next.at[3]};
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
        const int f = r - o;
        if (!is_inside(f, FILTER_HEIGHT)) continue;  // the same for the whole warp
        const Sum* row = taps.at + f * FILTER_WIDTH + first_tap;
#pragma unroll
        for (int e = 0; e < TAPS_USED; ++e)
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) row_sum[o].at[k] = multiply_add(window[e + k], row[e], row_sum[o].at[k]);
    }
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP)
    reuse_wide(const Image* images, Result* results, const __grid_constant__ Taps taps, FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;  // block_rows is ROWS
    const int lane = threadIdx.x % WARP;
    const SubBlock block = sub_block_of<COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + threadIdx.x / WARP);
    if (block.rows == 0) return;

    const int column = block.x + COLUMNS * lane;
    const bool aligned = is_aligned(images) && p.width % COLUMNS == 0;
    const bool result_aligned = is_aligned(results) && p.result_width % COLUMNS == 0;
    const QuadSource own = quad_source(column - LEFT, p.width, aligned);
    const QuadSource halo = quad_source(column - LEFT + WARP_COLUMNS, p.width, aligned);
    const int first = block.y - TOP, rows = block.rows + FILTER_HEIGHT - 1;

    Quad<Sum> sum[ROWS];
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) sum[o].at[k] = 0;

#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
        const Image* row = block.image + (long long)source_index(first + r, p.height) * p.width;
        const bool row_outside = !is_inside(first + r, p.height);
        Quad<Sum> here = sums_of(load_quad(row, own), own.outside, row_outside, taps.outside);
        const Quad<Sum> start = here;
        Quad<Sum> beyond = here;
        if (lane < HALO_QUADS) beyond = sums_of(load_quad(row, halo), halo.outside, row_outside, taps.outside);
        auto quad_at = [&](int distance) {
            Quad<Sum> quad;
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) quad.at[k] = neighbour(start.at[k], beyond.at[k], distance, lane);
            return quad;
        };

        Quad<Sum> row_sum[ROWS];
#pragma unroll
        for (int o = 0; o < ROWS; ++o)
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) row_sum[o].at[k] = 0;
#pragma unroll 1
        for (int quad = 0; quad < FULL_QUADS; ++quad) {
            const Quad<Sum> next = quad_at(quad + 1);
            add_products<COLUMNS>(row_sum, here, next, taps, r, quad * COLUMNS);
            here = next;
        }
        if (REST > 0) add_products<REST>(row_sum, here, quad_at(FULL_QUADS + 1), taps, r, FULL_QUADS * COLUMNS);
#pragma unroll
        for (int o = 0; o < ROWS; ++o)
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) sum[o].at[k] += row_sum[o].at[k];
    }
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
        if (o >= block.rows) continue;
        Result* row = block.result + (long long)(block.y + o) * p.result_width;
        store_quad(row, column, p.result_width, result_aligned, sum[o]);
    }
}
