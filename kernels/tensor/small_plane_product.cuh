// The products of small_planes.cu: the layout in shared memory of the fp16 copies of a left and of its rights, and a
// warp's sums over a tile of 8 dy and all dx. Sizes and tiles are the kernel's macros.
#pragma once
#include "mma_fp16.cuh"

static_assert(16 * M_TILES >= SHIFTS_X, "a warp has all dx");

// Known with their signs.
constexpr int FIRST_DY = SHIFT_Y0, FIRST_DX = SHIFT_X0;

// The fragment of 16 columns of right from 16 k on, for 16 shifts from FIRST_DX + 16 m on, depends on k + m alone. Those from
// FIRST_FRAGMENT on have elements of left: FIRST_DX + 16 (k + m) + 30 is its last column, FIRST_DX + 16 (k + m) its first.
constexpr int STEPS_K = (RIGHT_WIDTH + 15) / 16;
constexpr int FIRST_FRAGMENT = FIRST_DX >= -30 ? 0 : (-30 - FIRST_DX + 15) / 16;
constexpr int PAST_FRAGMENTS = LEFT_WIDTH <= FIRST_DX ? 0 : (LEFT_WIDTH - FIRST_DX + 15) / 16;
constexpr int END_FRAGMENT = PAST_FRAGMENTS < STEPS_K + M_TILES - 1 ? PAST_FRAGMENTS : STEPS_K + M_TILES - 1;
constexpr int FRAGMENTS = END_FRAGMENT > FIRST_FRAGMENT ? END_FRAGMENT - FIRST_FRAGMENT : 1;

// Rows of left, from column ORIGIN on, to the last column that a fragment reads; zero outside the matrix.
constexpr int ORIGIN = (FIRST_DX + 16 * FIRST_FRAGMENT) & ~3, LEFT_PITCH = 16 * FRAGMENTS + 20;
constexpr int LEFT_WORDS = LEFT_HEIGHT * LEFT_PITCH;
// Rows of right, seven of zeros above and below. Eight of them are read at once: an odd number of 16 bytes apart.
constexpr int PADDED = (STEPS_K + 1) / 2 * 32;  // columns, beyond the matrix zero
constexpr int ABOVE = 7, RIGHT_PITCH = PADDED / 2 + 4, RIGHT_WORDS = (RIGHT_HEIGHT + 2 * ABOVE) * RIGHT_PITCH;
constexpr int HALVES_WORDS = SPLIT * (LEFT_WORDS + RIGHTS * RIGHT_WORDS);

typedef float WarpSums[M_TILES][RIGHTS][4];
typedef unsigned Hankel[FRAGMENTS][4];

__device__ __forceinline__ void clear(WarpSums& sum) {
#pragma unroll
    for (int i = 0; i < M_TILES * RIGHTS * 4; ++i) (&sum[0][0][0])[i] = 0.0f;
}

// A lane's words of all fragments of a row of left, from its first word on. Fragments share words, but the registers of each
// must be neighbours: so some words are copies, by an addition of what is zero unknown to the compiler, which would else make
// the copies before every product.
__device__ __forceinline__ void hankel_fragments(const unsigned* row, unsigned zero, Hankel& fragment) {
    unsigned word[2 * FRAGMENTS + 1];
#pragma unroll
    for (int i = 0; i < 2 * FRAGMENTS + 1; ++i) word[i] = row[8 * i];
#pragma unroll
    for (int f = 0; f < FRAGMENTS; ++f) {
        fragment[f][0] = word[2 * f];
        fragment[f][1] = word[2 * f + 1];
        fragment[f][2] = word[2 * f + 1] + zero;
        fragment[f][3] = word[2 * f + 2] + (f < FRAGMENTS - 1 ? zero : 0);
        keep(fragment[f][2]);
        keep(fragment[f][3]);
    }
}

// Products of a row of left with the eight rows of every right that it needs at eight dy. Every fragment serves all k + m.
__device__ __forceinline__ void multiply_row(const Hankel& fragment, const unsigned* right, WarpSums& sum) {
#pragma unroll
    for (int two = 0; two < (STEPS_K + 1) / 2; ++two) {
        unsigned rows[RIGHTS][4];
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r) load_matrices(right + r * (SPLIT * RIGHT_WORDS) + two * 16, rows[r]);
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int m = 0; m < M_TILES; ++m) {
                const int k = 2 * two + half, f = k + m;
                if (k >= STEPS_K || f < FIRST_FRAGMENT || f >= END_FRAGMENT) continue;
                const unsigned(&h)[4] = fragment[f - FIRST_FRAGMENT];
#pragma unroll
                for (int r = 0; r < RIGHTS; ++r)
                    multiply_add_halves(sum[m][r], h[0], h[1], h[2], h[3], rows[r][2 * half], rows[r][2 * half + 1]);
            }
    }
}

// A warp's sums of eight dy from `dy` on, over all rows of left that overlap with right there. Tensor cores truncate sums:
// where values have two parts, sums restart with every row, and ordinary additions add them up.
__device__ __forceinline__ void multiply(const unsigned* left, const unsigned* right, int dy, int lane, unsigned zero,
                                         WarpSums& sum) {
    const int first = max(0, dy), rows = max(0, min(LEFT_HEIGHT, dy + 7 + RIGHT_HEIGHT) - first);
    left += first * LEFT_PITCH + FIRST_DX + 16 * FIRST_FRAGMENT - ORIGIN + lane / 4 + lane % 4 * 2;
    right += (ABOVE + first - dy - lane % 8) * RIGHT_PITCH + lane / 8 * 4;
    clear(sum);
#pragma unroll 1
    for (const unsigned* end = left + rows * LEFT_PITCH; left != end; left += LEFT_PITCH, right += RIGHT_PITCH) {
        Hankel fragment;
#if SPLIT == 1
        hankel_fragments(left, zero, fragment);
        multiply_row(fragment, right, sum);
#else
        WarpSums of_row;  // the small products first, as what is cut off is a share of the sum
        clear(of_row);
        hankel_fragments(left + LEFT_WORDS, zero, fragment);
        multiply_row(fragment, right, of_row);
        hankel_fragments(left, zero, fragment);
        multiply_row(fragment, right + RIGHT_WORDS, of_row);
        multiply_row(fragment, right, of_row);
#pragma unroll
        for (int i = 0; i < M_TILES * RIGHTS * 4; ++i) (&sum[0][0][0])[i] += (&of_row[0][0][0])[i];
#endif
    }
}
