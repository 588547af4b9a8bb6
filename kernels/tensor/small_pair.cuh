// A pair of small matrices made ready for products on tensor cores: summed-area tables, and fp16 in shared memory.
#pragma once
#include "small_matrix.cuh"
#include "small_product.cuh"
#include "small_summed_area.cuh"
#include "small_scale.cuh"

// What the centres contribute takes the sums of either matrix over the elements that overlap. Seen from its last element, the
// right's part of an overlap is the left's, where both have the same size: one table holds the sums of both.
constexpr bool ONE_TABLE = LEFT_HEIGHT == RIGHT_HEIGHT && LEFT_WIDTH == RIGHT_WIDTH && LEFT_WIDTH % 4 == 0;
typedef SmallMatrix<Left, LEFT_HEIGHT, LEFT_WIDTH, false> SmallLeft;
typedef SmallMatrix<Right, RIGHT_HEIGHT, RIGHT_WIDTH, ONE_TABLE> SmallRight;
typedef Rectangles<LEFT_HEIGHT, LEFT_WIDTH> LeftTable;
typedef Rectangles<RIGHT_HEIGHT, RIGHT_WIDTH> RightTable;

constexpr int SCRATCH_FLOATS = 64;  // by which warps agree
static_assert(WARPS <= 8, "two double sums and four floats of each fit");
constexpr int LEFT_TABLE_FLOATS = LeftTable::TABLE_FLOATS + LeftTable::TOTALS_FLOATS;
constexpr int RIGHT_TABLE_FLOATS = ONE_TABLE ? 0 : RightTable::TABLE_FLOATS + RightTable::TOTALS_FLOATS;
constexpr int TABLES_FLOATS = LEFT_TABLE_FLOATS + RIGHT_TABLE_FLOATS;

// How threads share the window: each takes a strip of rows of a column of shifts. What it needs from row to row is a fixed
// distance away.
constexpr int STRIPS = SHIFTS_X < THREADS ? THREADS / SHIFTS_X : 1, STRIP_ROWS = (SHIFTS_Y + STRIPS - 1) / STRIPS;

// visit(ix, first): rows [first, first + STRIP_ROWS) of column ix of the window.
template <typename Visit>
__device__ __forceinline__ void in_strips(const Visit& visit) {
    const int strip = (int)threadIdx.x / SHIFTS_X, first = strip * STRIP_ROWS;
    if (strip >= STRIPS || first >= SHIFTS_Y) return;
    for (int ix = (int)threadIdx.x - strip * SHIFTS_X; ix < SHIFTS_X; ix += THREADS) visit(ix, first);
}

// visit(first), ..., visit(first + ROWS - 1), as far as the window has these rows.
template <int ROWS, typename Visit>
__device__ __forceinline__ void in_rows(int first, const Visit& visit) {
#pragma unroll 4
    for (int i = 0; i < ROWS; ++i)
        if (SHIFTS_Y % ROWS == 0 || first + i < SHIFTS_Y) visit(first + i);
}

// What the centres contribute to plain sums, as the products are those of centred elements; in the units of the products.
struct Centres {
    const float *left_table, *right_table;  // of values multiplied by the other matrix's centre
    float product;  // of both centres

    // Of all shifts along one column. Rows and columns that no overlap has are clamped, so that all tables can be read at once.
    struct Column {
        const float *left_first, *left_last, *right_first, *right_last;  // columns between which they overlap
        float all, product;  // all: of all rows, where there is one table
        int columns;

        // Of a shift at which fewer elements overlap, `otherwise`. The least overlap is one at least.
        __device__ __forceinline__ float at(int iy, int min_overlap_pixels, float otherwise) const {
            const int dy = FIRST_DY + iy;
            int rows;
            float sum;
            if (ONE_TABLE) {
                // Rows from dy on, or before the height and dy: the other end is the matrix's.
                const int end = clamp(dy > 0 ? dy : LEFT_HEIGHT + dy, LEFT_HEIGHT);
                const float before = LeftTable::above(left_first, left_last, end);
                rows = dy > 0 ? LEFT_HEIGHT - end : end;
                sum = dy > 0 ? all - before : before;
            } else {
                const int top = clamp(-dy, RIGHT_HEIGHT), bottom = clamp(LEFT_HEIGHT - dy, RIGHT_HEIGHT);
                const int left_top = clamp(dy, LEFT_HEIGHT), left_bottom = clamp(RIGHT_HEIGHT + dy, LEFT_HEIGHT);
                rows = bottom - top;
                sum = RightTable::above(right_first, right_last, bottom) - RightTable::above(right_first, right_last, top) +
                      LeftTable::above(left_first, left_last, left_bottom) -
                      LeftTable::above(left_first, left_last, left_top);
            }
            const int elements = rows * columns;
            return elements < min_overlap_pixels ? otherwise : sum + (float)elements * product;
        }
    };
    static __device__ __forceinline__ int clamp(int at, int size) { return min(max(at, 0), size); }
    __device__ __forceinline__ Column column(int ix) const {
        const int dx = FIRST_DX + ix, first = clamp(-dx, RIGHT_WIDTH), last = clamp(LEFT_WIDTH - dx, RIGHT_WIDTH);
        const float* of_left = left_table + clamp(dx, LEFT_WIDTH);
        const int columns = max(0, last - first);
        const float all = ONE_TABLE ? LeftTable::above(of_left, of_left + columns, LEFT_HEIGHT) : 0.0f;
        return {of_left, of_left + columns, right_table + first, right_table + first + columns, all, product, columns};
    }
};

