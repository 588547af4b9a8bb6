// Band product: a thread multiplies whole rows, but only the pairs of columns that the window of shifts asks for.
//
// A thread computes one dy of one pair for some of its rows. For a left row and a right row it forms every product
// whose columns lie within the window of dx, each exactly once, and none with zeros outside the matrices: widths and dx
// are compile-time constants, so the band of products that is needed is unrolled (64 columns, 33 dx: 1840 FMA for 32
// 16-byte loads). The SHIFTS_X sums stay in registers, and the left row passes through a sliding window of registers.
//
// A block loops over groups of PAIRS whole pairs; while it computes one group the next is staged. Threads are ordered
// by |dy| first, so that the lanes of a warp have nearly the same number of rows; PARTS threads share the rows of a
// shift, and their sums are added in a fixed order. Every run gives the same bits.
// Document: goes beyond it, like row_product.cu, for the windows of particle image velocimetry and strain mapping: many
// pairs of small matrices. Floor: the FMA rate.
// On an H200: 0.75 of it for 16384 pairs of 64^2 within +-16 pixels, counting only products inside the overlaps.
#include "problem.cuh"
#include "shared_tile.cuh"

#ifndef LEFT_WIDTH
#define LEFT_WIDTH 64
#endif
#ifndef RIGHT_WIDTH
#define RIGHT_WIDTH 64
#endif
#ifndef SHIFT_X0
#define SHIFT_X0 (-16)
#endif
#ifndef SHIFTS_X
#define SHIFTS_X 33
#endif
#ifndef PAIRS
#define PAIRS 3
#endif
#ifndef PARTS
#define PARTS 5
#endif
#ifndef THREADS
#define THREADS 512  // at least PAIRS * PARTS * shifts_y, a multiple of 32
#endif

#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

#define SUM_PITCH (SHIFTS_X | 1)  // an odd number: the lines of neighbouring lanes fall into different banks
#define LEFT_FOURS ((LEFT_WIDTH + 3) / 4)
#define RIGHT_FOURS ((RIGHT_WIDTH + 3) / 4)
#define LEFT_PITCH (4 * (LEFT_FOURS | 1))  // an odd number of fours: 8 neighbouring rows fall into different banks
#define RIGHT_PITCH (4 * (RIGHT_FOURS | 1))

// Fours of the left row that the right columns before 4 * fours need.
__device__ constexpr int left_fours_before(int fours) {
    const int columns = 4 * fours + SHIFT_X0 + SHIFTS_X - 1;
    const int needed = columns <= 0 ? 0 : (columns + 3) / 4;
    return fours == 0 ? 0 : needed < LEFT_FOURS ? needed : LEFT_FOURS;
}

// Window rows from the middle outwards: 0, 1, -1, 2, ... for a symmetric window.
__device__ __forceinline__ int outwards(int rank, int count) {
    const int middle = (count - 1) / 2;
    return rank & 1 ? middle + (rank + 1) / 2 : middle - rank / 2;
}

// Left and right matrices of the pairs of one group, without waiting for them.
__device__ __forceinline__ void stage_group(const Problem& p, const Left* lefts, const Right* rights_of_all, int group,
                                            float* tiles, int pair_floats) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
    for (int k = 0; k < PAIRS && group * PAIRS + k < p.pairs; ++k) {
        const int pair = group * PAIRS + k;
        float *left = tiles + k * pair_floats, *right = left + p.left_height * LEFT_PITCH;
        stage<4 * LEFT_FOURS, LEFT_PITCH, THREADS / 32>(left, left_of(p, lefts, pair), LEFT_WIDTH, p.left_height, 0, 0,
                                                        p.left_height, 0, warp, lane);
        stage<4 * RIGHT_FOURS, RIGHT_PITCH, THREADS / 32>(right, right_of(p, rights_of_all, pair), RIGHT_WIDTH,
                                                          p.right_height, 0, 0, p.right_height, 0, warp, lane);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    band_product(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS, int pair_floats,
                 int blocks) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(buffers);  // two groups of PAIRS times pair_floats: the left rows, the right rows
    const int groups = ceil_div(p.pairs, PAIRS);
    const int nth = threadIdx.x % PAIRS, part = threadIdx.x / PAIRS % PARTS, rank = threadIdx.x / (PAIRS * PARTS);
    const int iy = outwards(rank, p.shifts_y), dy = p.shift_y0 + iy;
    const Span rows = overlap(p.left_height, p.right_height, dy);
    float *tiles = buffers, *next_tiles = buffers + PAIRS * pair_floats;
    stage_group(p, lefts, rights_of_all, (int)blockIdx.x, tiles, pair_floats);
#pragma unroll 1
    for (int group = (int)blockIdx.x; group < groups; group += blocks) {
        staged();
        __syncthreads();
        if (group + blocks < groups) stage_group(p, lefts, rights_of_all, group + blocks, next_tiles, pair_floats);
        const bool active = rank < p.shifts_y && group * PAIRS + nth < p.pairs;
        Sum sum[SHIFTS_X];
#pragma unroll
        for (int i = 0; i < SHIFTS_X; ++i) sum[i] = 0;
        const float* left_rows = tiles + nth * pair_floats;
        const float* right_rows = left_rows + p.left_height * LEFT_PITCH;
        const int last = active ? rows.last : rows.first;
#pragma unroll 1
        for (int y = rows.first + part; y < last; y += PARTS) {
            const float *left_row = left_rows + (y + dy) * LEFT_PITCH, *right_row = right_rows + y * RIGHT_PITCH;
            Four left[LEFT_FOURS];
#pragma unroll
            for (int four = 0; four < RIGHT_FOURS; ++four) {
                const Four right = load_four(right_row + 4 * four);
#pragma unroll
                for (int j = left_fours_before(four); j < left_fours_before(four + 1); ++j)
                    left[j] = load_four(left_row + 4 * j);
#pragma unroll
                for (int k = 0; k < 4; ++k)
#pragma unroll
                    for (int i = 0; i < SHIFTS_X; ++i) {
                        const int x = 4 * four + k, left_x = x + SHIFT_X0 + i;
                        if (x < RIGHT_WIDTH && left_x >= 0 && left_x < LEFT_WIDTH)
                            sum[i] = multiply_add(left[left_x / 4].at[left_x % 4], right.at[k], sum[i]);
                    }
            }
        }
        // The parts of a shift add up through the tiles, which nobody needs any more, in their order.
        __syncthreads();
        Sum* partial = reinterpret_cast<Sum*>(tiles);  // [PARTS][PAIRS][shifts_y][SUM_PITCH]
        const int lines = PAIRS * p.shifts_y;
        if (active) {
#pragma unroll
            for (int i = 0; i < SHIFTS_X; ++i)
                partial[((part * PAIRS + nth) * p.shifts_y + iy) * SUM_PITCH + i] = sum[i];
        }
        __syncthreads();
        const int lines_here = min(PAIRS, p.pairs - group * PAIRS) * p.shifts_y;
        Sum* of_group = plane_of(p, planes, group * PAIRS);
        for (int k = threadIdx.x; k < lines_here * SHIFTS_X; k += THREADS) {
            const int at = k / SHIFTS_X * SUM_PITCH + k % SHIFTS_X;
            Sum total = partial[at];
#pragma unroll
            for (int other = 1; other < PARTS; ++other) total += partial[other * lines * SUM_PITCH + at];
            of_group[k] = total;
        }
        float* used = tiles;
        tiles = next_tiles;
        next_tiles = used;
    }
}
