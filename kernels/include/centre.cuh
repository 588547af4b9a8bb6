// Sums of 16-bit images: pixels are counted from the mean of the warp's sub-block.
//
// Sixteen bits take two thirds of what float holds, and each rounding of a large sum shows in the result. Differences from a
// centre are exact, their sums are small, and what the centre itself adds, centre * (sum of all taps), is known exactly.
#pragma once

#include "filter.cuh"

#ifndef CENTRE
#define CENTRE 0
#endif

struct Centre {
    Sum value;  // an integer, subtracted from every pixel
    Sum high;   // centre * (sum of all taps): an even integer, which leaves the rounding to even as it is,
    Sum low;    // and the rest
    __device__ __forceinline__ Sum restored(Sum sum) const { return CENTRE ? (sum + low) + high : sum; }
};

__device__ __forceinline__ Centre centre_of(const FilterProblem& p, const SubBlock& block, const Taps& taps, int columns,
                                            int lane) {
    Centre centre = {0, 0, 0};
#if CENTRE
    const int y = least(block.y + block.rows / 2, p.height - 1), x = least(block.x + lane * (columns / WARP), p.width - 1);
    float mean = (float)block.image[(long long)y * p.width + x] / WARP;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) mean += __shfl_xor_sync(ALL_LANES, mean, distance);
    const int value = nearest_int(mean);
    const double total = value * ((double)taps.total[0] + taps.total[1]);
    if (total < -1.6e7 || total > 1.6e7) return centre;  // even integers are exact up to there
    centre.value = (Sum)value;
    centre.high = (Sum)((int)total / 2 * 2);
    centre.low = (Sum)(total - centre.high);
#endif
    return centre;
}
