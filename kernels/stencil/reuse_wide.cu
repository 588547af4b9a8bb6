// Column and row reuse for large filters: a warp computes ROWS rows of 32 * COLUMNS columns and keeps all their sums.
// As in reuse.cu a warp loads an input row once, reads its columns from shared memory, and multiplies it with every
// filter row that applies to it; but the loops over the input rows and along the filter's rows are not unrolled, CHUNK
// taps per iteration, so that neither registers nor code grow with the filter. The taps are in shared memory, read four
// at a time by a broadcast to all lanes: constant memory would deliver two at a time, with a longer latency.
// FLUSH_ROWS: after that many input rows the sums are added to a second set in shared memory, which keeps the rounding
// of long sums small.
// Documents: "Column Reuse", "Row Reuse".
// FMA : shared reads = ROWS * COLUMNS * CHUNK : (ROWS + 1) * CHUNK / 4. Floor: FILTER_WIDTH * FILTER_HEIGHT multiply-adds an
// element at the FMA rate.
#include "filter.cuh"
#ifndef COLUMNS
#define COLUMNS 8
#endif
#ifndef ROWS_AHEAD
#define ROWS_AHEAD 1
#endif
#include "row_ring.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 4
#endif
#ifndef ROWS
#define ROWS 8
#endif
#ifndef CHUNK  // taps an iteration, a multiple of COLUMNS
#define CHUNK 8
#endif
#ifndef FLUSH_ROWS  // 0: never
#define FLUSH_ROWS 0
#endif

#define THREADS (WARPS * WARP)
#define PITCH ((FILTER_WIDTH + 3) / 4 * 4)   // of a row of taps
#define PASSES ((FILTER_WIDTH - 1) / CHUNK)  // whole ones, the last left out
#define REST (FILTER_WIDTH - PASSES * CHUNK)

struct alignas(16) FourTaps {
    Sum at[4];
};

// Adds the products of TAPS_USED taps of a filter row to the sums of each result row that the input row contributes to; bit
// o of `meets`: result row o, with the filter row that is o rows before `taps`.
template <int TAPS_USED>
__device__ __forceinline__ void add_products(Sum (&sum)[ROWS][COLUMNS], const Sum* window, const Sum* taps,
                                             unsigned meets) {
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
        if (!(meets >> o & 1)) continue;  // the same for the whole warp
        const Sum* row = taps - o * PITCH;
#pragma unroll
        for (int q = 0; q < TAPS_USED; q += 4) {
            const FourTaps four = *reinterpret_cast<const FourTaps*>(row + q);
#pragma unroll
            for (int e = 0; e < 4 && q + e < TAPS_USED; ++e)
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k)
                    sum[o][k] = multiply_add(window[q + e + k], four.at[e], sum[o][k]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    reuse_wide(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
               FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;  // block_rows is ROWS
    // The warps' rings, [FILTER_HEIGHT][PITCH] taps and, with FLUSH_ROWS, sums [ROWS * COLUMNS][THREADS].
    SHARED_FLOATS(shared);
    Sum* filter = reinterpret_cast<Sum*>(shared + WARPS * RING_BYTES / 4);
    Sum* large = filter + FILTER_HEIGHT * PITCH + threadIdx.x;
    for (int i = threadIdx.x; i < FILTER_HEIGHT * PITCH; i += THREADS)
        filter[i] = i % PITCH < FILTER_WIDTH ? taps.at[i / PITCH * FILTER_WIDTH + i % PITCH] : (Sum)0;
    __syncthreads();
    const int lane = threadIdx.x % WARP, warp = same_in_warp(threadIdx.x / WARP);
    const SubBlock block = sub_block_of<COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + warp);
    if (block.rows == 0) return;

    RowRing ring = row_ring(shared, warp, p, images, block, taps, lane);
    const int column = block.x + COLUMNS * lane;
    const int storing = storing_of(results, p, block);
    const int rows = block.rows + FILTER_HEIGHT - 1;

    Sum sum[ROWS][COLUMNS];
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            sum[o][k] = ring.level.fraction;
            if (FLUSH_ROWS) large[(o * COLUMNS + k) * THREADS] = 0;
        }

#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
        ring.advance(r);
        const Image* row = ring.row(r, 0);
        const bool row_outside = ring.is_outside(r);
        // Bit o: the row contributes to result row o, with filter row r - o.
        const unsigned meets = (2u << min(r, ROWS - 1)) - (r >= FILTER_HEIGHT ? 1u << (r - FILTER_HEIGHT + 1) : 1u);
        const Sum* filter_row = filter + r * PITCH;
        Sum window[COLUMNS + CHUNK - 1];
        ring.read<0, COLUMNS - 1>(window, row, column - LEFT, row_outside, taps.outside);
#pragma unroll 1
        for (int pass = 0; pass < PASSES; ++pass) {
            const int first = pass * CHUNK;
            ring.read<COLUMNS - 1, COLUMNS + CHUNK - 1>(window, row + first, column - LEFT + first, row_outside, taps.outside);
            add_products<CHUNK>(sum, window, filter_row + first, meets);
#pragma unroll
            for (int e = 0; e < COLUMNS - 1; ++e) window[e] = window[e + CHUNK];
        }
        ring.read<COLUMNS - 1, COLUMNS - 1 + REST>(window, row + PASSES * CHUNK, column - LEFT + PASSES * CHUNK, row_outside,
                                                   taps.outside);
        add_products<REST>(sum, window, filter_row + PASSES * CHUNK, meets);
        if (FLUSH_ROWS && (r + 1) % (FLUSH_ROWS + !FLUSH_ROWS) == 0) {
#pragma unroll
            for (int o = 0; o < ROWS; ++o)
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) {
                    large[(o * COLUMNS + k) * THREADS] += sum[o][k];
                    sum[o][k] = 0;
                }
        }
    }
    int mine = 0;
    Result* result = block.result + (long long)block.y * p.result_width + column;
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
        if (o >= block.rows) continue;
        if (FLUSH_ROWS) {
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) sum[o][k] += large[(o * COLUMNS + k) * THREADS];
        }
        mine += store_results<1>(result + (long long)o * p.result_width, sum[o], ring.level, storing, p.result_width - column);
    }
    add_clipped(clipped, mine);
}
