// Summed-area table of a small matrix, computed by a block in shared memory: table[y][3 + x]
// is the sum of the first y rows' first x values.
//
// Threads hold values as in small_matrix.cuh. First each thread adds up its rows, and each warp the sums of its threads
// (`add_down`); after a barrier, a thread adds the sums of the warps above (`add_above`) and goes down its rows again,
// and lanes add up along the row (`keep`). The warps' sums may be stored in the memory of the table, if a barrier
// follows `add_above` too.
#pragma once
#include "small_matrix.cuh"

template <int HEIGHT, int WIDTH>
struct Rectangles : SmallLayout<HEIGHT, WIDTH> {
    typedef SmallLayout<HEIGHT, WIDTH> Layout;
    static constexpr int ROW_VECTORS = Layout::ROW_VECTORS, COUNT = Layout::COUNT;
    static constexpr int PITCH = (WIDTH + 3) / 4 * 4 + 4, TABLE_FLOATS = (HEIGHT + 1) * PITCH;
    static constexpr int TOTALS_FLOATS = WARPS * 4 * ROW_VECTORS;  // of the warps' sums
    static constexpr int FLOATS_IN_PLACE = TABLE_FLOATS > TOTALS_FLOATS ? TABLE_FLOATS : TOTALS_FLOATS;

    Four before;  // sums of the rows above the thread's, of its warp; then of all

    // value(j): the thread's float4 of its row j.
    template <typename Value>
    __device__ __forceinline__ void add_down(float* totals, const Value& value) {
        const int lane = (int)threadIdx.x % 32;
        before = {{0.0f, 0.0f, 0.0f, 0.0f}};
        Four until = value(0);
#pragma unroll
        for (int j = 1; j < COUNT; ++j) add(until, value(j));
#pragma unroll
        for (int distance = ROW_VECTORS; distance < 32; distance *= 2)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float other = __shfl_up_sync(0xffffffffu, until.at[i], distance);
                if (lane >= distance) {
                    before.at[i] += other;
                    until.at[i] += other;
                }
            }
        Four* const of_warp = reinterpret_cast<Four*>(totals) + (int)threadIdx.x / 32 * ROW_VECTORS;
        if (lane >= 32 - ROW_VECTORS) of_warp[Layout::lane()] = until;
    }
    __device__ __forceinline__ void add_above(const float* totals) {
        const Four* of_warps = reinterpret_cast<const Four*>(totals) + Layout::lane();
#pragma unroll
        for (int warp = 0; warp < WARPS - 1; ++warp)
            if (warp < (int)threadIdx.x / 32) add(before, of_warps[warp * ROW_VECTORS]);
    }
    // Sums are multiplied by `unit`.
    template <typename Value>
    __device__ __forceinline__ void keep(float* table, const Value& value, float unit = 1.0f) {
        const int lane = Layout::lane(), x = 4 * lane;
        by_all_threads<WIDTH>([&](int i) { table[4 + i] = 0.0f; });
        by_all_threads<HEIGHT + 1>([&](int i) { table[3 + i * PITCH] = 0.0f; });
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            add(before, value(j));
            Four sums = before;
#pragma unroll
            for (int i = 1; i < 4; ++i) sums.at[i] += sums.at[i - 1];
            float until = sums.at[3];
#pragma unroll
            for (int distance = 1; distance < ROW_VECTORS; distance *= 2) {
                const float other = __shfl_up_sync(0xffffffffu, until, distance);
                if (lane >= distance) until += other;
            }
            const float to_the_left = __shfl_up_sync(0xffffffffu, until, 1);
#pragma unroll
            for (int i = 0; i < 4; ++i) sums.at[i] = (sums.at[i] + (lane > 0 ? to_the_left : 0.0f)) * unit;
            const int row = Layout::first_row() + j;
            if (Layout::IS_FULL || (row < HEIGHT && x < WIDTH))
                *reinterpret_cast<Four*>(table + (row + 1) * PITCH + 4 + x) = sums;
        }
    }
    static __device__ __forceinline__ void add(Four& sum, const Four& value) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum.at[i] += value.at[i];
    }
    // Sum of rows [0, bottom), from the column that the first `table` has been advanced by up to that of the second.
    static __device__ __forceinline__ float above(const float* first, const float* last, int bottom) {
        return last[3 + bottom * PITCH] - first[3 + bottom * PITCH];
    }
};
