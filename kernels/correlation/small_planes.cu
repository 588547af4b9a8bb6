// Planes of the plain sums of pairs of small matrices on tensor cores: a block does all of a pair, from elements to plane.
//
// The products are those of small_hankel.cu: rows of left against rows of right, tiles of 16 dx x 8 dy. Here every warp has
// all dx of its own 8 N_TILES dy, so that along x the compiler leaves out what is all zero; along y warps pass over rows that
// meet none. Of a full plane the first warps and the last have the fewest rows, the inner ones the most; of any two that are
// WARPS / 2 apart, and share a scheduler, the sum is the same.
//
// Values are rounded to half precision once: a sum is off by 2^-10 of the product of both matrices' norms at most. What the
// centres contribute comes from tables of rectangle sums, as the plane is written. Every run gives the same bits.
//
// Document: none; KERNELS.md, "correlation as a Hankel product". Floor: the rate of `mma.sync` (315 TFMA/s on an H200) over
// tiles that are not all zero: for a full plane of 64 x 64 against 64 x 64 11520 products of 16 x 16 x 8 (22528 with those
// that are), 0.075 us a pair; writing it takes 0.015.
// On an H200 0.19 us; 0.025 for 32 x 32.
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
#ifndef N_TILES
#define N_TILES 2
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef STACKED
#define STACKED 1
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#define PARTS_X 1
#define PARTS_Y WARPS
#define LONE_COLUMN 0
constexpr int THREADS = 32 * WARPS;
#include "small_pair.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    small_planes(const Left* lefts, const Right* rights_of_all, float* planes, int rights_per_left, int rights) {
    SHARED_FLOATS(scratch);
    float* const tables = scratch + SCRATCH_FLOATS;
    float* const sums = tables + TABLES_FLOATS;  // in place of the halves
    unsigned* const left_halves = reinterpret_cast<unsigned*>(sums);
    unsigned* const right_halves = left_halves + LEFT_ROWS * LEFT_PITCH;
    const int pair = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Left* left = lefts + (long long)(pair / rights_per_left) * (LEFT_HEIGHT * LEFT_WIDTH);
    const Right* right = rights_of_all + (long long)(pair % rights) * (RIGHT_HEIGHT * RIGHT_WIDTH);
    Centres centres;
    const auto keep_centres = [&](const Centres& these, const SmallLeft&, const SmallRight&) { centres = these; };
    const float unit = prepare_pair(left, right, scratch, tables, left_halves, keep_centres);
    {
        const int iy = warp * (8 * N_TILES);
        WarpSums sum;
#pragma unroll
        for (int i = 0; i < M_TILES * N_TILES * 4; ++i) (&sum[0][0][0])[i] = 0.0f;
        multiply(left_halves, right_halves, FIRST_DY + iy, FIRST_DX, 0, lane, right_halves[0], sum);
        __syncthreads();
        hand_over(sums + iy * SUM_PITCH, sum, lane);
    }
    __syncthreads();
    float* const plane = planes + (long long)pair * (SHIFTS_Y * SHIFTS_X);
    in_strips([&](int ix, int first, int last) {
        const Centres::Column column = centres.column(ix);
#pragma unroll 2
        for (int iy = first; iy < last; ++iy)
            plane[iy * SHIFTS_X + ix] = column.at(iy, 1, 0.0f) + sums[iy * SUM_PITCH + ix] * unit;
    });
}
