// Overlap sums, second step: the cells of overlap_sums.cu become a table of rectangle sums (an integral image over cells).
//
// table[i][j] = moments of all cells above row edge i and left of column edge j; row and column 0 are zero. A block makes
// the table of one matrix: first every thread runs down its columns, then every warp along its rows. The order is fixed.
// Document: as overlap_sums.cu. Floor: one read of the cells and one write of the table, a few per cent of the pixels for
// the windows of registration.
#include "problem.cuh"
#include "zncc.cuh"

#ifndef THREADS
#define THREADS 256
#endif

#ifndef IN_FLIGHT
#define IN_FLIGHT 16  // bands loaded before the first is used
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    overlap_table(const Moments* cells, Moments* tables, int bands, int column_cells) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pitch = column_cells + 1;
    const Moments* own = cells + (long long)blockIdx.x * bands * column_cells;
    Moments* table = tables + (long long)blockIdx.x * (bands + 1) * pitch;
    const Moments zero = {0, 0};
    for (int j = threadIdx.x; j < pitch; j += THREADS) {
        Moments down = zero;
        table[j] = zero;
        for (int first = 0; first < bands; first += IN_FLIGHT) {
            Moments cell[IN_FLIGHT];
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; ++i)
                cell[i] = j > 0 && first + i < bands ? own[(first + i) * column_cells + j - 1] : zero;
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; ++i) {
                down.sum += cell[i].sum;
                down.squares += cell[i].squares;
                if (first + i < bands) table[(first + i + 1) * pitch + j] = down;
            }
        }
    }
    __syncthreads();
    for (int i = 1 + warp; i <= bands; i += THREADS / 32) {
        Moments before = zero;
        for (int first = 1; first < pitch; first += 32) {
            const int j = first + lane;
            Moments along = j < pitch ? table[i * pitch + j] : zero;
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                const double sum = __shfl_up_sync(0xffffffffu, along.sum, distance);
                const double squares = __shfl_up_sync(0xffffffffu, along.squares, distance);
                if (lane >= distance) {
                    along.sum += sum;
                    along.squares += squares;
                }
            }
            along.sum += before.sum;
            along.squares += before.squares;
            if (j < pitch) table[i * pitch + j] = along;
            before.sum = __shfl_sync(0xffffffffu, along.sum, 31);
            before.squares = __shfl_sync(0xffffffffu, along.squares, 31);
        }
    }
}
