// The values around a peak of small_hankel.cu recomputed, in single precision and from the elements themselves, which
// the L2 cache still holds: 3 x 3, or 5 x 5 where one of the outer sixteen may be the higher peak. The record is that
// of near_peak.cu.
//
// A lane has neighbouring columns of right, and those of left that they overlap with, some rows of right at a time, all
// of them in flight before the first is used: for 3 x 3 sums two columns, read in pairs; otherwise four, and the
// elements of left one by one.
// Lanes reduce their sums; everything after that is added in double precision, in a fixed order.
#pragma once
#include "warp_reduce.cuh"
#include "small_search.cuh"

// Whether value i around a record's peak lies two shifts from it.
__device__ __forceinline__ bool is_in_ring(int i) { return i / PEAK_SIDE % 4 == 0 || i % PEAK_SIDE % 4 == 0; }

// Whether a score two shifts from the peak comes within `margin` of it: for all threads of the block the same.
__device__ __forceinline__ bool ring_is_near(const float* scores, int iy, int ix, float margin) {
    const int lane = threadIdx.x % 32, y = iy + lane / PEAK_SIDE - PEAK_SIDE / 2, x = ix + lane % PEAK_SIDE - PEAK_SIDE / 2;
    const bool inside = (unsigned)y < (unsigned)SHIFTS_Y && (unsigned)x < (unsigned)SHIFTS_X;
    bool near = false;
    if (lane < PEAK_SIDE * PEAK_SIDE && is_in_ring(lane) && inside)
        near = !(scores[y * SCORE_PITCH + x] < scores[iy * SCORE_PITCH + ix] - margin);  // a margin that is NaN hides none
    return __any_sync(0xffffffffu, near);
}

// A lane's share of the 5 x 5 sums around shift (dy, dx): strips of rows, four columns of right.
__device__ __forceinline__ void sum_near(const Left* left, const Right* right, int dy, int dx, Sum (&sum)[25]) {
    constexpr int ROW_LANES = SmallRight::ROW_VECTORS, SIDE = 5, STRIPS_OF_ROWS = THREADS / ROW_LANES;
    const Span ys = overlap_of_any(LEFT_HEIGHT, RIGHT_HEIGHT, dy - SIDE / 2, SIDE);
    const int strip_rows = ceil_div(max(0, ys.last - ys.first), STRIPS_OF_ROWS);
    const int first = ys.first + (int)threadIdx.x / ROW_LANES * strip_rows, last = min(ys.last, first + strip_rows);
    const int x = (int)threadIdx.x % ROW_LANES * 4, left_x = x + dx - SIDE / 2;
    const bool whole = SmallRight::is_whole(right);
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; ++i) sum[i] = 0;
#pragma unroll 1
    for (int y = first; y < last; ++y) {
        const Four of_right = SmallRight::read(right, y, x, true, whole);
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            const int row = y + j + dy - SIDE / 2;
            const unsigned width = (unsigned)row < (unsigned)LEFT_HEIGHT ? LEFT_WIDTH : 0;
            const Left* at = left + row * LEFT_WIDTH + left_x;
            Sum of_left[SIDE + 3];
#pragma unroll
            for (int k = 0; k < SIDE + 3; ++k) of_left[k] = (unsigned)(left_x + k) < width ? (Sum)at[k] : 0;
#pragma unroll
            for (int c = 0; c < 4; ++c)
#pragma unroll
                for (int k = 0; k < SIDE; ++k)
                    sum[j * SIDE + k] = multiply_add(of_left[c + k], (Sum)of_right.at[c], sum[j * SIDE + k]);
        }
    }
}

// Two neighbouring elements, which one instruction reads.
template <typename Element>
struct alignas(2 * sizeof(Element)) Two {
    Element first, second;
};
template <typename Element>
__device__ __forceinline__ bool is_even(const Element* matrix) {
    return ((unsigned long long)matrix & (alignof(Two<Element>) - 1)) == 0;
}

// How lanes share the rows of 3 x 3 sums: each has two columns of right, and batches of rows.
constexpr int PAIR_LANES = RIGHT_WIDTH <= 16 ? 8 : RIGHT_WIDTH <= 32 ? 16 : 32, PAIR_STRIPS = THREADS / PAIR_LANES;
constexpr int PAIR_ROWS = (RIGHT_HEIGHT + PAIR_STRIPS - 1) / PAIR_STRIPS, PAIR_BATCH = PAIR_ROWS < 4 ? PAIR_ROWS : 4;

