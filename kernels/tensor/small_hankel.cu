// Peaks of the plain sums of pairs of small matrices on tensor cores: one block processes a whole pair, and no plane,
// table or fp16 value leaves it.
//
// The product is that of `hankel.cuh`, with left sliding over right:
//     plane[dy][dx] = sum over y, x of left[y][x + dx] * right[y - dy][x],
// A(dx, x) = left[y][x + dx] of one row y, B(x, dy) = right[y - dy][x]. Both matrices are in shared memory in fp16;
// left as every pair of neighbours, because lanes begin at odd columns too. A warp has M_TILES x N_TILES tiles of 16 dx
// x 8 dy in registers; PARTS_Y x PARTS_X warps share the window, and all such groups of warps share the rows of left.
// STACKED rows, eight apart, are multiplied together: the eight rows of right that one of them needs at some dy are
// those that the next needs at the next eight dy, and are read once. Products that are all zero are omitted, along x by
// the compiler, which knows all sizes.
//
// Steps: (1) both matrices into registers, their means; (2) summed-area tables, and from them what the centres
// contribute to each shift, as the products are those of centred elements (one table for both matrices, where they have
// the same size: the right is traversed backwards); (3) fp16; (4) products; (5) peak, rival (small_search.cuh); (6) the
// 3 x 3 sums around the peak recomputed, or 5 x 5 where one of the outer may be the better peak, in single precision
// and from the elements themselves, which L2 still holds, and the record, as near_peak.cu writes it (small_near.cuh):
// where a neighbour is higher, or the rival so close that rounding may have ranked it lower, the row becomes -1 - row.
// Several blocks per multiprocessor are in different steps, so nothing is prefetched. Every run gives the same bits.
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: the rate of `mma.sync` (315 TFMA/s on an
// H200) over tiles that are not all zero: for 64 x 64 and 33 x 33 shifts 2350 products of 16 x 16 x 8, 0.015 us a pair.
// Counted for these: about 4100 instructions of each scheduler, 1270 of them for the products, 290 for what the centres
// contribute, 750 for the 3 x 3 sums, 440 for the search.
// On an H200 0.036 us; 0.029 for full planes of 32 x 32.
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
#define SHIFT_Y0 (-16)
#endif
#ifndef SHIFT_X0
#define SHIFT_X0 (-16)
#endif
#ifndef SHIFTS_Y
#define SHIFTS_Y 33
#endif
#ifndef SHIFTS_X
#define SHIFTS_X 33
#endif
#ifndef M_TILES
#define M_TILES 2
#endif
#ifndef N_TILES
#define N_TILES 5
#endif
#ifndef PARTS_Y
#define PARTS_Y 1
#endif
#ifndef PARTS_X
#define PARTS_X 1
#endif
#ifndef WARPS
#define WARPS 4  // a multiple of PARTS_Y * PARTS_X
#endif
#ifndef STACKED
#define STACKED 4
#endif
#ifndef LONE_COLUMN
#define LONE_COLUMN 1  // 1: the window's last column of shifts is not in a tile; needs PARTS_Y * PARTS_X == 1, STACKED even
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif
constexpr int THREADS = 32 * WARPS;
#include "small_pair.cuh"
#include "small_search.cuh"
#include "small_near.cuh"

// Shared floats by which warps agree: on means and peaks, then their rivals and what a rival must not pass, then their sums of
// squares.
constexpr int RIVALS = SCRATCH_FLOATS, SQUARES = RIVALS + 16, KEPT_FLOATS = 96;
constexpr int SHIFT_FLOATS = SHIFTS_Y * SCORE_PITCH + 4;  // the last float4 may look for a neighbour behind

// By how much the difference of two scores may be wrong. Either factor of a product is rounded by 2^-11 of itself, so a sum by
// 2^-10 of the product of both matrices' norms; what the centres contribute, a few roundings, by much less than 2^-20 of it.
__device__ __forceinline__ float search_error(const float* squares, float peak) {
    float of_left = 0.0f, of_right = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) {
        of_left += squares[warp];
        of_right += squares[WARPS + warp];
    }
    return 0x1p-9f * sqrtf(of_left * of_right) + 0x1p-20f * fabsf(peak);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    small_hankel(const Left* lefts, const Right* rights_of_all, double* records, int rights_per_left, int rights,
                 int min_overlap_pixels) {
    SHARED_FLOATS(scratch);
    float* const centres = scratch + KEPT_FLOATS;  // then scores
    float* const rest = centres + SHIFT_FLOATS;  // tables, then fp16, then sums
    const int pair = blockIdx.x, lane = threadIdx.x % 32;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);  // the compiler learns that lanes agree
    const Left* left = lefts + (long long)(pair / rights_per_left) * (LEFT_HEIGHT * LEFT_WIDTH);
    const Right* right = rights_of_all + (long long)(pair % rights) * (RIGHT_HEIGHT * RIGHT_WIDTH);
    min_overlap_pixels = max(1, min_overlap_pixels);
    unsigned* const left_fp16 = reinterpret_cast<unsigned*>(rest);
    unsigned* const right_fp16 = left_fp16 + LEFT_ROWS * LEFT_PITCH;
    const auto use_tables = [&](const Centres& of_centres, const SmallLeft& of_left, const SmallRight& of_right) {
        const float squares = sums_of_warp(of_left.squares(), of_right.squares());
        if (lane % 16 == 0) scratch[SQUARES + lane / 16 * WARPS + warp] = squares;
        in_strips([&](int ix, int first) {
            const Centres::Column column = of_centres.column(ix);
            in_rows<STRIP_ROWS>(first, [&](int iy) {
                centres[iy * SCORE_PITCH + ix] = column.at(iy, min_overlap_pixels, MINUS_INFINITY);
            });
        });
        by_all_threads<SHIFTS_Y>([&](int iy) {
#pragma unroll
            for (int ix = SHIFTS_X; ix < 4 * VECTORS_X; ++ix) centres[iy * SCORE_PITCH + ix] = MINUS_INFINITY;
        });
    };
    const float unit = prepare_pair(left, right, scratch, rest, left_fp16, use_tables);
    {
        const int part_x = warp % PARTS_X, part_y = warp / PARTS_X % PARTS_Y, share = warp / (PARTS_X * PARTS_Y);
        const int iy = part_y * (8 * N_TILES), ix = part_x * (16 * M_TILES);
        WarpSums sum;
#pragma unroll
        for (int i = 0; i < M_TILES * N_TILES * 4; ++i) (&sum[0][0][0])[i] = 0.0f;
        multiply(left_fp16, right_fp16, FIRST_DY + iy, FIRST_DX + ix, share, lane, right_fp16[0], sum);
#if LONE_COLUMN
        float lone[LONE_SUMS];
        float* const square = rest + HALVES_FLOATS + warp * (16 * LONE_PITCH);
        sum_lone_column(left_fp16, right_fp16, square, warp, lane, lone);
#endif
        __syncthreads();
#if LONE_COLUMN
        for (int i = 0; i < LONE_SUMS; ++i)
            if (lane + 32 * i < SHIFTS_Y) rest[share * SUM_FLOATS + (lane + 32 * i) * SUM_PITCH + 16 * ALL_M] = lone[i];
#endif
        hand_over(rest + share * SUM_FLOATS + iy * SUM_PITCH + ix, sum, lane);
    }
    __syncthreads();
    const Candidate best = first_highest(centres, highest_of_quads(centres, rest), scratch);
    const int iy = best.index / SHIFTS_X, ix = best.index % SHIFTS_X;
    const float rival = highest_of_warp(rival_of_quads(centres, iy, ix));
    if (lane == 0) scratch[RIVALS + warp] = rival > MINUS_INFINITY ? rival * unit : rival;  // the unit may be zero
    const float error = search_error(scratch + SQUARES, best.value), sure = best.value - error;
    if (threadIdx.x == 0) scratch[RIVALS + WARPS] = sure > MINUS_INFINITY ? sure * unit : sure;

    double* const partial = reinterpret_cast<double*>(rest);
    double* const record = records + (long long)pair * PEAK_RECORD;
    if (ring_is_near(centres, iy, ix, error))
        write_record<5>(left, right, iy, ix, scratch + RIVALS, partial, min_overlap_pixels, record);
    else
        write_record<3>(left, right, iy, ix, scratch + RIVALS, partial, min_overlap_pixels, record);
}
