// The products of small_hankel.cu: the layout in shared memory of the fp16 copies of both matrices, and a warp's share
// of the sums. Sizes and tiles are the kernel's macros.
#pragma once
#include "mma_fp16.cuh"

constexpr int SHARES = WARPS / (PARTS_Y * PARTS_X);  // warps that sum the same shifts, over different rows
constexpr int ALL_M = PARTS_X * M_TILES, ALL_N = PARTS_Y * N_TILES;
static_assert(WARPS % (PARTS_Y * PARTS_X) == 0 && 16 * ALL_M + LONE_COLUMN >= SHIFTS_X && 8 * ALL_N >= SHIFTS_Y,
              "warps cover the window");
static_assert(!LONE_COLUMN || SHARES == WARPS && STACKED % 2 == 0, "every warp has sums of its own, and 16 rows at a time");

// Known with their signs.
constexpr int FIRST_DY = SHIFT_Y0, FIRST_DX = SHIFT_X0;

// Rows of left in shared memory, from column ORIGIN on, to the last column that any tile reads; zero outside the matrix.
constexpr int ORIGIN = FIRST_DX & ~3, STEPS_K = (RIGHT_WIDTH + 15) / 16, GROUP_ROWS = 8 * STACKED;
constexpr int LEFT_PITCH = 16 * STEPS_K + 16 * ALL_M + 4;
constexpr int LEFT_ROWS = (LEFT_HEIGHT + GROUP_ROWS - 1) / GROUP_ROWS * GROUP_ROWS;
// Rows of right, with rows of zeros above and below. Eight of them are read at once: an odd number of 16 bytes apart.
constexpr int ABOVE = 7, BELOW = 8, RIGHT_PITCH = (STEPS_K + 1) / 2 * 16 + 4, RIGHT_ROWS = ABOVE + RIGHT_HEIGHT + BELOW;
// Sums of all tiles: the four dy that lanes write at once lie in different banks.
constexpr int SUM_PITCH = 16 * ALL_M + 4, SUM_FLOATS = 8 * ALL_N * SUM_PITCH;

// Products of 16 rows of left with the rows of right that they need, from the first tile of eight that has any on. An odd
// number of tiles apart: the four rows that lanes write at once lie in different banks.
constexpr int LAST_DY = FIRST_DY + SHIFTS_Y - 1, LONE_SKEW = -LAST_DY & 7;
constexpr int LONE_TILES = (SHIFTS_Y + 15 + LONE_SKEW + 7) / 8, LONE_PITCH = 8 * (LONE_TILES | 1);
constexpr int LONE_SUMS = (SHIFTS_Y + 31) / 32;
constexpr int HALVES_FLOATS = LEFT_ROWS * LEFT_PITCH + RIGHT_ROWS * RIGHT_PITCH;

struct __align__(8) TwoFloats {
    float first, second;
};
typedef float WarpSums[M_TILES][N_TILES][4];

// Whether the product of 16 columns of right from k on, for 16 shifts from dx on, has elements of left.
__device__ __forceinline__ constexpr bool meets(int k, int dx) { return k + dx + 30 >= 0 && k + dx < LEFT_WIDTH; }

// A lane's words of the fragments of 0, 16, 32, ... shifts or columns further, of those that have elements of left: the first
// is of column k, for shifts from dx on. `row`: its first word. Fragments share words, but the registers of each must be
// neighbours: so some words are copies, by an addition of what is zero unknown to the compiler, which would else make the
// copies before every product.
__device__ __forceinline__ void hankel_fragments(const unsigned* row, unsigned zero, int k, int dx,
                                                 unsigned (&fragment)[M_TILES + 1][4]) {
    unsigned word[2 * M_TILES + 3];
#pragma unroll
    for (int i = 0; i < 2 * M_TILES + 3; ++i) word[i] = row[8 * i];
#pragma unroll
    for (int f = 0; f < M_TILES + 1; ++f) {
        if (PARTS_X == 1 && !meets(k, dx + 16 * f)) continue;
        fragment[f][0] = word[2 * f];
        fragment[f][1] = word[2 * f + 1];
        fragment[f][2] = word[2 * f + 1] + zero;
        fragment[f][3] = word[2 * f + 2] + (f < M_TILES ? zero : 0);
        keep(fragment[f][2]);
        keep(fragment[f][3]);
    }
}

