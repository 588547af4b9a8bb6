// Taps of rank 1 over images of float32 on tensor cores (sm_80 on): two products with a band matrix of taps, chained in
// registers.
//
// A block computes WARPS * WARP_COLUMNS columns of results and advances down its rows, one row tile of 16 at a time.
// The row tile is in shared memory as split fp16 (`image_tile.cuh`); meanwhile the next one is stored there, and the
// one after it is being loaded. A warp multiplies the row tile with the row's taps, transposed: D[column][row] = sum
// over e of row tap[e] * row tile[row][column + e]. The sums are in exactly those registers from which the product with
// the column's taps takes its operands, so they are converted to fp16 in place, and their products are added to all
// results in flight that they contribute to: tile[j], of 16 rows each, has received j + 1 row tiles. With the next row
// tile every tile moves on by one, and the oldest is complete: a lane writes four neighbours of two rows.
//
// Every value is split fp16, two numbers with 22 bits together, and all their products except lower times lower are
// computed: three for one.
// Scaling: a warp scales its rows of a row tile to at most 2^9. Tiles in flight share the scale of the largest element
// of all row tiles that they have received (it changes by powers of two, which is exact), so that a value much smaller
// than its neighbours within about 16 * COLUMN_STEPS rows has their absolute precision, not a better one. Non-finite
// values cannot be summed in this way, as zeros of the band would be multiplied with them: the block sets `unbounded`,
// and `separable.cu` recomputes its image.
//
// Document: goes beyond "Row Reuse": on tensor cores. Floor: the larger of one read and one write of every element at
// the copy rate, and 3 * 16 * (ROW_STEPS + COLUMN_STEPS) multiply-adds per element at the rate of tensor cores. 65 taps
// over 64 images of 1024 x 1024 take 336 us on an H200, a copy of them 127, the products alone 102;
// docs/algorithms/column_and_row_reuse.md says what the rest waits for.
#include "image_tile.cuh"
#include "band.cuh"

#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 2
#endif
#ifndef SAME_TAPS  // 1: columns and rows have the same taps, which lie in registers once
#define SAME_TAPS 0
#endif
#define TOP_SKIP (SAME_TAPS ? SKIP : 0)
#define COLUMN_STEPS ((15 + FILTER_HEIGHT + TOP_SKIP + 15) / 16)
#define MIN_BLOCKS (TAKES_MORE && BLOCKS > 2 ? BLOCKS - 1 : BLOCKS)
#define RING (COLUMN_STEPS + 1)
#define TILES (WARP_COLUMNS / 16)
#define TOP_EXPONENT 9  // scaled values and sums lie below 2^9
#define SLACK 4         // the scale follows smaller values when they are smaller by more bits than these
static_assert(COLUMN_STEPS > 1, "columns have two taps at least");

#ifndef SHARED_FLOATS
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

struct BandedTaps {
    float column[FILTER_HEIGHT], row[FILTER_WIDTH];  // as powers of two make them: the largest of each in [8, 16)
    float outside;  // value outside the image, for BOUNDARY_CONSTANT
    int reach;      // 2^reach is at least the sum of all |row|
    int gain;       // 2^gain scales sums back that were formed from values scaled by 2^0
    int lowest;     // smaller elements are scaled as those of this exponent
};

struct BlockMemory {
    Record row_tile[2][ROW_TILE_ROWS * ROW_TILE_PITCH];
    Group<float, VEC4> arrivals[LOADS * WARPS * WARP];  // float4s of the next row tile, by thread
    int source[VEC4 * ROW_TILE_VEC4S];  // column of the image for one of the row tile
    int exponent[RING * WARPS];     // of the largest element of a warp's rows, of the row tiles that tiles have used and the next
    RowTileVec4s vec4s;
    SubBlock block;
    float taps[FILTER_HEIGHT + FILTER_WIDTH];
};
#ifdef BLOCK_BYTES  // what the launch asks for
static_assert(sizeof(BlockMemory) == BLOCK_BYTES, "the launch and the kernel disagree about shared memory");
#endif