// What a batch of rows, columns x and x + 1 of right, adds to the sums. row_of_left[i][FIRST] is what the first element of
// right's row i needs at the first of nine shifts.
template <int FIRST, int COUNT>
__device__ __forceinline__ void add_batch(const Sum (&row_of_left)[PAIR_BATCH + 2][COUNT],
                                          const Sum (&row_of_right)[PAIR_BATCH][2], Sum (&sum)[9]) {
#pragma unroll
    for (int i = 0; i < PAIR_BATCH; ++i)
#pragma unroll
        for (int c = 0; c < 2; ++c)
#pragma unroll
            for (int j = 0; j < 3; ++j)
#pragma unroll
                for (int k = 0; k < 3; ++k)
                    sum[j * 3 + k] = multiply_add(row_of_left[i + j][FIRST + c + k], row_of_right[i][c], sum[j * 3 + k]);
}

// All rows lie inside both matrices, and pairs of both lie evenly: the columns of left begin with the first element of a
// pair, or, if FIRST is 1, with its second. `left`, `right`: at the batch's first row and the lane's first pair.
template <int FIRST>
__device__ __forceinline__ void add_whole_batch(const Left* left, const Right* right, int left_x, bool has_right,
                                                Sum (&sum)[9]) {
    Two<Right> two_of_right[PAIR_BATCH];
    Two<Left> two_of_left[PAIR_BATCH + 2][2 + FIRST];
#pragma unroll
    for (int i = 0; i < PAIR_BATCH; ++i) {
        two_of_right[i] = {0, 0};
        if (has_right) two_of_right[i] = *reinterpret_cast<const Two<Right>*>(right + i * RIGHT_WIDTH);
    }
#pragma unroll
    for (int i = 0; i < PAIR_BATCH + 2; ++i)
#pragma unroll
        for (int k = 0; k < 2 + FIRST; ++k) {
            two_of_left[i][k] = {0, 0};
            if ((unsigned)(left_x + 2 * k) < (unsigned)LEFT_WIDTH)
                two_of_left[i][k] = *reinterpret_cast<const Two<Left>*>(left + i * LEFT_WIDTH + 2 * k);
        }
    Sum row_of_left[PAIR_BATCH + 2][4 + 2 * FIRST], row_of_right[PAIR_BATCH][2];
#pragma unroll
    for (int i = 0; i < PAIR_BATCH; ++i) {
        row_of_right[i][0] = (Sum)two_of_right[i].first;
        row_of_right[i][1] = (Sum)two_of_right[i].second;
    }
#pragma unroll
    for (int i = 0; i < PAIR_BATCH + 2; ++i)
#pragma unroll
        for (int k = 0; k < 2 + FIRST; ++k) {
            row_of_left[i][2 * k] = (Sum)two_of_left[i][k].first;
            row_of_left[i][2 * k + 1] = (Sum)two_of_left[i][k].second;
        }
    add_batch<FIRST>(row_of_left, row_of_right, sum);
}

// Any rows from y on, before `last`.
__device__ __forceinline__ void add_any_batch(const Left* left, const Right* right, int y, int last, int x, int dy, int dx,
                                              Sum (&sum)[9]) {
    Sum row_of_left[PAIR_BATCH + 2][4], row_of_right[PAIR_BATCH][2];
#pragma unroll
    for (int i = 0; i < PAIR_BATCH; ++i)
#pragma unroll
        for (int c = 0; c < 2; ++c)
            row_of_right[i][c] = y + i < last && x + c < RIGHT_WIDTH ? (Sum)right[(y + i) * RIGHT_WIDTH + x + c] : 0;
#pragma unroll
    for (int i = 0; i < PAIR_BATCH + 2; ++i) {
        const int row = y + i + dy - 1, left_x = x + dx - 1;
        const unsigned width = (unsigned)row < (unsigned)LEFT_HEIGHT ? LEFT_WIDTH : 0;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            row_of_left[i][k] = (unsigned)(left_x + k) < width ? (Sum)left[row * LEFT_WIDTH + left_x + k] : 0;
    }
    add_batch<0>(row_of_left, row_of_right, sum);
}

