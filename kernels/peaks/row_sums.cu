// Sum and sum of squares of every `period`-th row of images, in double precision. A block takes a row; the order is fixed:
// the same bits every run. Floor: one read of these rows.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS)
    row_sums(const Right* images, double* sums, int height, int width, int period) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP][2]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int rows = ceil_div(height, period), image = (int)blockIdx.x / rows;
    const int row = ((int)blockIdx.x - image * rows) * period;
    const Right* pixels = images + ((long long)image * height + row) * width;
    double sum = 0.0, squares = 0.0;
#pragma unroll 4
    for (int x = (int)threadIdx.x; x < width; x += THREADS) {
        const double value = (double)pixels[x];
        sum += value;
        squares += value * value;
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
        squares += __shfl_xor_sync(ALL_LANES, squares, distance);
    }
    if (lane == 0) {
        of_warps[2 * warp] = sum;
        of_warps[2 * warp + 1] = squares;
    }
    __syncthreads();
    if (threadIdx.x >= 2) return;
    double total = 0.0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[2 * w + threadIdx.x];
    sums[2 * (long long)blockIdx.x + threadIdx.x] = total;
}
