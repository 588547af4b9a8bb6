// Exchange between the 32 lanes of a warp.
#pragma once

#define WARP 32
#define ALL_LANES 0xffffffffu

// 32 consecutive elements of a left row, one a lane, that slide to the left by one element a step (two registers: the
// elements at hand and the 32 that follow). A step costs two shuffles.
struct SlidingRow {
    Sum here, next;
    template <typename Element>
    __device__ __forceinline__ void load(const Row<Element>& row, int x, int lane) {
        here = row.at(x + lane);
        next = row.at(x + lane + WARP);
    }
    __device__ __forceinline__ void slide(int lane) {
        int neighbour = (lane + 1) & (WARP - 1);
        here = __shfl_sync(ALL_LANES, here, neighbour);
        next = __shfl_sync(ALL_LANES, next, neighbour);
        if (lane == WARP - 1) here = next;
    }
};

__device__ __forceinline__ Sum broadcast(Sum value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }

__device__ __forceinline__ Sum warp_sum(Sum value) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}
