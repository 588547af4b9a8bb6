// Mean and variance of the pixels of every `period`-th row of every image, in double precision and less the image's first
// pixel, so that a large mean costs no digits. A block takes an image, a thread every THREADS-th pixel of these rows; the
// order is fixed: the same bits every run. Floor: one read of these rows.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif
#define THREADS 512

extern "C" __global__ void __launch_bounds__(THREADS)
    row_moments(const Right* images, double* moments, int height, int width, int period) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP][2]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const Right* image = images + (long long)blockIdx.x * height * width;
    const double level = (double)image[0];
    const int pixels = ceil_div(height, period) * width;
    double sum = 0.0, squares = 0.0;
#pragma unroll 4
    for (int k = (int)threadIdx.x; k < pixels; k += THREADS) {
        const int row = k / width;
        const double value = (double)image[(long long)row * period * width + (k - row * width)] - level;
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
    if (threadIdx.x > 0) return;
    sum = squares = 0.0;
    for (int w = 0; w < THREADS / WARP; ++w) {
        sum += of_warps[2 * w];
        squares += of_warps[2 * w + 1];
    }
    const double mean = sum / pixels, variance = squares / pixels - mean * mean;
    moments[2 * (long long)blockIdx.x] = level + mean;
    moments[2 * (long long)blockIdx.x + 1] = variance > 0.0 ? variance : 0.0;
}
