// A small matrix as a block processes it: held in registers as loaded from memory, then as (value - centre) * factor,
// and converted to fp16.
//
// A thread holds the float4s at one position of successive rows; successive lanes hold successive float4s. If MIRRORED,
// everything is counted from the last element: the thread that holds float4 x of row y of another matrix of the same
// size holds the diametrically opposite float4 of this one. The centre is the mean, a whole number for integers. The
// factor is the power of two that scales the value furthest from it to [2^7, 2^8): no fp16 value overflows, whole
// numbers of up to 11 bits around the centre stay exact, and the product of two matrices' factors leaves the range of
// single precision only where products of their values nearly do, below 2^-112. Sizes are known to the compiler; rows
// have at most 128 elements.
#pragma once
#include "problem.cuh"
#include "shared_tile.cuh"
#define COLUMNS 4
#include "vector_access.cuh"
#include "mma_fp16.cuh"
#include "zncc.cuh"

struct __align__(16) FourWords {
    unsigned at[4];
};
struct __align__(8) TwoWords {
    unsigned first, second;
};

// do_at(0), ..., do_at(COUNT - 1), shared by the block's threads.
template <int COUNT, typename Do>
__device__ __forceinline__ void by_all_threads(const Do& do_at) {
#pragma unroll
    for (int first = 0; first < COUNT; first += THREADS)
        if (first + THREADS <= COUNT || first + (int)threadIdx.x < COUNT) do_at(first + (int)threadIdx.x);
}

// How threads share a matrix.
template <int HEIGHT, int WIDTH>
struct SmallLayout {
    static constexpr int ROW_VECTORS = WIDTH <= 16 ? 4 : WIDTH <= 32 ? 8 : WIDTH <= 64 ? 16 : 32;
    static constexpr int STRIPS = THREADS / ROW_VECTORS, COUNT = (HEIGHT + STRIPS - 1) / STRIPS;  // rows of a thread
    static constexpr bool IS_FULL = HEIGHT == STRIPS * COUNT && WIDTH == 4 * ROW_VECTORS;

    static __device__ __forceinline__ int lane() { return (int)threadIdx.x % ROW_VECTORS; }
    static __device__ __forceinline__ int first_row() { return (int)threadIdx.x / ROW_VECTORS * COUNT; }
};

template <typename Element, int HEIGHT, int WIDTH, bool MIRRORED>
struct SmallMatrix : SmallLayout<HEIGHT, WIDTH> {
    typedef SmallLayout<HEIGHT, WIDTH> Layout;
    static constexpr int ROW_VECTORS = Layout::ROW_VECTORS, COUNT = Layout::COUNT;
    static_assert(!MIRRORED || WIDTH % 4 == 0, "vectors lie opposite vectors");

    Four vector[COUNT];  // elements, then scaled ones; zero outside the matrix
    int x;
    float centre, factor, unit;  // unit: 1 / factor

    static __device__ __forceinline__ int row(int j) {
        return MIRRORED ? HEIGHT - 1 - Layout::first_row() - j : Layout::first_row() + j;
    }
    __device__ __forceinline__ bool has(int j, int i) const {
        return Layout::IS_FULL || ((unsigned)row(j) < (unsigned)HEIGHT && (unsigned)(x + i) < (unsigned)WIDTH);
    }
    static __device__ __forceinline__ bool is_whole(const Element* matrix) { return WIDTH % 4 == 0 && is_aligned(matrix); }
    // Four elements of a row from x on, which a float4 holds if `whole`; zero where the matrix has none, or unless `wanted`.
    static __device__ __forceinline__ Four read(const Element* matrix, int row, int x, bool wanted, bool whole) {
        const Element* from = matrix + row * WIDTH + x;
        AlignedVector<Element> read = {{0, 0, 0, 0}};
        if (whole) {
            if (wanted && (WIDTH == 4 * ROW_VECTORS || (unsigned)x < (unsigned)WIDTH))
                read = *reinterpret_cast<const AlignedVector<Element>*>(from);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (wanted && (WIDTH == 4 * ROW_VECTORS || (unsigned)(x + i) < (unsigned)WIDTH)) read.at[i] = from[i];
        }
        Four four;
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = (float)read.at[i];
        return four;
    }
    SmallMatrix() = default;
    __device__ __forceinline__ explicit SmallMatrix(const Element* matrix) { take(matrix); }
    __device__ __forceinline__ void take(const Element* matrix) {
        x = MIRRORED ? WIDTH - 4 - 4 * Layout::lane() : 4 * Layout::lane();
        const bool whole = is_whole(matrix);
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
            vector[j] = read(matrix, row(j), x, Layout::IS_FULL || (unsigned)row(j) < (unsigned)HEIGHT, whole);
    }