// A lane's share of the 3 x 3 sums around shift (dy, dx). Few batches touch the first or last rows; the others need no checks.
__device__ __forceinline__ void sum_nearest(const Left* left, const Right* right, int dy, int dx, Sum (&sum)[9]) {
    const Span ys = overlap_of_any(LEFT_HEIGHT, RIGHT_HEIGHT, dy - 1, 3);
    const int x = (int)threadIdx.x % PAIR_LANES * 2, odd = (dx - 1) & 1, left_x = x + dx - 1 - odd;
    const bool evenly = LEFT_WIDTH % 2 == 0 && RIGHT_WIDTH % 2 == 0 && is_even(left) && is_even(right);
#pragma unroll
    for (int i = 0; i < 9; ++i) sum[i] = 0;
#pragma unroll 1
    for (int y = ys.first + (int)threadIdx.x / PAIR_LANES * PAIR_BATCH; y < ys.last; y += PAIR_STRIPS * PAIR_BATCH) {
        const bool inside = y + dy - 1 >= 0 && y + dy + PAIR_BATCH < LEFT_HEIGHT && y + PAIR_BATCH <= ys.last;
        const Left* of_left = left + (y + dy - 1) * LEFT_WIDTH + left_x;
        const Right* of_right = right + y * RIGHT_WIDTH + x;
        if (!inside || !evenly)
            add_any_batch(left, right, y, ys.last, x, dy, dx, sum);
        else if (odd)
            add_whole_batch<1>(of_left, of_right, left_x, x < RIGHT_WIDTH, sum);
        else
            add_whole_batch<0>(of_left, of_right, left_x, x < RIGHT_WIDTH, sum);
    }
}

// Whether a shift of the window has elements enough.
__device__ __forceinline__ bool counts(int iy, int ix, int min_overlap_pixels) {
    const Span ys = overlap(LEFT_HEIGHT, RIGHT_HEIGHT, FIRST_DY + iy), xs = overlap(LEFT_WIDTH, RIGHT_WIDTH, FIRST_DX + ix);
    const int rows = ys.last - ys.first, columns = xs.last - xs.first;
    const bool inside = (unsigned)iy < (unsigned)SHIFTS_Y && (unsigned)ix < (unsigned)SHIFTS_X;
    return inside && rows > 0 && columns > 0 && rows * columns >= min_overlap_pixels;
}

// Writes the record of the peak at (iy, ix), with the SIDE x SIDE values around it. `partial` has room for those of all warps;
// `rivals` holds theirs, and then the score above which a rival may be the better peak.
template <int SIDE>
__device__ __forceinline__ void write_record(const Left* left, const Right* right, int iy, int ix, const float* rivals,
                                             double* partial, int min_overlap_pixels, double* record) {
    constexpr int VALUES = SIDE * SIDE;
    typedef WarpReduce<VALUES, 16> Reduced;
    const int lane = threadIdx.x % 32;
    Sum sum[VALUES];
    const int dy = FIRST_DY + iy, dx = FIRST_DX + ix;
    if constexpr (SIDE == 3)
        sum_nearest(left, right, dy, dx, sum);
    else
        sum_near(left, right, dy, dx, sum);
    Reduced::run(sum, lane);
#pragma unroll
    for (int i = 0; i < Reduced::KEPT; ++i) {
        const int index = Reduced::index(i, lane);
        if (index >= 0) partial[threadIdx.x / 32 * VALUES + index] = (double)sum[i];
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const int down = lane / PEAK_SIDE - PEAK_SIDE / 2, across = lane % PEAK_SIDE - PEAK_SIDE / 2;
    const bool has = lane < PEAK_SIDE * PEAK_SIDE && (SIDE == PEAK_SIDE || !is_in_ring(lane));
    double value = NOT_A_NUMBER;
    if (has && counts(iy + down, ix + across, min_overlap_pixels)) {
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
    const bool sure = rival <= rivals[WARPS];  // not where that is no number
    record[0] = better || !sure ? -1 - iy : iy;
    record[1] = ix;
    record[2] = peak;
    record[3] = rival;
}
