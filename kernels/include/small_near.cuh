// The values around a peak of small_hankel.cu made anew, in single precision and from the elements themselves, which the L2
// cache still holds: 3 x 3, or 5 x 5 where one of the outer sixteen may be the better peak. The record is that of near_peak.cu.
//
// A lane has four columns of right and of left those that they meet, BATCH rows of right at a time, all of them on their way
// before the first is used. Lanes fold their sums; what follows is added in double precision, in a fixed order.
#pragma once
#include "fold.cuh"
#include "peak.cuh"
#include "small_pair.cuh"

// Whether value i around a record's peak lies two shifts from it.
__device__ __forceinline__ bool is_in_ring(int i) { return i / PEAK_SIDE % 4 == 0 || i % PEAK_SIDE % 4 == 0; }

// Whether a score two shifts from the peak comes within `margin` of it: for all threads of the block the same.
__device__ __forceinline__ bool ring_is_near(const float* scores, int iy, int ix, float margin) {
    const int lane = threadIdx.x % 32, y = iy + lane / PEAK_SIDE - PEAK_SIDE / 2, x = ix + lane % PEAK_SIDE - PEAK_SIDE / 2;
    const bool inside = (unsigned)y < (unsigned)SHIFTS_Y && (unsigned)x < (unsigned)SHIFTS_X;
    bool near = false;
    if (lane < PEAK_SIDE * PEAK_SIDE && is_in_ring(lane) && inside)
        near = !(scores[y * SHIFTS_X + x] < scores[iy * SHIFTS_X + ix] - margin);  // a margin that is NaN hides none
    return __any_sync(0xffffffffu, near);
}

// A lane's share of the sums around shift (dy, dx).
template <int SIDE>
__device__ __forceinline__ void sum_near(const Left* left, const Right* right, int dy, int dx, Sum (&sum)[SIDE * SIDE]) {
    constexpr int ROW_LANES = SmallRight::ROW_QUADS, OWN = 4, SPAN = OWN + SIDE - 1, STRIPS_OF_ROWS = THREADS / ROW_LANES;
    constexpr int MOST_ROWS = (RIGHT_HEIGHT + STRIPS_OF_ROWS - 1) / STRIPS_OF_ROWS, HELD = SIDE == 3 ? 4 : 1;
    constexpr int BATCH = MOST_ROWS < HELD ? MOST_ROWS : HELD;
    const Span ys = overlap_of_any(LEFT_HEIGHT, RIGHT_HEIGHT, dy - SIDE / 2, SIDE);
    const int strip_rows = ceil_div(most(0, ys.last - ys.first), STRIPS_OF_ROWS);
    const int first = ys.first + (int)threadIdx.x / ROW_LANES * strip_rows, last = least(ys.last, first + strip_rows);
    const int x = (int)threadIdx.x % ROW_LANES * OWN, left_x = x + dx - SIDE / 2;
    const bool whole = SmallRight::is_whole(right);
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; ++i) sum[i] = 0;
#pragma unroll 1
    for (int y = first; y < last; y += BATCH) {
        Four of_right[BATCH];
        Sum of_left[BATCH + SIDE - 1][SPAN];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) of_right[i] = SmallRight::read(right, y + i, x, y + i < last, whole);
#pragma unroll
        for (int i = 0; i < BATCH + SIDE - 1; ++i) {
            const int row = y + i + dy - SIDE / 2;
            const unsigned width = (unsigned)row < (unsigned)LEFT_HEIGHT ? LEFT_WIDTH : 0;
            const Left* at = left + row * LEFT_WIDTH + left_x;
#pragma unroll
            for (int k = 0; k < SPAN; ++k) of_left[i][k] = (unsigned)(left_x + k) < width ? (Sum)at[k] : 0;
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i)
#pragma unroll
            for (int c = 0; c < OWN; ++c)
#pragma unroll
                for (int j = 0; j < SIDE; ++j)
#pragma unroll
                    for (int k = 0; k < SIDE; ++k)
                        sum[j * SIDE + k] = multiply_add(of_left[i + j][c + k], (Sum)of_right[i].at[c], sum[j * SIDE + k]);
    }
}

// Whether a shift of the window has elements enough.
__device__ __forceinline__ bool counts(int iy, int ix, int least_overlap) {
    const Span ys = overlap(LEFT_HEIGHT, RIGHT_HEIGHT, FIRST_DY + iy), xs = overlap(LEFT_WIDTH, RIGHT_WIDTH, FIRST_DX + ix);
    const int rows = ys.last - ys.first, columns = xs.last - xs.first;
    const bool inside = (unsigned)iy < (unsigned)SHIFTS_Y && (unsigned)ix < (unsigned)SHIFTS_X;
    return inside && rows > 0 && columns > 0 && rows * columns >= least_overlap;
}

// Writes the record of the peak at (iy, ix), with the SIDE x SIDE values around it. `partial` has room for those of all warps;
// `rivals` holds theirs.
template <int SIDE>
__device__ __forceinline__ void write_record(const Left* left, const Right* right, int iy, int ix, const float* rivals,
                                             double* partial, int least_overlap, double* record) {
    constexpr int VALUES = SIDE * SIDE;
    typedef Fold<VALUES, 16> Folded;
    const int lane = threadIdx.x % 32;
    Sum sum[VALUES];
    sum_near<SIDE>(left, right, FIRST_DY + iy, FIRST_DX + ix, sum);
    Folded::run(sum, lane);
#pragma unroll
    for (int i = 0; i < Folded::KEPT; ++i) {
        const int index = Folded::index(i, lane);
        if (index >= 0) partial[threadIdx.x / 32 * VALUES + index] = (double)sum[i];
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const int down = lane / PEAK_SIDE - PEAK_SIDE / 2, across = lane % PEAK_SIDE - PEAK_SIDE / 2;
    const bool has = lane < PEAK_SIDE * PEAK_SIDE && (SIDE == PEAK_SIDE || !is_in_ring(lane));
    double value = NOT_A_NUMBER;
    if (has && counts(iy + down, ix + across, least_overlap)) {
        value = 0;
        for (int warp = 0; warp < WARPS; ++warp)
            value += partial[warp * VALUES + (down + SIDE / 2) * SIDE + across + SIDE / 2];
    }
    const double peak = __shfl_sync(0xffffffffu, value, PEAK_SIDE * PEAK_SIDE / 2);
    // Of equal values the first counts.
    const bool is_better = value > peak || (value == peak && lane < PEAK_SIDE * PEAK_SIDE / 2);
    const bool better = __any_sync(0xffffffffu, is_better);
    if (lane < PEAK_SIDE * PEAK_SIDE) record[4 + lane] = value;
    if (lane > 0) return;
    float rival = rivals[0];
    for (int warp = 1; warp < WARPS; ++warp) rival = fmaxf(rival, rivals[warp]);
    record[0] = better ? -1 - iy : iy;
    record[1] = ix;
    record[2] = peak;
    record[3] = rival;
}
