// Taps as a band of a matrix, A[m][k] = tap[k - m], in the registers of a warp for products of 16 x 8 x 16 (`mma_fp16.cuh`).
//
// Sums over a row of taps are a product with such a matrix: 16 neighbouring results from the elements that they depend
// on, in steps of 16. All axes of these products, the 16 results, the 16 elements of a step, the 8 columns of B, are
// numbered in this order:
//
//     k       0 1  2 3  4 5   6  7   8 9  10 11  12 13  14 15
//     place   0 1  4 5  8 9  12 13   2 3   6  7  10 11  14 15
//
// so that a lane, which has k = 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, has four neighbours: 4 t to 4 t + 3. Column g of B,
// or row g of sums, is at `place_of(g)`, and g + 8 two places further. Of A a lane then holds, in every step, the pairs
// of taps that begin at d, d - 2, d + 2 and d for d = 4 t - place_of(g).
#pragma once
#include "split_fp16.cuh"

__device__ __forceinline__ int place_of(int g) { return g / 2 * 4 + g % 2; }

// Taps as split fp16, two numbers each. `tap(i)` may be asked for any i; outside of them it gives zero.
template <int STEPS>
struct Band {
    unsigned upper[STEPS][4], lower[STEPS][4];

    template <typename Tap>
    __device__ __forceinline__ void take(int lane, const Tap& tap) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const int off = word == 1 ? -2 : word == 2 ? 2 : 0;
                const int first = 16 * step + off + 4 * (lane % 4) - place_of(lane / 4);
                const HalfParts pair = half_parts(tap(first), tap(first + 1));
                upper[step][word] = pair.upper;
                lower[step][word] = pair.lower;
                // An instruction takes four registers in a row: of two equal ones the compiler would make the second again.
                keep(upper[step][word]);
                keep(lower[step][word]);
            }
    }
};

// sum += step of the band * B.
__device__ __forceinline__ void multiply_add_band(float (&sum)[4], const unsigned (&step)[4], unsigned b0, unsigned b1) {
    multiply_add_halves(sum, step[0], step[1], step[2], step[3], b0, b1);
}
