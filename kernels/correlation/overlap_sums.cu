// Overlap sums, first step: sums and sums of squares of every matrix over its cells, in one pass over the pixels.
//
// The overlap of a shift is a rectangle of the matrix. All rectangles of a window begin and end at a few rows and columns
// (within +-S pixels at 2 S + 2 of each), which cut the matrix into cells; overlap_table.cu adds cells up to rectangles.
// Rows are cut into bands, at every row edge and at least every 32 rows, so that large cells keep many blocks busy.
//
// Lefts and rights go through the same kernel: `Right` is the type of whichever they are.
// A block takes one band of one matrix. A thread adds up columns (neighbouring threads, neighbouring columns) in double
// precision, the block then adds up the columns of each cell. The order is fixed: the same bits every run.
// Document: "Normalisation", beside the chapter on the definition-based cross-correlation. Floor: one read of the pixels.
// On an H200: 0.31 us a frame of 512^2 float32, 1.3 times its floor.
#include "problem.cuh"
#include "tile.cuh"
#include "zncc.cuh"

#ifndef THREADS
#define THREADS 256
#endif

#define COLUMNS (2 * THREADS)  // staged at a time
#define IN_FLIGHT 8            // rows loaded before the first is used
#define NARROW 8               // cells up to this width are added up by one thread

__device__ __forceinline__ double sum_of_warp(double value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    overlap_sums(const Right* images, const int* band_edges, const int* column_edges, Moments* cells, int height,
                 int width, int bands, int column_cells) {
    SHARED_FLOATS(staging);
    Moments* of_column = reinterpret_cast<Moments*>(staging);  // [COLUMNS]
    const int image = (int)blockIdx.x / bands, band = (int)blockIdx.x % bands;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int top = band_edges[band], bottom = band_edges[band + 1];
    const Right* pixels = images + ((long long)image * height + top) * width;
    Moments* own = cells + ((long long)image * bands + band) * column_cells;
    for (int x0 = 0; x0 < width; x0 += COLUMNS) {
        __syncthreads();
        for (int column = threadIdx.x; column < COLUMNS; column += THREADS) {
            Moments m = {0, 0};
            const int x = x0 + column;
            if (x < width) {
                const Right* at = pixels + x;
                int rows = bottom - top;
                for (; rows >= IN_FLIGHT; rows -= IN_FLIGHT) {
                    Right value[IN_FLIGHT];
#pragma unroll
                    for (int i = 0; i < IN_FLIGHT; ++i, at += width) value[i] = *at;
#pragma unroll
                    for (int i = 0; i < IN_FLIGHT; ++i) m.add((double)value[i]);
                }
#pragma unroll
                for (int i = 0; i < IN_FLIGHT - 1; ++i, at += width)
                    if (i < rows) m.add((double)*at);
            }
            of_column[column] = m;
        }
        __syncthreads();
        const int x1 = x0 + COLUMNS;
        for (int cell = threadIdx.x; cell < column_cells; cell += THREADS) {
            const int first = column_edges[cell], last = column_edges[cell + 1];
            if (last - first > NARROW || first >= x1 || last <= x0) continue;
            Moments m = {0, 0};
            if (first < x0) m = own[cell];  // begun by the columns staged before
            for (int x = first > x0 ? first : x0; x < last && x < x1; ++x) {
                m.sum += of_column[x - x0].sum;
                m.squares += of_column[x - x0].squares;
            }
            own[cell] = m;
        }
        for (int cell = warp; cell < column_cells; cell += THREADS / 32) {
            const int first = column_edges[cell], last = column_edges[cell + 1];
            if (last - first <= NARROW || first >= x1 || last <= x0) continue;
            Moments m = {0, 0};
            for (int x = (first > x0 ? first : x0) + lane; x < last && x < x1; x += 32) {
                m.sum += of_column[x - x0].sum;
                m.squares += of_column[x - x0].squares;
            }
            m.sum = sum_of_warp(m.sum);
            m.squares = sum_of_warp(m.squares);
            if (lane == 0) {
                if (first < x0) {
                    m.sum += own[cell].sum;
                    m.squares += own[cell].squares;
                }
                own[cell] = m;
            }
        }
    }
}
