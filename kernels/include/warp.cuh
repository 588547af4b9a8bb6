// Exchange between the 32 lanes of a warp.
#pragma once
#include "lanes.cuh"

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

// Sums rows first ... last of the right, at 32 dx from `dx` on, a lane each: left values slide, right ones are broadcast.
__device__ __forceinline__ Sum slid_rows(const Problem& p, const Left* left, const Right* right, int dy, int dx, int first,
                                         int last, int lane) {
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx, WARP);
    Sum sum = 0;
    for (int y = first; y < last; ++y) {
        const Row<Left> left_row = row_of(left, p.left_height, p.left_width, y + dy);
        const Row<Right> right_row = row_of(right, p.right_height, p.right_width, y);
        for (int x = xs.first; x < xs.last; x += WARP) {
            SlidingRow sliding;
            sliding.load(left_row, x + dx, lane);
            const Sum right_elements = right_row.at(x + lane);
#pragma unroll
            for (int k = 0; k < WARP; ++k) {
                sum += sliding.here * broadcast(right_elements, k);
                sliding.slide(lane);
            }
        }
    }
    return sum;
}
