// Column and row reuse: a warp owns 128 columns, four a lane, and every input row is loaded once.
// Columns: a lane loads its own four; the FILTER_WIDTH - 1 others that it needs come from its neighbours by shuffles, one
// shuffle for each. The halo on both sides of the warp is a second load, by the lanes that the shuffle would wrap to.
// Rows: a row is multiplied with every filter row it meets, into FILTER_HEIGHT rolling sums: sum[f] = sum[f - 1] + row .
// filter[f] from the last f to the first rolls them without a move, and sum[FILTER_HEIGHT - 1] is complete.
// Documents: "Column Reuse", "Row Reuse", "Putting Together"; edge and inner elements differ in their loads alone.
// FMA : shuffles = 4 * FILTER_WIDTH * FILTER_HEIGHT : FILTER_WIDTH - 1. Floor: the larger of one read and one write of
// every element at the copy rate, and FILTER_WIDTH * FILTER_HEIGHT multiply-adds an element at the FMA rate.
#include "filter.cuh"
#include "quad.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 2
#endif
#ifndef ROWS_AHEAD  // rows in flight
#define ROWS_AHEAD 1
#endif
#ifndef SUM_BY_ROWS  // 1: a filter row's products are summed on their own first, which keeps the rounding small
#define SUM_BY_ROWS 0
#endif
#ifndef TALL  // filter height from which products that no result needs are skipped, not computed
#define TALL 7
#endif

#define WINDOW (FILTER_WIDTH + COLUMNS - 1)
#define LEFT_QUADS ((LEFT + COLUMNS - 1) / COLUMNS)
#define RIGHT_QUADS ((FILTER_WIDTH - 1 - LEFT + COLUMNS - 1) / COLUMNS)

struct RawRow {
    Quad<Image> own, halo;
};

extern "C" __global__ void __launch_bounds__(WARPS* WARP, BLOCKS)
    reuse(const Image* images, Result* results, const __grid_constant__ Taps taps, FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const SubBlock block = sub_block_of<COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + threadIdx.x / WARP);
    if (block.rows == 0) return;

    const int column = block.x + COLUMNS * lane;
    const bool aligned = is_aligned(images) && p.width % COLUMNS == 0;
    const bool result_aligned = is_aligned(results) && p.result_width % COLUMNS == 0;
    const bool right = lane < WARP / 2;
    const bool has_halo = right ? lane < RIGHT_QUADS : lane >= WARP - LEFT_QUADS;
    const QuadSource own = quad_source(column, p.width, aligned);
    const QuadSource halo = quad_source(column + (right ? WARP_COLUMNS : -WARP_COLUMNS), p.width, aligned);

    const int first = block.y - TOP, rows = block.rows + FILTER_HEIGHT - 1;
    auto load = [&](int r) {
        const Image* row = block.image + (long long)source_index(first + least(r, rows - 1), p.height) * p.width;
        RawRow raw;
        raw.own = load_quad(row, own);
        if (has_halo) raw.halo = load_quad(row, halo);
        return raw;
    };
    RawRow ahead[ROWS_AHEAD];
#pragma unroll
    for (int j = 0; j < ROWS_AHEAD; ++j) ahead[j] = load(j);

    Quad<Sum> sum[FILTER_HEIGHT];
#pragma unroll
    for (int f = 0; f < FILTER_HEIGHT; ++f)
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) sum[f].at[k] = 0;

#pragma unroll 1
    for (int start = 0; start < rows; start += ROWS_AHEAD) {
#pragma unroll
        for (int j = 0; j < ROWS_AHEAD; ++j) {
            const int r = start + j;
            const bool row_outside = !is_inside(first + r, p.height);
            const Quad<Sum> here = sums_of(ahead[j].own, own.outside, row_outside, taps.outside);
            const Quad<Sum> beyond = sums_of(ahead[j].halo, halo.outside, row_outside, taps.outside);
            ahead[j] = load(r + ROWS_AHEAD);

            Sum window[WINDOW];
#pragma unroll
            for (int e = 0; e < WINDOW; ++e) {
                const int padded = e - LEFT + LEFT_QUADS * COLUMNS;
                const int distance = padded / COLUMNS - LEFT_QUADS, k = padded % COLUMNS;
                window[e] = distance == 0 ? here.at[k] : neighbour(here.at[k], beyond.at[k], distance, lane);
            }
#pragma unroll
            for (int f = FILTER_HEIGHT - 1; f >= 0; --f) {
                // The first and last rows meet fewer results: the sums of others are not needed (same for the whole warp).
                if (FILTER_HEIGHT >= TALL && (f > r || f <= r - block.rows)) continue;
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) {
                    const Sum before = f > 0 ? sum[f - 1].at[k] : 0;
                    Sum total = SUM_BY_ROWS ? (Sum)0 : before;
#pragma unroll
                    for (int e = 0; e < FILTER_WIDTH; ++e)
                        total = multiply_add(window[e + k], taps.at[f * FILTER_WIDTH + e], total);
                    sum[f].at[k] = SUM_BY_ROWS ? before + total : total;
                }
            }
            const int o = r - (FILTER_HEIGHT - 1);
            if (o >= 0 && o < block.rows) {
                Result* row = block.result + (long long)(block.y + o) * p.result_width;
                store_quad(row, column, p.result_width, result_aligned, sum[FILTER_HEIGHT - 1]);
            }
        }
    }
}