// Centre and factor of both matrices, and their elements scaled. A barrier lies within.
__device__ __forceinline__ void scale_both(SmallLeft& left, SmallRight& right, float* scratch) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    double* const sums = reinterpret_cast<double*>(scratch);  // of each warp: lefts, then rights
    float* const highest = scratch + SCRATCH_FLOATS / 2;  // the same of the highest, then of the highest negatives
    const double sum = sums_of_warp((double)left.sum(), (double)right.sum());
    const float max_positive = highest_of_both(left.highest<false>(), right.highest<false>());
    const float max_negative = highest_of_both(left.highest<true>(), right.highest<true>());
    const int place = lane / 16 * WARPS + warp;
    if (lane % 16 == 0) {
        sums[place] = sum;
        highest[place] = max_positive;
        highest[2 * WARPS + place] = max_negative;
    }
    __syncthreads();
    scale_by_all_warps(left, sums, highest, highest + 2 * WARPS);
    scale_by_all_warps(right, sums + WARPS, highest + WARPS, highest + 3 * WARPS);
}

// Leaves fp16 copies of both matrices in `fp16`, right behind left, and returns what a sum of their products is to be
// multiplied by. use(centres, left, right) is called while the tables are whole; the fp16 may lie in their place. Every thread
// of the block calls it; a barrier follows the last store.
template <typename Use>
__device__ __forceinline__ float prepare_pair(const Left* left, const Right* right, float* scratch, float* tables,
                                              unsigned* fp16, const Use& use) {
    SmallLeft of_left(left);
    SmallRight of_right(right);
    scale_both(of_left, of_right, scratch);
    const float left_centre = of_left.centre * of_left.factor, right_centre = of_right.centre * of_right.factor;
    float* const right_table = ONE_TABLE ? tables : tables + LEFT_TABLE_FLOATS;
    const auto value_of_left = [&](int j) {
        Four value = of_left.vector[j];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            value.at[i] *= right_centre;
            if (ONE_TABLE) value.at[i] = fmaf(of_right.vector[j < SmallRight::COUNT ? j : 0].at[3 - i], left_centre, value.at[i]);
        }
        return value;
    };
    const auto value_of_right = [&](int j) {
        Four value = of_right.vector[j];
#pragma unroll
        for (int i = 0; i < 4; ++i) value.at[i] *= left_centre;
        return value;
    };
    LeftTable of_left_table;
    float* const left_totals = tables + LeftTable::TABLE_FLOATS;
    of_left_table.add_down(left_totals, value_of_left);
    __syncthreads();
    of_left_table.add_above(left_totals);
    of_left_table.keep(tables, value_of_left);
    if constexpr (!ONE_TABLE) {
        RightTable of_right_table;
        float* const right_totals = right_table + RightTable::TABLE_FLOATS;
        of_right_table.add_down(right_totals, value_of_right);
        __syncthreads();
        of_right_table.add_above(right_totals);
        of_right_table.keep(right_table, value_of_right);
    }
    __syncthreads();
    use(Centres{tables, right_table, left_centre * right_centre}, of_left, of_right);
    __syncthreads();

    unsigned* const right_fp16 = fp16 + LEFT_ROWS * LEFT_PITCH;
    const FourWords zero = {{0, 0, 0, 0}};
    by_all_threads<(LEFT_ROWS - LEFT_HEIGHT) * (LEFT_PITCH / 4)>(
        [&](int i) { reinterpret_cast<FourWords*>(fp16 + LEFT_HEIGHT * LEFT_PITCH)[i] = zero; });
    by_all_threads<(ABOVE + BELOW) * (RIGHT_PITCH / 4)>([&](int i) {
        const int below = i < ABOVE * (RIGHT_PITCH / 4) ? 0 : RIGHT_HEIGHT * (RIGHT_PITCH / 4);
        reinterpret_cast<FourWords*>(right_fp16)[i + below] = zero;
    });
    of_left.template keep_neighbours<ORIGIN, LEFT_PITCH>(fp16);
    of_right.template keep_pairs<(STEPS_K + 1) / 2 * 32>(right_fp16 + ABOVE * RIGHT_PITCH, RIGHT_PITCH);
    __syncthreads();
    return of_left.unit * of_right.unit;
}