    // Of the thread's elements, whose sums are exact for integers.
    __device__ __forceinline__ float sum() const {
        Four sums = vector[0];
#pragma unroll
        for (int j = 1; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums.at[i] += vector[j].at[i];
        return (sums.at[0] + sums.at[1]) + (sums.at[2] + sums.at[3]);
    }
    // The highest of the thread's elements, or of their negatives.
    template <bool NEGATIVE>
    __device__ __forceinline__ float highest() const {
        float highest = MINUS_INFINITY;
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (has(j, i)) highest = fmaxf(highest, NEGATIVE ? -vector[j].at[i] : vector[j].at[i]);
        return highest;
    }
    // From the whole matrix's sum, and how high its values are and their negatives.
    __device__ __forceinline__ void scale(double sum, float highest_negative, float highest) {
        const double mean = sum * (1.0 / (HEIGHT * WIDTH));
        centre = (float)(IsFloat<Element>::VALUE ? mean : rint(mean));
        const float furthest = fmaxf(highest - centre, highest_negative + centre);
        // Further down factors leave single precision. Of a constant matrix there is only rounding to scale, or nothing.
        const int exponent = max((int)(__float_as_uint(furthest) >> 23) - 127, -112);
        const bool usable = furthest != 0.0f && exponent < 128;
        factor = usable ? __uint_as_float((unsigned)(134 - exponent) << 23) : 1.0f;
        unit = usable ? __uint_as_float((unsigned)(120 + exponent) << 23) : 1.0f;
        const float less = -centre * factor;
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) vector[j].at[i] = has(j, i) ? fmaf(vector[j].at[i], factor, less) : 0.0f;
    }
    // Of the thread's scaled elements.
    __device__ __forceinline__ float squares() const {
        Four squares = {{0.0f, 0.0f, 0.0f, 0.0f}};
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) squares.at[i] = fmaf(vector[j].at[i], vector[j].at[i], squares.at[i]);
        return (squares.at[0] + squares.at[1]) + (squares.at[2] + squares.at[3]);
    }

    // The fp16 values: the scaled elements (PART 0), or their rounding errors (PART 1).
    template <int PART>
    __device__ __forceinline__ Four part(int j) const {
        Four four = vector[j];
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = PART == 0 ? four.at[i] : half_residue(four.at[i]);
        return four;
    }
    // Rows of fp16, two a word: column x in word x / 2, and zeros up to column PADDED.
    template <int PADDED, int PART = 0>
    __device__ __forceinline__ void keep_pairs(unsigned* rows, int pitch) const {
        static_assert(PADDED >= 4 * ROW_VECTORS, "all lanes have a place");
        const int lane = Layout::lane(), column = 4 * lane < WIDTH ? x : 4 * lane;  // lanes without elements hold zeros
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const int row = this->row(j);
            if (!Layout::IS_FULL && (unsigned)row >= (unsigned)HEIGHT) continue;
            const Four four = part<PART>(j);
            const TwoWords words = {half_pair(four.at[0], four.at[1]), half_pair(four.at[2], four.at[3])};
            unsigned* const to = rows + row * pitch;
            *reinterpret_cast<TwoWords*>(to + column / 2) = words;
#pragma unroll
            for (int more = 4 * ROW_VECTORS; more < PADDED; more += 4 * ROW_VECTORS)
                if (more + 4 * lane < PADDED) *reinterpret_cast<TwoWords*>(to + more / 2 + 2 * lane) = {0, 0};
        }
    }
    // Rows of pairs of neighbours, so that a pair begins at any column: elements x and x + 1 in word x - ORIGIN, a
    // multiple of 4; zeros in all other words of [0, PITCH).
    template <int ORIGIN, int PITCH, int PART = 0>
    __device__ __forceinline__ void keep_neighbours(unsigned* rows) const {
        constexpr int VECTORS = PITCH / 4, FIRST = -ORIGIN / 4, END = FIRST + (WIDTH + 3) / 4;  // float4s with elements
        constexpr int BEFORE = FIRST < 0 ? 0 : FIRST < VECTORS ? FIRST : VECTORS;
        constexpr int AFTER = END < 0 ? 0 : END < VECTORS ? END : VECTORS, RIM = BEFORE + VECTORS - AFTER;
        const int lane = Layout::lane(), at = x - ORIGIN;
#pragma unroll
        for (int i = 0; i < RIM; i += ROW_VECTORS) {
            const int rim = i + lane;
            unsigned* const to = rows + Layout::first_row() * PITCH + 4 * (rim < BEFORE ? rim : rim - BEFORE + AFTER);
#pragma unroll
            for (int j = 0; j < COUNT; ++j)
                if (rim < RIM && (Layout::IS_FULL || row(j) < HEIGHT))
                    *reinterpret_cast<FourWords*>(to + j * PITCH) = {{0, 0, 0, 0}};
        }
        __syncwarp();  // the last word before the first element's float4 is no zero
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            const Four four = part<PART>(j);
            const float following = __shfl_down_sync(0xffffffffu, four.at[0], 1);
            FourWords words;
#pragma unroll
            for (int i = 0; i < 3; ++i) words.at[i] = half_pair(four.at[i], four.at[i + 1]);
            words.at[3] = half_pair(four.at[3], lane < ROW_VECTORS - 1 ? following : 0.0f);
            unsigned* const to = rows + row(j) * PITCH + at;
            if (!has(j, 0)) continue;
            if (at >= 0 && at < PITCH) *reinterpret_cast<FourWords*>(to) = words;
            if (FIRST > 0 && FIRST <= VECTORS && lane == 0) to[-1] = words.at[0] << 16;
        }
    }
};
