// Planes of the plain sums of pairs of small matrices on tensor cores: a block processes its pairs completely, from
// elements to planes.
//
// The products are those of hankel.cuh, with left sliding over right,
//     plane[dy][dx] = sum over y, x of left[y][x + dx] * right[y - dy][x],
// in tiles of 16 dx x 8 dy. A warp computes all dx of eight dy. So for a row of left it needs, whatever dx and x are, a
// few fragments that depend on x + dx alone: five for 64 columns; all others are zero. They are read once for all
// products of that row, and for all RIGHTS that a block pairs with its left. Along y a warp visits the rows that
// overlap with right at its dy; in a full plane the first and the last dy have the fewest. Warps take dy round-robin, 8
// * WARPS apart: in a full plane, equal work.
//
// Steps: (1) the matrices into registers, their means; (2) summed-area tables, and fp16, both in shared memory; (3) for
// each eight dy the products, then the contribution of the centres, as the plane is written from registers. After (2)
// no warp waits for another.
//
// Values are rounded to fp16 once (SPLIT 1): the error of a sum is at most 2^-10 of the product of both matrices'
// norms. With SPLIT 2 a value is the sum of two fp16 numbers, in three products: the error is below 1e-6 of it. Every
// run gives the same bits.
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: the rate of `mma.sync` (315 TFMA/s on an
// H200) over tiles that are not all zero: for a full plane of 64 x 64 against 64 x 64 11360 products of 16 x 16 x 8 (8192
// would have no zeros), 0.074 us a pair, 0.22 for SPLIT 2; writing it takes 0.015. Counted, of 40 products for two rights: 70
// instructions (143 of 60 for SPLIT 2); of 64 values written: 632. On an H200 0.114 us, 0.298 for SPLIT 2.
#ifndef LEFT_HEIGHT
#define LEFT_HEIGHT 64
#endif
#ifndef LEFT_WIDTH
#define LEFT_WIDTH 64
#endif
#ifndef RIGHT_HEIGHT
#define RIGHT_HEIGHT 64
#endif
#ifndef RIGHT_WIDTH
#define RIGHT_WIDTH 64
#endif
#ifndef SHIFT_Y0
#define SHIFT_Y0 (-63)
#endif
#ifndef SHIFT_X0
#define SHIFT_X0 (-63)
#endif
#ifndef SHIFTS_Y
#define SHIFTS_Y 127
#endif
#ifndef SHIFTS_X
#define SHIFTS_X 127
#endif
#ifndef M_TILES
#define M_TILES 8
#endif
#ifndef RIGHTS
#define RIGHTS 2
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
constexpr int THREADS = 32 * WARPS;
#include "small_plane_centres.cuh"
#include "small_scale.cuh"

constexpr int MATRICES = 1 + RIGHTS, TABLES_FLOATS = LEFT_TABLE_FLOATS + RIGHTS * RIGHT_TABLE_FLOATS;
constexpr int SCRATCH_FLOATS = 4 * MATRICES * WARPS;  // by which warps agree: a double sum and two floats of each matrix

// Leaves a warp's sum and highest values of one of the block's matrices for the other warps.
template <typename Matrix>
__device__ __forceinline__ void hand_over(const Matrix& matrix, double* sums, float* highest) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    double sum = matrix.sum();
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    const float high = highest_of_both(matrix.template highest<false>(), matrix.template highest<true>());
    if (lane == 0) sums[warp] = sum;
    if (lane % 16 == 0) highest[lane / 16 * (MATRICES * WARPS) + warp] = high;
}

// What a table is made of.
template <typename Matrix>
struct Scaled {
    const Matrix& matrix;
    __device__ __forceinline__ Four operator()(int j) const { return matrix.vector[j]; }
};

// Zeros above and below the fp16 of all rights.
__device__ __forceinline__ void clear_rims(unsigned* right_fp16) {
    constexpr int ROW = RIGHT_PITCH / 4, RIM = 2 * ABOVE * ROW;
    by_all_threads<SPLIT * RIGHTS * RIM>([&](int i) {
        const int matrix = i / RIM, at = i % RIM, below = at < ABOVE * ROW ? 0 : RIGHT_HEIGHT * ROW;
        reinterpret_cast<FourWords*>(right_fp16 + matrix * RIGHT_WORDS)[at + below] = {{0, 0, 0, 0}};
    });
}

