// Columns of a row as the document brings them to the lanes of a warp: two loads, the rest exchanged by shuffles.
//
// Lane t needs SIZE neighbouring elements, from its own on. It loads the first and the last. Of five, the third comes
// from two lanes away: lanes with bit 1 clear send their last, the others their first. The second, and the fourth, come
// from the neighbouring lane in the same way; of three, so does the second.
// Two corrections: the value to be sent has its own variable, where the document unpacks into the first element and
// destroys it; and the fourth element, which the document omits, is exchanged like the second, between the third and the
// fifth.
#pragma once

#include "filter.cuh"

#ifndef COLUMN_REUSE
#define COLUMN_REUSE 1  // 0: every lane loads all of its elements
#endif
#ifndef RUN_TIME_INDEX
#define RUN_TIME_INDEX 0  // 1: what the document sets out from, the element that a lane gives indexed by the lane
#endif

// Columns of the filter as sub-filters of five and three; 1, 2, 4 and 7 columns cannot be composed of these alone, and
// have single ones besides.
__device__ constexpr int singles_of(int width) { return width == 2 ? 2 : width == 1 || width == 4 || width == 7 ? 1 : 0; }
__device__ constexpr int fives_of(int width) {  // as many as leave a multiple of three
    const int rest = width - singles_of(width);
    return rest / 5 - rest % 5 % 3;
}
#define SINGLES singles_of(FILTER_WIDTH)
#define FIVES fives_of(FILTER_WIDTH)
#define THREES ((FILTER_WIDTH - SINGLES - 5 * FIVES) / 3)
static_assert(5 * FIVES + 3 * THREES + SINGLES == FILTER_WIDTH, "sub-filters are all of the filter's columns");

template <int SIZE>
struct SubRow {
    static constexpr int WIDTH = SIZE;
    Sum at[SIZE];
};

// Two neighbours' candidates in 64 bits; a shift by 32 or 0 moves the one to be sent into the low 32 bits. So no array
// is indexed by what only the run knows, and every element stays in a register.
__device__ __forceinline__ float exchanged(float low, float high, int distance, int lane) {
    unsigned long long both = (unsigned long long)__float_as_uint(high) << 32 | __float_as_uint(low);
    both >>= lane & distance ? 0 : 32;
    return __shfl_xor_sync(ALL_LANES, __uint_as_float((unsigned)both), distance);
}
// 64 bits hold one double: it is selected.
__device__ __forceinline__ double exchanged(double low, double high, int distance, int lane) {
    return __shfl_xor_sync(ALL_LANES, lane & distance ? low : high, distance);
}

// What the lane `distance` away gives of its own elements of these two places.
template <int SIZE>
__device__ __forceinline__ Sum given(const SubRow<SIZE>& row, int low, int high, int distance, int lane) {
    if constexpr (RUN_TIME_INDEX) return __shfl_xor_sync(ALL_LANES, row.at[lane & distance ? low : high], distance);
    return exchanged(row.at[low], row.at[high], distance, lane);
}

// `from`: the lane's first element, all of the warp's being inside the image.
template <int SIZE>
__device__ __forceinline__ SubRow<SIZE> exchanged_row(const Image* from, int lane) {
    SubRow<SIZE> row;
    row.at[0] = (Sum)from[0];
    row.at[SIZE - 1] = (Sum)from[SIZE - 1];
    if constexpr (SIZE == 5) {
        row.at[2] = given(row, 0, 4, 2, lane);
        row.at[1] = given(row, 0, 2, 1, lane);
        row.at[3] = given(row, 2, 4, 1, lane);
    } else if constexpr (SIZE == 3) {
        row.at[1] = given(row, 0, 2, 1, lane);
    }
    return row;
}
