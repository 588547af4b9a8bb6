// How the warps of a block agree on the centre and the factor of small matrices.
#pragma once
#include "small_matrix.cuh"

// Halving the lanes' values: lanes 0 to 15 get what `combine` makes of all lanes' first, the others that of the second.
template <typename Value, typename Combine>
__device__ __forceinline__ Value of_warp_by_halves(Value first, Value second, const Combine& combine) {
    const bool upper = threadIdx.x & 16;
    const Value sent = upper ? first : second;
    Value own = combine(upper ? second : first, __shfl_xor_sync(0xffffffffu, sent, 16));
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2) own = combine(own, __shfl_xor_sync(0xffffffffu, own, distance));
    return own;
}
template <typename Value>
__device__ __forceinline__ Value sums_of_warp(Value first, Value second) {
    return of_warp_by_halves(first, second, [](Value a, Value b) { return a + b; });
}
__device__ __forceinline__ float highest_of_both(float first, float second) {
    return of_warp_by_halves(first, second, [](float a, float b) { return fmaxf(a, b); });
}

// Scales a matrix, by its sums and highest values that the warps have left.
template <typename Matrix>
__device__ __forceinline__ void scale_by_all_warps(Matrix& matrix, const double* sums, const float* highest,
                                                   const float* highest_negative) {
    double sum = 0.0;
    float high = MINUS_INFINITY, high_negative = MINUS_INFINITY;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        sum += sums[i];
        high = fmaxf(high, highest[i]);
        high_negative = fmaxf(high_negative, highest_negative[i]);
    }
    matrix.scale(sum, high_negative, high);
}