// Where all warps have the same dy, the compiler knows for each of a few groups of rows of left which of right they need.
constexpr int GROUPS = LEFT_ROWS / GROUP_ROWS;
constexpr bool GROUPS_ARE_KNOWN = PARTS_Y == 1 && GROUPS <= 2;
constexpr int KNOWN_GROUPS = GROUPS_ARE_KNOWN ? GROUPS : 1, STEPS_Y = 8 * GROUPS / KNOWN_GROUPS;

// Products of a warp's share of the rows. `dy`, `dx`: its first shift.
__device__ __forceinline__ void multiply(const unsigned* left, const unsigned* right, int dy, int dx, int share, int lane,
                                         unsigned zero, WarpSums& sum) {
    left += dx - ORIGIN + lane / 4 + lane % 4 * 2;
    unsigned own = (ABOVE - lane % 8) * RIGHT_PITCH + lane / 8 * 4;
    keep(own);
    right += own;
#pragma unroll
    for (int group = 0; group < KNOWN_GROUPS; ++group) {
#pragma unroll 1
        for (int i = share; i < STEPS_Y; i += SHARES) {
            const int first_row = GROUPS_ARE_KNOWN ? group * GROUP_ROWS : i / 8 * GROUP_ROWS;
            const int step = GROUPS_ARE_KNOWN ? i : i % 8, y = first_row + step;
            // Rows y + 8 r need rows [top - 7, top] of right in tile n = b - (STACKED - 1) + r.
            const int min_first_top = first_row - dy + 8 * (STACKED - 1), first_top = min_first_top + step;
            const int last_top = first_top - 8 * (N_TILES + STACKED - 2);
            if (!GROUPS_ARE_KNOWN && (first_top < 0 || last_top - 7 >= RIGHT_HEIGHT)) continue;
            const unsigned* of_left = left + y * LEFT_PITCH;
#pragma unroll
            for (int two = 0; two < (STEPS_K + 1) / 2; ++two) {
                // 16 columns further is 16 shifts further.
                unsigned hankel[STACKED][M_TILES + 1][4];
#pragma unroll
                for (int r = 0; r < STACKED; ++r)
                    hankel_fragments(of_left + r * 8 * LEFT_PITCH + two * 32, zero, two * 32, dx, hankel[r]);
                of_left += zero;  // else words that were read here would be kept, and copied before every product
                const unsigned* of_right = right + first_top * RIGHT_PITCH + two * 16;
#pragma unroll
                for (int b = 0; b < N_TILES + STACKED - 1; ++b) {
                    const int min_top = min_first_top - 8 * b, top = first_top - 8 * b;
                    if (GROUPS_ARE_KNOWN) {  // none of the group's rows overlap with any, or all do: rows of zeros are read too
                        if (min_top + 7 < 0 || min_top - 7 >= RIGHT_HEIGHT) continue;
                        if (min_top < 0 && top < 0) continue;
                        if (min_top > RIGHT_HEIGHT && top - 7 >= RIGHT_HEIGHT) continue;
                    } else if (top < 0 || top - 7 >= RIGHT_HEIGHT) {
                        continue;
                    }
                    unsigned rows[4];
                    load_matrices(of_right - b * 8 * RIGHT_PITCH, rows);
#pragma unroll
                    for (int half = 0; half < 2; ++half)
#pragma unroll
                        for (int m = 0; m < M_TILES; ++m) {
                            const int x = two * 32 + half * 16;
                            if (x >= RIGHT_WIDTH || !meets(x, dx + 16 * m)) continue;
#pragma unroll
                            for (int r = 0; r < STACKED; ++r) {
                                const int n = b - (STACKED - 1) + r;
                                const unsigned(&h)[4] = hankel[r][half + m];
                                if (n >= 0 && n < N_TILES)
                                    multiply_add_halves(sum[m][n], h[0], h[1], h[2], h[3], rows[2 * half], rows[2 * half + 1]);
                            }
                        }
                }
            }
        }
    }
}