// Leaves summed-area tables, and behind them fp16, in shared memory. Every thread of the block calls it; a barrier follows the
// last store.
__device__ __forceinline__ Centres prepare(const Left* left, const Right* const (&rights)[RIGHTS], float* scratch, float* tables,
                                           unsigned* left_fp16, unsigned* right_fp16) {
    SmallLeft of_left(left);
    SmallRight of_right[RIGHTS];
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) of_right[r].take(rights[r]);
    clear_rims(right_fp16);  // while these are on their way

    double* const sums = reinterpret_cast<double*>(scratch);
    float* const highest = scratch + 2 * MATRICES * WARPS;
    hand_over(of_left, sums, highest);
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) hand_over(of_right[r], sums + (1 + r) * WARPS, highest + (1 + r) * WARPS);
    __syncthreads();

    const float* const highest_negative = highest + MATRICES * WARPS;
    LeftTable left_table;
    RightTable right_table[RIGHTS];
    float* const right_tables = tables + LEFT_TABLE_FLOATS;
    scale_by_all_warps(of_left, sums, highest, highest_negative);
    left_table.add_down(tables, Scaled<SmallLeft>{of_left});
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) {
        const int of_warps = (1 + r) * WARPS;
        scale_by_all_warps(of_right[r], sums + of_warps, highest + of_warps, highest_negative + of_warps);
        right_table[r].add_down(right_tables + r * RIGHT_TABLE_FLOATS, Scaled<SmallRight>{of_right[r]});
    }
    __syncthreads();
    left_table.add_above(tables);
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) right_table[r].add_above(right_tables + r * RIGHT_TABLE_FLOATS);
    __syncthreads();

    Centres centres;
    left_table.keep(tables, Scaled<SmallLeft>{of_left}, of_left.unit);
    centres.left = of_left.centre;
    of_left.template keep_neighbours<ORIGIN, LEFT_PITCH, 0>(left_fp16);
#if SPLIT == 2
    of_left.template keep_neighbours<ORIGIN, LEFT_PITCH, 1>(left_fp16 + LEFT_WORDS);
#endif
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) {
        right_table[r].keep(right_tables + r * RIGHT_TABLE_FLOATS, Scaled<SmallRight>{of_right[r]}, of_right[r].unit);
        centres.right[r] = of_right[r].centre;
        centres.unit[r] = of_left.unit * of_right[r].unit;
        unsigned* const fp16 = right_fp16 + r * SPLIT * RIGHT_WORDS + ABOVE * RIGHT_PITCH;
        of_right[r].template keep_pairs<PADDED, 0>(fp16, RIGHT_PITCH);
#if SPLIT == 2
        of_right[r].template keep_pairs<PADDED, 1>(fp16 + RIGHT_WORDS, RIGHT_PITCH);
#endif
    }
    __syncthreads();
    return centres;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    small_planes(const Left* lefts, const Right* rights_of_all, float* planes, int rights_per_left, int rights) {
    SHARED_FLOATS(scratch);
    float* const tables = scratch + SCRATCH_FLOATS;
    unsigned* const left_fp16 = reinterpret_cast<unsigned*>(tables + TABLES_FLOATS);
    unsigned* const right_fp16 = left_fp16 + SPLIT * LEFT_WORDS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int blocks_per_left = ceil_div(rights_per_left, RIGHTS);
    const int of_left = blockIdx.x / blocks_per_left, first = blockIdx.x % blocks_per_left * RIGHTS;
    const int pair = of_left * rights_per_left + first, count = rights_per_left - first;
    const Right* of_rights[RIGHTS];
#pragma unroll
    for (int r = 0; r < RIGHTS; ++r) {
        const int own = (pair + (r == 0 ? 0 : min(r, count - 1))) % rights;
        of_rights[r] = rights_of_all + (long long)own * (RIGHT_HEIGHT * RIGHT_WIDTH);
    }
    const Left* left = lefts + (long long)of_left * (LEFT_HEIGHT * LEFT_WIDTH);
    const Centres centres = prepare(left, of_rights, scratch, tables, left_fp16, right_fp16);
    planes += (long long)pair * (SHIFTS_Y * SHIFTS_X);
#pragma unroll 1
    for (int iy = 8 * warp; iy < SHIFTS_Y; iy += 8 * WARPS) {
        WarpSums sum;
        multiply(left_fp16, right_fp16, FIRST_DY + iy, lane, right_fp16[0], sum);
        unsigned own = lane;
        keep(own);  // else what follows from the lane alone would take registers while warps multiply
        write_tile(planes, tables, centres, sum, iy, count, (int)own);
    }
}
