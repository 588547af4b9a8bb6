// Summed-area tables of small matrices (see summed_area.cu) in one launch, one block per matrix.
//
// A warp processes a band of rows: lanes add up columns, then a scan along the lanes gives the sums left of every
// column, of which those at column edges are kept. At the end every thread accumulates the bands of its column edges
// downwards. The order is fixed: the same bits every run. `Right` is the type of the matrices, lefts or rights.
// Document: as summed_area.cu. Floor: one read of the pixels and one write of the table.
#include "problem.cuh"
#include "zncc.cuh"

#ifndef THREADS
#define THREADS 128
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    small_summed_area(const Right* images, const int* band_edges, const int* edge_of_column, Moments* tables, int height, int width,
                int bands, int column_cells) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pitch = column_cells + 1;
    const Right* pixels = images + (long long)blockIdx.x * height * width;
    Moments* table = tables + (long long)blockIdx.x * (bands + 1) * pitch;
    const Moments zero = {0, 0};
    for (int j = threadIdx.x; j < pitch; j += THREADS) table[j] = zero;
    for (int band = warp; band < bands; band += THREADS / 32) {
        const int top = band_edges[band], bottom = band_edges[band + 1];
        Moments* row = table + (band + 1) * pitch;
        if (lane == 0) row[0] = zero;
        Moments before = zero;
        for (int first = 0; first < width; first += 32) {
            const int x = first + lane;
            Moments m = zero;
            for (int y = top; x < width && y < bottom; ++y) m.add((double)pixels[y * width + x]);
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                const double sum = __shfl_up_sync(0xffffffffu, m.sum, distance);
                const double squares = __shfl_up_sync(0xffffffffu, m.squares, distance);
                if (lane >= distance) {
                    m.sum += sum;
                    m.squares += squares;
                }
            }
            m.sum += before.sum;
            m.squares += before.squares;
            const int edge = x < width ? edge_of_column[x + 1] : -1;
            if (edge > 0) row[edge] = m;
            before.sum = __shfl_sync(0xffffffffu, m.sum, 31);
            before.squares = __shfl_sync(0xffffffffu, m.squares, 31);
        }
    }
    __syncthreads();
    for (int j = 1 + threadIdx.x; j < pitch; j += THREADS) {
        Moments down = zero;
        for (int i = 1; i <= bands; ++i) {
            Moments* at = table + i * pitch + j;
            down.sum += at->sum;
            down.squares += at->squares;
            *at = down;
        }
    }
}