// A warp's share of the window's last column of shifts, where tiles would hold it alone: of sixteen rows of left, the products
//     D[r][y] = sum over x of left[r][x + dx] * right[y][x]
// with all rows of right that they need, in which each dy is a diagonal. For 64 x 64 and 33 shifts these are 60 products of
// tiles in place of 860. `square` is the warp's own; lane l gets the sums of shifts l, l + 32, ...
__device__ __forceinline__ void sum_lone_column(const unsigned* left, const unsigned* right, float* square, int warp, int lane,
                                                float (&sum)[LONE_SUMS]) {
    constexpr int DX = FIRST_DX + 16 * ALL_M, TWOS = (STEPS_K + 1) / 2;
    left += lane / 4 * LEFT_PITCH + DX - ORIGIN + lane % 4 * 2;
    right += (ABOVE + lane % 8) * RIGHT_PITCH + lane / 8 * 4;
#pragma unroll
    for (int i = 0; i < LONE_SUMS; ++i) sum[i] = 0.0f;
#pragma unroll 1
    for (int r = 16 * warp; r < LEFT_HEIGHT; r += 16 * WARPS) {
        unsigned a[STEPS_K][4];
#pragma unroll
        for (int step = 0; step < STEPS_K; ++step)
#pragma unroll
            for (int i = 0; i < 4; ++i) a[step][i] = left[(r + i % 2 * 8) * LEFT_PITCH + step * 16 + i / 2 * 8];
        const int first = r - LAST_DY - LONE_SKEW;
#pragma unroll
        for (int tile = 0; tile < LONE_TILES; ++tile) {
            const int y = first + tile * 8;
            float product[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (y >= 0 && y < RIGHT_HEIGHT) {
#pragma unroll
                for (int two = 0; two < TWOS; ++two) {
                    unsigned rows[4];
                    load_matrices(right + y * RIGHT_PITCH + two * 16, rows);
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int step = two * 2 + half;
                        if (step < STEPS_K && 16 * step + DX + 15 >= 0 && 16 * step + DX < LEFT_WIDTH)
                            multiply_add_halves(product, a[step][0], a[step][1], a[step][2], a[step][3], rows[2 * half],
                                                rows[2 * half + 1]);
                    }
                }
            }
            TwoFloats* const to = reinterpret_cast<TwoFloats*>(square + lane / 4 * LONE_PITCH + tile * 8 + lane % 4 * 2);
            to[0] = {product[0], product[1]};
            to[8 * LONE_PITCH / 2] = {product[2], product[3]};
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < LONE_SUMS; ++i) {
            const float* diagonal = square + LONE_SKEW + SHIFTS_Y - 1 - min(lane + 32 * i, SHIFTS_Y - 1);
#pragma unroll
            for (int row = 0; row < 16; ++row) sum[i] += diagonal[row * (LONE_PITCH + 1)];
        }
        __syncwarp();
    }
}

// A warp's sums, to be added up by the search. `sums`: of its share, at its first shift.
__device__ __forceinline__ void hand_over(float* sums, const WarpSums& sum, int lane) {
    sums += lane % 4 * 2 * SUM_PITCH + lane / 4;
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int n = 0; n < N_TILES; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[(n * 8 + i % 2) * SUM_PITCH + m * 16 + i / 2 * 8] = sum[m][n][i];
}
