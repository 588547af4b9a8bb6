// How many steps between neighbours along every fourth row of an image are smaller than LIMIT times what
// peaks/outlier_pixels.cu found, and how many are zero: two numbers a block, of every BLOCKS-th stretch of steps. They tell
// whether the median step is so small that something stands out (xcorr_app/registration/weights/filling.py), without sorting. A
// value that is no number counts as zero. Floor: one read of these rows.
// Document: none.
#include "problem.cuh"
#include "numbers.cuh"
#include "warp.cuh"

#ifndef LIMIT
#define LIMIT 1.0
#endif
#define THREADS 256
#define PERIOD 4

extern "C" __global__ void __launch_bounds__(THREADS)
    small_steps(const Right* image, const double* max_of_blocks, int* counts, int height, int width, int blocks) {
    SHARED_FLOATS(shared);
    int* of_warps = reinterpret_cast<int*>(shared);  // [THREADS / WARP][2]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    double out = 0.0;  // every warp for itself: the blocks of the other launch are few
    for (int k = lane; k < blocks; k += WARP) out = fmax(out, max_of_blocks[k]);
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        out = fmax(out, __shfl_xor_sync(ALL_LANES, out, distance));
    const double limit = LIMIT * out;
    const int steps = ceil_div(height, PERIOD) * (width - 1);
    int smaller = 0, zero = 0;
    for (int k = (int)blockIdx.x * THREADS + (int)threadIdx.x; k < steps; k += blocks * THREADS) {
        const int row = k / (width - 1);
        const Right* at = image + (long long)row * PERIOD * width + (k - row * (width - 1));
        const double step = fabs(number_of(at[1]) - number_of(at[0]));
        smaller += step < limit;
        zero += step == 0.0;
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        smaller += __shfl_xor_sync(ALL_LANES, smaller, distance);
        zero += __shfl_xor_sync(ALL_LANES, zero, distance);
    }
    if (lane == 0) {
        of_warps[2 * warp] = smaller;
        of_warps[2 * warp + 1] = zero;
    }
    __syncthreads();
    if (threadIdx.x >= 2) return;
    int total = 0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[2 * w + threadIdx.x];
    counts[2 * blockIdx.x + threadIdx.x] = total;
}
