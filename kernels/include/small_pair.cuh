// A pair of small matrices made ready for products on tensor cores: tables of rectangle sums, and halves in shared memory.
#pragma once
#include "small_matrix.cuh"
#include "small_product.cuh"

typedef SmallMatrix<Left, LEFT_HEIGHT, LEFT_WIDTH> SmallLeft;
typedef SmallMatrix<Right, RIGHT_HEIGHT, RIGHT_WIDTH> SmallRight;

constexpr int SCRATCH_FLOATS = 64;  // by which warps agree
static_assert(WARPS <= 8, "two double sums and two floats of each fit");
constexpr int TABLES_FLOATS = SmallLeft::TABLE_FLOATS + SmallRight::TABLE_FLOATS;

// How threads share the window: each takes a strip of rows of a column of shifts. What it needs from row to row is a fixed
// distance away.
constexpr int STRIPS = SHIFTS_X < THREADS ? THREADS / SHIFTS_X : 1, STRIP_ROWS = (SHIFTS_Y + STRIPS - 1) / STRIPS;

// visit(ix, first, last): rows [first, last) of column ix of the window.
template <typename Visit>
__device__ __forceinline__ void in_strips(const Visit& visit) {
    const int strip = (int)threadIdx.x / SHIFTS_X, first = strip * STRIP_ROWS, last = least(SHIFTS_Y, first + STRIP_ROWS);
    if (strip >= STRIPS || first >= last) return;
    for (int ix = (int)threadIdx.x - strip * SHIFTS_X; ix < SHIFTS_X; ix += THREADS) visit(ix, first, last);
}

// What the centres contribute to plain sums, as the products are those of centred elements.
struct Centres {
    const float *left_table, *right_table;
    float left, right;

    // Of all shifts along one column. Rows and columns that no overlap has are clamped, so that all tables can be read at once.
    struct Column {
        const float *left_first, *left_last, *right_first, *right_last;  // columns between which they overlap
        float left, right;
        int columns;

        // Of a shift at which fewer elements overlap, `otherwise`. The least overlap is one at least.
        __device__ __forceinline__ float at(int iy, int least_overlap, float otherwise) const {
            const int dy = FIRST_DY + iy;
            const int top = clamp(-dy, RIGHT_HEIGHT), bottom = clamp(LEFT_HEIGHT - dy, RIGHT_HEIGHT);
            const float of_right = SmallRight::within(right_first, right_last, top, bottom);
            const float of_left =
                SmallLeft::within(left_first, left_last, clamp(dy, LEFT_HEIGHT), clamp(RIGHT_HEIGHT + dy, LEFT_HEIGHT));
            const int elements = (bottom - top) * columns;
            const float sum = left * of_right + right * (of_left + (float)elements * left);
            return elements < least_overlap ? otherwise : sum;
        }
    };
    static __device__ __forceinline__ int clamp(int at, int size) { return least(most(at, 0), size); }
    __device__ __forceinline__ Column column(int ix) const {
        const int dx = FIRST_DX + ix, first = clamp(-dx, RIGHT_WIDTH), last = clamp(LEFT_WIDTH - dx, RIGHT_WIDTH);
        const float* of_left = left_table + clamp(dx, LEFT_WIDTH);
        const int columns = most(0, last - first);
        return {of_left, of_left + columns, right_table + first, right_table + first + columns, left, right, columns};
    }
};

// Leaves halves of both matrices in `halves`, right behind left, and returns what a sum of their products is to be multiplied
// by. use(centres, left, right) is called while the tables are whole; the halves may lie in their place. Every thread of the
// block calls it; a barrier follows the last store.
template <typename Use>
__device__ __forceinline__ float prepare_pair(const Left* left, const Right* right, float* scratch, float* tables,
                                              unsigned* halves, const Use& use) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    SmallLeft of_left(left);
    SmallRight of_right(right);
    double* const of_warps = reinterpret_cast<double*>(scratch);
    const double left_sum = of_left.sum_of_warp(), right_sum = of_right.sum_of_warp();
    if (lane == 0) {
        of_warps[warp] = left_sum;
        of_warps[WARPS + warp] = right_sum;
    }
    __syncthreads();
    of_left.subtract_mean(of_warps);
    of_right.subtract_mean(of_warps + WARPS);
    float* const furthest = scratch + SCRATCH_FLOATS / 2;
    const float left_furthest = of_left.furthest_of_warp(), right_furthest = of_right.furthest_of_warp();
    if (lane == 0) {
        furthest[warp] = left_furthest;
        furthest[WARPS + warp] = right_furthest;
    }

    float* const right_table = tables + SmallLeft::TABLE_FLOATS;
    of_left.sum_rows(tables);
    of_right.sum_rows(right_table);
    __syncthreads();
    of_left.set_factor(furthest);
    of_right.set_factor(furthest + WARPS);
    for (int i = threadIdx.x; i < LEFT_WIDTH + RIGHT_WIDTH; i += THREADS) {
        if (i < LEFT_WIDTH)
            SmallLeft::sum_column(tables, i);
        else
            SmallRight::sum_column(right_table, i - LEFT_WIDTH);
    }
    __syncthreads();
    use(Centres{tables, right_table, of_left.centre, of_right.centre}, of_left, of_right);
    __syncthreads();

    const FourWords zero = {{0, 0, 0, 0}};
    for (int i = threadIdx.x; i < HALVES_FLOATS / 4; i += THREADS) reinterpret_cast<FourWords*>(halves)[i] = zero;
    __syncthreads();
    of_left.keep_neighbours(halves, LEFT_PITCH, ORIGIN);
    of_right.keep_pairs(halves + (LEFT_ROWS * LEFT_PITCH + ABOVE * RIGHT_PITCH), RIGHT_PITCH);
    __syncthreads();
    return of_left.unit * of_right.unit;
}
