// Column and row reuse: a warp computes GROUPS times 32 * COLUMNS columns and loads every input row once.
// Columns: the row is in shared memory, from which a lane reads the columns that it shares with its neighbours 16 bytes
// at a time. (The document's exchange by shuffles, one element each, is in exchange.cu.)
// Rows: a row is multiplied with every filter row that applies to it, into FILTER_HEIGHT rolling sums: sum[f] = sum[f -
// 1] + row . filter[f] from the last f to the first rolls them without register moves, and sum[FILTER_HEIGHT - 1] is
// complete. Rows arrive BATCH_ROWS at a time, to share the overhead of a loop iteration: a fifth of all instructions at
// 3x3, if each had its own.
// Documents: "Column Reuse", "Row Reuse", "Putting Together"; edge and inner elements differ only in how their row is
// filled.
// FMA : shared reads = COLUMNS * FILTER_WIDTH * FILTER_HEIGHT : FILTER_WIDTH / COLUMNS + 2. Floor: the larger of one read
// and one write of every element at the copy rate, and FILTER_WIDTH * FILTER_HEIGHT multiply-adds per element, at the FMA rate.
#include "filter.cuh"
#include "row_ring.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 2
#endif
#define MIN_BLOCKS (TAKES_MORE && FILTER_HEIGHT > 12 && BLOCKS > 2 ? 2 : BLOCKS)

#define WINDOW (FILTER_WIDTH + COLUMNS - 1)

extern "C" __global__ void __launch_bounds__(WARPS* WARP, MIN_BLOCKS)
    reuse(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
          FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    SHARED_FLOATS(rings);  // of each warp
    const int lane = threadIdx.x % WARP, warp = same_in_warp(threadIdx.x / WARP);
    const SubBlock block = sub_block_of<GROUPS * COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + warp);
    if (block.rows == 0) return;

    RowRing ring = row_ring(rings, warp, p, images, block, taps, lane);
    const int column = block.x + COLUMNS * lane;  // of the first group
    const int storing = storing_of(results, p, block);
    // Where the first row's result would lie, were it complete.
    Result* result = block.result + (long long)(block.y - FILTER_HEIGHT + 1) * p.result_width + column;
    const int rows = block.rows + FILTER_HEIGHT - 1;

    int mine = 0;
    Sum sum[FILTER_HEIGHT][GROUPS * COLUMNS];
#pragma unroll
    for (int f = 0; f < FILTER_HEIGHT; ++f)
#pragma unroll
        for (int i = 0; i < GROUPS * COLUMNS; ++i) sum[f][i] = ring.level.fraction;

#pragma unroll 1
    for (int r = 0; r < rows; r += BATCH_ROWS) {
        ring.advance(r);
#pragma unroll
        for (int t = 0; t < BATCH_ROWS; ++t) {
            const Image* row = ring.row(r, t);
            Sum window[GROUPS][WINDOW];
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                const int offset = g * GROUP_COLUMNS, first = column + offset - LEFT;
                ring.read<0, WINDOW>(window[g], row + offset, first, ring.is_outside(r + t), taps.outside, g == 0);
            }
#pragma unroll
            for (int f = FILTER_HEIGHT - 1; f >= 0; --f) {
                // A tap is taken once for all groups.
                Sum total[GROUPS * COLUMNS];
#pragma unroll
                for (int e = 0; e < FILTER_WIDTH; ++e)
#pragma unroll
                    for (int i = 0; i < GROUPS * COLUMNS; ++i) {
                        const Sum before = e > 0 ? total[i] : f > 0 ? sum[f - 1][i] : ring.level.fraction;
                        total[i] = multiply_add(window[i / COLUMNS][e + i % COLUMNS], taps.at[f * FILTER_WIDTH + e], before);
                    }
#pragma unroll
                for (int i = 0; i < GROUPS * COLUMNS; ++i) sum[f][i] = total[i];
            }
            if (is_inside(r + t - (FILTER_HEIGHT - 1), block.rows))
                mine += store_results<GROUPS>(result, sum[FILTER_HEIGHT - 1], ring.level, storing, p.result_width - column);
            result += p.result_width;
        }
    }
    add_clipped(clipped, mine);
}
