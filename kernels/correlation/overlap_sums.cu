// Overlap sums, first step: sums and sums of squares of every matrix over its cells, in one pass over the pixels.
//
// The overlap of a shift is a rectangle of the matrix. All rectangles of a window begin and end at a few rows and columns
// (within +-S pixels at 2 S + 2 of each), which cut the matrix into cells; overlap_table.cu adds cells up to rectangles.
// Rows are cut into bands, at every row edge and at least every 32 rows, so that large cells keep many blocks busy.
//
// Lefts and rights go through the same kernel: `Right` is the type of whichever they are.
// A block takes one band of one matrix. A thread adds up each narrow cell; the block shares each wide one, a thread adds
// up every THREADS-th column of it. Floats are added up in double precision, integers in integers of 64 bits. What covers
// the distance to memory is the number of loads on their way, IN_FLIGHT a thread, and of blocks: they are small, as half
// of the bands of a window are single rows. The order is fixed: the same bits every run.
// Document: "Normalisation", beside the chapter on the definition-based cross-correlation. Floor: one read of the pixels.
#include "problem.cuh"
#include "tile.cuh"
#include "zncc.cuh"

#ifndef THREADS
#define THREADS 128
#endif
#ifndef IN_FLIGHT
#define IN_FLIGHT 16  // pixels that a thread loads before the first is used
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 8
#endif

#define ACROSS 4  // of these, columns of a row; the others are rows
#define NARROW 8  // cells up to this width are added up by one thread

template <bool IS_FLOAT>
struct Sums {
    long long sum = 0, squares = 0;
    __device__ __forceinline__ void add(int value) {
        sum += value;
        squares += (long long)value * value;
    }
    __device__ __forceinline__ Moments moments() const {
        Moments m = {(double)sum, (double)squares};
        return m;
    }
};
template <>
struct Sums<true> {
    Moments m = {0, 0};
    __device__ __forceinline__ void add(float value) { m.add((double)value); }
    __device__ __forceinline__ Moments moments() const { return m; }
};
typedef Sums<IsFloat<Right>::VALUE> SumsOfRight;

// Adds up columns `at`, `at` + THREADS, ..., COLUMNS of them, as far as they lie among the next `width_left` columns.
template <int COLUMNS>
__device__ __forceinline__ void add_columns(SumsOfRight& sums, const Right* at, int width, int rows, int width_left) {
    constexpr int ROWS = IN_FLIGHT / COLUMNS;
    for (; rows > 0; rows -= ROWS) {
        Right value[ROWS][COLUMNS];
#pragma unroll
        for (int y = 0; y < ROWS; ++y, at += width)
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                value[y][i] = y < rows && i * THREADS < width_left ? at[i * THREADS] : (Right)0;
#pragma unroll
        for (int y = 0; y < ROWS; ++y)
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) sums.add(value[y][i]);
    }
}

__device__ __forceinline__ double sum_of_warp(double value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

struct Kept {
    Moments of_warp[THREADS / 32];
    int wide[THREADS];  // cells that the block shares, in any order
    int count;          // of them
};

// The cell from column `first` on, by the whole block: for thread 0.
__device__ __forceinline__ Moments sum_together(Kept& kept, const Right* pixels, int width, int rows, int first,
                                                int last) {
    SumsOfRight sums;
    for (int x = first + (int)threadIdx.x; x < last; x += ACROSS * THREADS)
        add_columns<ACROSS>(sums, pixels + x, width, rows, last - x);
    Moments m = sums.moments();
    m.sum = sum_of_warp(m.sum);
    m.squares = sum_of_warp(m.squares);
    __syncthreads();
    if (threadIdx.x % 32 == 0) kept.of_warp[threadIdx.x / 32] = m;
    __syncthreads();
    for (int warp = 1; threadIdx.x == 0 && warp < THREADS / 32; ++warp) {
        m.sum += kept.of_warp[warp].sum;
        m.squares += kept.of_warp[warp].squares;
    }
    return m;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    overlap_sums(const Right* images, const int* band_edges, const int* column_edges, Moments* cells, int height,
                 int width, int bands, int column_cells) {
    SHARED_FLOATS(scratch);
    Kept& kept = *reinterpret_cast<Kept*>(scratch);
    const int image = (int)blockIdx.x / bands, band = (int)blockIdx.x % bands;
    const int top = band_edges[band], rows = band_edges[band + 1] - top;
    const Right* pixels = images + ((long long)image * height + top) * width;
    Moments* own = cells + ((long long)image * bands + band) * column_cells;
    for (int cell0 = 0; cell0 < column_cells; cell0 += THREADS) {
        if (threadIdx.x == 0) kept.count = 0;
        __syncthreads();
        const int cell = cell0 + (int)threadIdx.x;
        const int first = cell < column_cells ? column_edges[cell] : 0;
        const int last = cell < column_cells ? column_edges[cell + 1] : 0;
        if (last - first > NARROW) kept.wide[atomicAdd(&kept.count, 1)] = cell;
        __syncthreads();
        if (last - first <= NARROW && cell < column_cells) {
            SumsOfRight sums;
            for (int x = first; x < last; ++x) add_columns<1>(sums, pixels + x, width, rows, 1);
            own[cell] = sums.moments();
        }
        for (int i = 0; i < kept.count; ++i) {
            const int wide = kept.wide[i];
            const Moments m =
                sum_together(kept, pixels, width, rows, column_edges[wide], column_edges[wide + 1]);
            if (threadIdx.x == 0) own[wide] = m;
        }
        __syncthreads();
    }
}
