// The contribution of the centres to the plain sums of small matrices (products are those of centred elements), added
// as a warp writes its tile of 8 dy and all dx from registers: runs of eight floats of a row, immediately followed by
// the rest of the row.
#pragma once
#include "small_matrix.cuh"
#include "small_plane_product.cuh"
#include "small_summed_area.cuh"

typedef SmallMatrix<Left, LEFT_HEIGHT, LEFT_WIDTH, false> SmallLeft;
typedef SmallMatrix<Right, RIGHT_HEIGHT, RIGHT_WIDTH, false> SmallRight;
typedef Rectangles<LEFT_HEIGHT, LEFT_WIDTH> LeftTable;
typedef Rectangles<RIGHT_HEIGHT, RIGHT_WIDTH> RightTable;
constexpr int LEFT_TABLE_FLOATS = LeftTable::FLOATS_IN_PLACE, RIGHT_TABLE_FLOATS = RightTable::FLOATS_IN_PLACE;

__device__ __forceinline__ int clamp(int at, int size) { return min(max(at, 0), size); }
// `at` lies in [low, high], which the compiler knows.
__device__ __forceinline__ int clamp(int at, int low, int high, int size) {
    return high <= 0 ? 0 : low >= size ? size : low >= 0 && high <= size ? at : clamp(at, size);
}

// Sums of the rows [top, bottom) of a matrix, over its first so many columns.
template <typename Table, int WIDTH>
struct RowSums {
    const float *above, *below;
    float whole;  // over all columns

    __device__ __forceinline__ void begin(const float* table, int top, int bottom) {
        above = table + (3 + top * Table::PITCH);
        below = table + (3 + bottom * Table::PITCH);
        whole = below[WIDTH] - above[WIDTH];
    }
    // Over clamp(at, WIDTH) columns; `at` lies in [low, high], which the compiler knows: often nothing is to be read.
    __device__ __forceinline__ float until(int at, int low, int high) const {
        if (high <= 0) return 0.0f;
        if (low >= WIDTH) return whole;
        const int column = clamp(at, low, high, WIDTH);
        return below[column] - above[column];
    }
};

// The centres of a left and of the rights that it is paired with, and what sums of products of their fp16 are to be
// multiplied by.
struct Centres {
    float left, right[RIGHTS], unit[RIGHTS];
};

// Writes rows iy to iy + 7 of the planes of `count` rights, as many as there are from `first_row` on. Tables: of left, then of
// the rights.
__device__ __forceinline__ void write_tile(float* planes, const float* tables, const Centres& centres, const WarpSums& sum,
                                           int first_iy, int count, int lane) {
    const int group = lane / 4;
#pragma unroll
    for (int parity = 0; parity < 2; ++parity) {
        const int iy = first_iy + lane % 4 * 2 + parity, dy = FIRST_DY + iy;
        if (iy >= SHIFTS_Y) break;
        const int top = clamp(-dy, RIGHT_HEIGHT), bottom = clamp(LEFT_HEIGHT - dy, RIGHT_HEIGHT);
        const float rows = (float)(bottom - top);
        RowSums<LeftTable, LEFT_WIDTH> left;
        RowSums<RightTable, RIGHT_WIDTH> right[RIGHTS];
        left.begin(tables, clamp(dy, LEFT_HEIGHT), clamp(RIGHT_HEIGHT + dy, LEFT_HEIGHT));
#pragma unroll
        for (int r = 0; r < RIGHTS; ++r)
            right[r].begin(tables + LEFT_TABLE_FLOATS + r * RIGHT_TABLE_FLOATS, top, bottom);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int x = 16 * m + 8 * half, low = FIRST_DX + x, high = low + 7, dx = low + group, ix = x + group;
                if (x >= SHIFTS_X) continue;
                const float of_left = left.until(RIGHT_WIDTH + dx, RIGHT_WIDTH + low, RIGHT_WIDTH + high) -
                                      left.until(dx, low, high);
                const int columns = clamp(LEFT_WIDTH - dx, LEFT_WIDTH - high, LEFT_WIDTH - low, RIGHT_WIDTH) -
                                    clamp(-dx, -high, -low, RIGHT_WIDTH);
                const float with_left = of_left + rows * (float)columns * centres.left;
#pragma unroll
                for (int r = 0; r < RIGHTS; ++r) {
                    const float of_right = right[r].until(LEFT_WIDTH - dx, LEFT_WIDTH - high, LEFT_WIDTH - low) -
                                           right[r].until(-dx, -high, -low);
                    const float of_centres = centres.left * of_right + centres.right[r] * with_left;
                    const float value = of_centres + sum[m][r][parity + 2 * half] * centres.unit[r];
                    if ((x + 7 < SHIFTS_X || ix < SHIFTS_X) && (r == 0 || r < count))
                        planes[r * (SHIFTS_Y * SHIFTS_X) + iy * SHIFTS_X + ix] = value;
                }
            }
    }
}
