// Column and row reuse: a warp owns GROUPS times 32 * COLUMNS columns and loads every input row once.
// Columns: the row lies in shared memory, where a lane reads the columns that it shares with its neighbours 16 bytes at a
// time. (The exchange by shuffles of the document, one element each, is in exchange_3.cu and exchange_5.cu.)
// Rows: a row is multiplied with every filter row it meets, into FILTER_HEIGHT rolling sums: sum[f] = sum[f - 1] + row .
// filter[f] from the last f to the first rolls them without a move, and sum[FILTER_HEIGHT - 1] is complete.
// Documents: "Column Reuse", "Row Reuse", "Putting Together"; edge and inner elements differ in what fills their row alone.
// FMA : shared reads = COLUMNS * FILTER_WIDTH * FILTER_HEIGHT : FILTER_WIDTH / COLUMNS + 2. Floor: the larger of one read
// and one write of every element at the copy rate, and FILTER_WIDTH * FILTER_HEIGHT multiply-adds an element at the FMA rate.
#include "filter.cuh"
#include "row_ring.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 2
#endif
#define LEAST_BLOCKS (TAKES_MORE && FILTER_HEIGHT > 12 && BLOCKS > 2 ? 2 : BLOCKS)

#define WINDOW (FILTER_WIDTH + COLUMNS - 1)

extern "C" __global__ void __launch_bounds__(WARPS* WARP, LEAST_BLOCKS)
    reuse(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
          FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    SHARED_FLOATS(rings);  // of each warp
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const SubBlock block = sub_block_of<GROUPS * COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + warp);
    if (block.rows == 0) return;

    RowRing ring = row_ring(rings, warp, p, images, block, taps, lane);
    const int column = block.x + COLUMNS * lane;  // of the first group
    bool whole[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) whole[g] = stores_whole(results, p, column + g * GROUP_COLUMNS);
    Result* result = block.result + (long long)block.y * p.result_width + column;
    const int rows = block.rows + FILTER_HEIGHT - 1;

    int mine = 0;
    Sum sum[GROUPS][FILTER_HEIGHT][COLUMNS];
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int f = 0; f < FILTER_HEIGHT; ++f)
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) sum[g][f][k] = ring.level.fraction;

#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
        const Image* row = ring.advance(r);
        Sum window[GROUPS][WINDOW];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const int offset = g * GROUP_COLUMNS;
            ring.read<0, WINDOW>(window[g], row + offset, column + offset - LEFT, ring.is_outside(r), taps.outside);
        }
#pragma unroll
        for (int f = FILTER_HEIGHT - 1; f >= 0; --f) {
            // A tap is taken once for all groups.
            Sum total[GROUPS][COLUMNS];
#pragma unroll
            for (int e = 0; e < FILTER_WIDTH; ++e)
#pragma unroll
                for (int g = 0; g < GROUPS; ++g)
#pragma unroll
                    for (int k = 0; k < COLUMNS; ++k) {
                        const Sum before = e > 0 ? total[g][k] : f > 0 ? sum[g][f - 1][k] : ring.level.fraction;
                        total[g][k] = multiply_add(window[g][e + k], taps.at[f * FILTER_WIDTH + e], before);
                    }
#pragma unroll
            for (int g = 0; g < GROUPS; ++g)
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) sum[g][f][k] = total[g][k];
        }
        if (r >= FILTER_HEIGHT - 1) {
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                const int offset = g * GROUP_COLUMNS, inside = p.result_width - column - offset;
                mine += store_results(result + offset, sum[g][FILTER_HEIGHT - 1], ring.level, whole[g], inside);
            }
            result += p.result_width;
        }
    }
    add_clipped(clipped, mine);
}
