// Products with a Hankel matrix by one warp, from rows in shared memory.
//
// The including kernel defines where the rows are: MOVING_PART and FIXED_PART words between the parts of a value, and
// STEPS_K times 16 columns. Needs `hankel.cuh`.
#pragma once
#include "mma_fp16.cuh"

struct __align__(8) TwoWords {
    unsigned first, second;
};

// Four elements of a fixed row.
__device__ __forceinline__ TwoWords keep(unsigned* row, const Four& four) {
    const TwoWords words = {half_pair(four.at[0], four.at[1]), half_pair(four.at[2], four.at[3])};
    *reinterpret_cast<TwoWords*>(row) = words;
    return words;
}

// Four elements of a moving row, in both of its copies; `even`: the first.
__device__ __forceinline__ void keep_shifted(unsigned* even, const Four& four, bool has_before) {
    const TwoWords words = keep(even, four);
    // Element i lies at i - 1 here: the first goes to the word before, the last begins the word after.
    unsigned* odd = even + MOVING_WORDS;
    odd[0] = half_pair(four.at[1], four.at[2]);
    unsigned short* fp16 = reinterpret_cast<unsigned short*>(odd);
    fp16[2] = (unsigned short)(words.second >> 16);
    if (has_before) fp16[-1] = (unsigned short)words.first;
}

typedef float WarpSums[M_TILES][N_TILES][4];

__device__ __forceinline__ void clear(WarpSums& sum) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) (&sum[0][0][0])[i] = 0.0f;
}

// One row of the moving matrices against the fixed rows of all ey, over a warp's share of the columns.
// `moving`: this lane's first word; `fixed`: its row of each four 8 x 8 matrices; both at the first column.
__device__ __forceinline__ void multiply_row(const unsigned* moving, const unsigned* const (&fixed)[N_TILES / 2],
                                             WarpSums& sum) {
    unsigned hankel[SPLIT][2 * M_TILES + 1];
#pragma unroll
    for (int part = 0; part < SPLIT; ++part)
#pragma unroll
        for (int i = 0; i < 2 * M_TILES - 1; ++i) hankel[part][i] = moving[part * MOVING_PART + 4 * i];
#pragma unroll 2
    for (int step = 0; step < STEPS_K; ++step) {
        unsigned b[SPLIT][N_TILES / 2][4];
#pragma unroll
        for (int part = 0; part < SPLIT; ++part)
#pragma unroll
            for (int n = 0; n < N_TILES / 2; ++n) load_matrices(fixed[n] + part * FIXED_PART + step * 8, b[part][n]);
#pragma unroll
        for (int part = 0; part < SPLIT; ++part) {
            unsigned(&h)[2 * M_TILES + 1] = hankel[part];
            const unsigned* from = moving + part * MOVING_PART + step * 8;
            h[2 * M_TILES - 1] = from[4 * (2 * M_TILES - 1)];
            h[2 * M_TILES] = from[4 * (2 * M_TILES)];
#pragma unroll
            for (int other = 0; other < SPLIT - part; ++other)
#pragma unroll
                for (int n = 0; n < N_TILES; ++n)
#pragma unroll
                    for (int m = 0; m < M_TILES; ++m)
                        multiply_add_halves(sum[m][n], h[2 * m], h[2 * m + 1], h[2 * m + 1], h[2 * m + 2],
                                            b[other][n / 2][n % 2 * 2], b[other][n / 2][n % 2 * 2 + 1]);
#pragma unroll
            for (int i = 0; i < 2 * M_TILES - 1; ++i) h[i] = h[i + 2];
        }
    }
}