extern "C" __global__ void __launch_bounds__(WARPS* WARP, MIN_BLOCKS)
    banded(const float* images, float* results, int* unbounded, const __grid_constant__ BandedTaps taps, int height, int width,
           int result_height, int result_width, int count, int block_rows) {
    SHARED_FLOATS(shared);
    const FilterProblem p = {height, width, result_height, result_width, count, block_rows};
    BlockMemory& memory = *reinterpret_cast<BlockMemory*>(shared);
    const SubBlock& block = memory.block;
    if (threadIdx.x == 0) {
        memory.block = sub_block_of<BLOCK_COLUMNS / WARP>(p, images, results, (int)blockIdx.x);
        unbounded[blockIdx.x] = 0;
    }
    __syncthreads();

    const int left = block.x - LEFT_PAD;
    for (int c = (int)threadIdx.x; c < VEC4 * ROW_TILE_VEC4S; c += WARPS * WARP)
        memory.source[c] = BOUNDARY == BOUNDARY_CONSTANT && !is_inside(left + c, width) ? -1 : source_index(left + c, width);
    for (int i = (int)threadIdx.x; i < FILTER_HEIGHT + FILTER_WIDTH; i += WARPS * WARP)
        memory.taps[i] = i < FILTER_HEIGHT ? taps.column[i] : taps.row[i - FILTER_HEIGHT];
    for (int i = (int)threadIdx.x; i < RING * WARPS; i += WARPS * WARP) memory.exponent[i] = taps.lowest;
    __syncthreads();
    Band<ROW_STEPS> across;
    Band<COLUMN_STEPS> apart;
    const auto row_tap = [&](int i) { return is_inside(i - SKIP, FILTER_WIDTH) ? memory.taps[FILTER_HEIGHT + i - SKIP] : 0.0f; };
    const auto column_tap = [&](int i) { return is_inside(i, FILTER_HEIGHT) ? memory.taps[i] : 0.0f; };
    across.take((int)threadIdx.x % WARP, row_tap);
    if (!SAME_TAPS) apart.take((int)threadIdx.x % WARP, column_tap);
#if SAME_TAPS
    const Band<ROW_STEPS>& down = across;
#else
    const Band<COLUMN_STEPS>& down = apart;
#endif

    const auto top_of = [&](int row_tile) { return block.y - TOP - TOP_SKIP + row_tile * ROW_TILE_ROWS; };
    const auto row_tiles = [&] { return ceil_div(block.rows, ROW_TILE_ROWS) + COLUMN_STEPS - 1; };
    RowTileLoader loader(memory.arrivals, memory.vec4s, block, memory.source, taps.outside, height, width);
    loader.send(top_of(0));

    float tile[COLUMN_STEPS - 1][2 * TILES][4] = {};
    int scale = taps.lowest;  // tiles are scaled as the largest element asks for that has this exponent
    const bool whole_results = is_aligned_to<VEC4>(results) && result_width % VEC4 == 0;
    int slot = 0;  // of the next row tile in the ring of exponents
#pragma unroll 1
    for (int s = -1; s < row_tiles(); ++s) {
        // Worked out again, as registers are scarce.
        const int thread = in_register((int)threadIdx.x), lane = thread % WARP, warp = thread / WARP, g = lane / 4, t = lane % 4;
        if (s + 1 < row_tiles()) {  // store the next row tile in shared memory, and start loading the one after it
            const int next = (s + 1) & 1;
            loader.receive();
            int exponent = loader.exponent();
            if (exponent == 128 && lane == 0) unbounded[blockIdx.x] = 1;
            exponent = max(taps.lowest, min(exponent, 127));
            if (lane == 0) memory.exponent[slot * WARPS + warp] = exponent;
            loader.store(memory.row_tile[next], power_of_two(TOP_EXPONENT - 1 - exponent));
            if (s + 2 < row_tiles()) loader.send(top_of(s + 2));
        }
        if (s >= 0) {
            const int present = s & 1;
            int largest = taps.lowest;
#pragma unroll
            for (int i = 0; i < RING * WARPS; i += WARP) {
                const bool is_met = i + lane < RING * WARPS && (i + lane) / WARPS != slot;
                largest = max(largest, is_met ? memory.exponent[i + lane] : taps.lowest);
            }
            largest = largest_of_warp(largest);
            if (largest > scale || largest < scale - SLACK) {
                const float change = min_power_of_two(min(scale - largest, 127));
                scale = largest;
#pragma unroll
                for (int i = 0; i < (COLUMN_STEPS - 1) * 2 * TILES * 4; ++i) (&tile[0][0][0])[i] *= change;
            }

            // Sums across, of rows 4 t + 2 half and the next, columns place_of(g) and two further. They are rows of the other
            // product's factor: columns place_of(g) of 2 i, and two further of 2 i + 1.
            HalfParts factor[2 * TILES][2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                __syncwarp();  // no load of the second half comes before: registers would be missing
                float large[TILES][4] = {}, small[TILES][4] = {};
                const Record* const rows = memory.row_tile[present] + (place_of(g) + 2 * half) * ROW_TILE_PITCH +
                                           warp * (WARP_COLUMNS / VEC4) + t;
#pragma unroll
                for (int c = 0; c < TILES - 1 + ROW_STEPS; ++c) {
                    const Record part = rows[4 * c];
#pragma unroll
                    for (int pass = 0; pass < 3; ++pass)
#pragma unroll
                        for (int i = 0; i < TILES; ++i) {
                            const int step = c - i, first = pass == 1 ? 2 : 0;
                            if (step < 0 || step >= ROW_STEPS) continue;
                            multiply_add_band(pass == 0 ? large[i] : small[i], pass == 2 ? across.lower[step] : across.upper[step],
                                              part.at[first], part.at[first + 1]);
                        }
                }
                const int exponent = memory.exponent[(slot > 0 ? slot - 1 : RING - 1) * WARPS + (4 * t + 2 * half) / SHARE];
                const float change = min_power_of_two(exponent - scale - taps.reach);
#pragma unroll
                for (int i = 0; i < 2 * TILES; ++i) {
                    const float* const a = large[i / 2] + i % 2 * 2;
                    const float* const b = small[i / 2] + i % 2 * 2;
                    factor[i][half] = half_parts((a[0] + b[0]) * change, (a[1] + b[1]) * change);
                }
            }
            // Sums down, 16 columns after the other; of every pass the sums are independent.
            const int y = (s - COLUMN_STEPS + 1) * ROW_TILE_ROWS + place_of(g), column = block.x + warp * WARP_COLUMNS + VEC4 * t;
            const float unit = power_of_two(scale + taps.gain);
#pragma unroll
            for (int i = 0; i < TILES; ++i) {
                float complete[2][4];
#pragma unroll
                for (int pass = 0; pass < 3; ++pass)
#pragma unroll
                    for (int j = COLUMN_STEPS - 1; j >= 0; --j)
#pragma unroll
                        for (int n = 0; n < 2; ++n) {
                            float(&sum)[4] = j == COLUMN_STEPS - 1 ? complete[n] : tile[j][2 * i + n];
                            if (pass == 0)
#pragma unroll
                                for (int k = 0; k < 4; ++k) sum[k] = j > 0 ? tile[j - 1][2 * i + n][k] : 0.0f;
                            const HalfParts* const b = factor[2 * i + n];
                            multiply_add_band(sum, pass == 1 ? down.lower[j] : down.upper[j], pass == 0 ? b[0].lower : b[0].upper,
                                              pass == 0 ? b[1].lower : b[1].upper);
                        }
#pragma unroll
                for (int odd = 0; odd < 2; ++odd) {
                    if (s < COLUMN_STEPS - 1 || y + 2 * odd >= block.rows) continue;
                    float* const to = block.result + (long long)(block.y + y + 2 * odd) * result_width + column + 16 * i;
                    Group<float, VEC4> vec4;
#pragma unroll
                    for (int k = 0; k < VEC4; ++k) vec4.at[k] = complete[k / 2][2 * odd + k % 2] * unit;
                    if (whole_results) {
                        if (column + 16 * i < result_width) *reinterpret_cast<Group<float, VEC4>*>(to) = vec4;
                    } else {
#pragma unroll
                        for (int k = 0; k < VEC4; ++k)
                            if (column + 16 * i + k < result_width) to[k] = vec4.at[k];
                    }
                }
            }
        }
        slot = slot + 1 < RING ? slot + 1 : 0;
        __syncthreads();
    }
}
