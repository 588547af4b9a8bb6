// The lanes of a warp, sums over them, and the dynamic shared memory of a block as floats (a host build has its own).
#pragma once

#define WARP 32
#define ALL_LANES 0xffffffffu
#ifndef SHARED_FLOATS
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

// The sum over the lanes, in every lane.
template <typename Number>
__device__ __forceinline__ Number warp_sum(Number value) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// Leaves the sums over each warp of COUNT values a thread in `of_warps` [warps][COUNT], and waits for the block.
template <int COUNT, typename Number>
__device__ __forceinline__ void sums_of_warps(const Number (&values)[COUNT], Number* of_warps) {
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        const Number sum = warp_sum(values[k]);
        if (lane == 0) of_warps[warp * COUNT + k] = sum;
    }
    __syncthreads();
}
