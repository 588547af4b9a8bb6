// A small matrix on its way through a block: held in registers as it came from memory, brought into half precision
// (value -> (value - centre) * factor), and summed up over all rectangles that begin in its first corner.
//
// A thread holds quads of one place in a row, THREADS / ROW_QUADS rows apart; lanes that follow each other hold quads that do.
// The centre is the mean, a whole number for integers. The factor is the power of two that brings the value furthest from it
// to [2^14, 2^15): no half overflows, and whole numbers of up to 11 bits around the centre stay exact.
// Sizes are known to the compiler; rows have at most 128 elements.
#pragma once
#include "problem.cuh"
#include "tile.cuh"
#define COLUMNS 4
#include "quad.cuh"
#include "half_product.cuh"
#include "zncc.cuh"

struct __align__(16) FourWords {
    unsigned at[4];
};
struct __align__(8) TwoWords {
    unsigned first, second;
};

template <typename Element, int HEIGHT, int WIDTH>
struct SmallMatrix {
    static constexpr int ROW_QUADS = WIDTH <= 16 ? 4 : WIDTH <= 32 ? 8 : WIDTH <= 64 ? 16 : 32;
    static constexpr int STRIDE = THREADS / ROW_QUADS;  // rows between the quads of a thread
    static constexpr int COUNT = (HEIGHT + STRIDE - 1) / STRIDE;
    static constexpr int TABLE_PITCH = (WIDTH + 3) / 4 * 4 + 4, TABLE_FLOATS = (HEIGHT + 1) * TABLE_PITCH;

    Four quad[COUNT];  // elements, less the centre once that is known; zero outside the matrix
    int first_row, x;
    float centre, factor, unit;  // unit: 1 / factor

    __device__ __forceinline__ bool has(int row, int column) const {
        return (HEIGHT % STRIDE == 0 || row < HEIGHT) && (WIDTH == 4 * ROW_QUADS || column < WIDTH);
    }
    static __device__ __forceinline__ bool is_whole(const Element* matrix) { return WIDTH % 4 == 0 && is_aligned(matrix); }
    // Four elements of a row from x on, which a quad holds if `whole`; zero where the matrix has none, or unless `wanted`.
    static __device__ __forceinline__ Four read(const Element* matrix, int row, int x, bool wanted, bool whole) {
        const Element* from = matrix + row * WIDTH + x;
        Quad<Element> read = {{0, 0, 0, 0}};
        if (whole) {
            if (wanted && (WIDTH == 4 * ROW_QUADS || x < WIDTH)) read = *reinterpret_cast<const Quad<Element>*>(from);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (wanted && (WIDTH == 4 * ROW_QUADS || x + i < WIDTH)) read.at[i] = from[i];
        }
        Four four;
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = (float)read.at[i];
        return four;
    }
    __device__ __forceinline__ SmallMatrix(const Element* matrix)
        : first_row((int)threadIdx.x / ROW_QUADS), x((int)threadIdx.x % ROW_QUADS * 4) {
        const bool whole = is_whole(matrix);
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const int row = first_row + j * STRIDE;
            quad[j] = read(matrix, row, x, HEIGHT % STRIDE == 0 || row < HEIGHT, whole);
        }
    }
    // Of the elements that the warp holds; the same in all its lanes.
    __device__ __forceinline__ double sum_of_warp() const {
        float own = 0.0f;
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) own += quad[j].at[i];
        double sum = own;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        return sum;
    }
    __device__ __forceinline__ void subtract_mean(const double* sums_of_warps) {
        double sum = 0.0;
        for (int warp = 0; warp < THREADS / 32; ++warp) sum += sums_of_warps[warp];
        const double mean = sum * (1.0 / (HEIGHT * WIDTH));
        centre = (float)(IsFloat<Element>::VALUE ? mean : rint(mean));
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (has(first_row + j * STRIDE, x + i)) quad[j].at[i] -= centre;
    }
    // Of the elements that the warp holds, how far one lies from the centre.
    __device__ __forceinline__ float furthest_of_warp() const {
        float furthest = 0.0f;
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) furthest = fmaxf(furthest, fabsf(quad[j].at[i]));
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            furthest = fmaxf(furthest, __shfl_xor_sync(0xffffffffu, furthest, distance));
        return furthest;
    }
    __device__ __forceinline__ void set_factor(const float* furthest_of_warps) {
        float furthest = 0.0f;
        for (int warp = 0; warp < THREADS / 32; ++warp) furthest = fmaxf(furthest, furthest_of_warps[warp]);
        const int exponent = (int)(__float_as_uint(furthest) >> 23) - 127;
        const bool usable = exponent > -100 && exponent < 128;  // a constant matrix has only rounding to scale
        factor = usable ? __uint_as_float((unsigned)(141 - exponent) << 23) : 1.0f;
        unit = usable ? __uint_as_float((unsigned)(113 + exponent) << 23) : 1.0f;
    }
    __device__ __forceinline__ Four scaled(int j) const {
        Four four = quad[j];
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] *= factor;
        return four;
    }

    // Of the scaled elements that the warp holds, the sum of squares.
    __device__ __forceinline__ float squares_of_warp() const {
        float squares = 0.0f;
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const Four four = scaled(j);
#pragma unroll
            for (int i = 0; i < 4; ++i) squares += four.at[i] * four.at[i];
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, distance);
        return squares;
    }

    // A table of sums of centred elements: at row y, place 3 + x, that of the first y rows' first x elements. First the
    // sums along the rows; when a barrier has passed, `sum_column` for every column makes it whole.
    __device__ __forceinline__ void sum_rows(float* table) const {
        const int lane = (int)threadIdx.x % ROW_QUADS;
        for (int i = threadIdx.x; i < TABLE_PITCH; i += THREADS) table[i] = 0.0f;
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const int row = first_row + j * STRIDE;
            Four sums = quad[j];
#pragma unroll
            for (int i = 1; i < 4; ++i) sums.at[i] += sums.at[i - 1];
            float until = sums.at[3];
#pragma unroll
            for (int distance = 1; distance < ROW_QUADS; distance *= 2) {
                const float other = __shfl_up_sync(0xffffffffu, until, distance);
                if (lane >= distance) until += other;
            }
            const float before = __shfl_up_sync(0xffffffffu, until, 1);
#pragma unroll
            for (int i = 0; i < 4; ++i) sums.at[i] += lane > 0 ? before : 0.0f;
            float* to = table + (row + 1) * TABLE_PITCH + x + 4;
            if (has(row, x)) *reinterpret_cast<Four*>(to) = sums;
            if (has(row, x) && lane == 0) to[-1] = 0.0f;
        }
    }
    static __device__ __forceinline__ void sum_column(float* table, int column) {
        float sum = 0.0f;
#pragma unroll 8
        for (int row = 1; row <= HEIGHT; ++row) {
            float* at = table + row * TABLE_PITCH + 4 + column;
            sum += *at;
            *at = sum;
        }
    }
    // Sum of rows [top, bottom), from the column that the first `table` has been advanced by up to that of the second.
    static __device__ __forceinline__ float within(const float* first, const float* last, int top, int bottom) {
        const int above = 3 + top * TABLE_PITCH, below = 3 + bottom * TABLE_PITCH;
        return (last[below] - first[below]) - (last[above] - first[above]);
    }

    // Rows of halves, two a word: column x in word x / 2.
    __device__ __forceinline__ void keep_pairs(unsigned* rows, int pitch) const {
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const int row = first_row + j * STRIDE;
            const Four four = scaled(j);
            const TwoWords words = {half_pair(four.at[0], four.at[1]), half_pair(four.at[2], four.at[3])};
            if (has(row, x)) *reinterpret_cast<TwoWords*>(rows + row * pitch + x / 2) = words;
        }
    }
    // Rows of pairs of neighbours, so that a pair begins at any column: elements x and x + 1 in word x - `origin`, a
    // multiple of 4. Words are kept where they lie in [0, pitch).
    __device__ __forceinline__ void keep_neighbours(unsigned* rows, int pitch, int origin) const {
        const int lane = (int)threadIdx.x % ROW_QUADS, at = x - origin;
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const int row = first_row + j * STRIDE;
            const Four four = scaled(j);
            const float following = __shfl_down_sync(0xffffffffu, four.at[0], 1);
            FourWords words;
#pragma unroll
            for (int i = 0; i < 3; ++i) words.at[i] = half_pair(four.at[i], four.at[i + 1]);
            words.at[3] = half_pair(four.at[3], lane < ROW_QUADS - 1 ? following : 0.0f);
            unsigned* to = rows + row * pitch + at;
            if (!has(row, x) || at >= pitch) continue;
            if (at >= 0) *reinterpret_cast<FourWords*>(to) = words;
            if (lane == 0 && at > 0) to[-1] = half_pair(0.0f, four.at[0]);
        }
    }
};
