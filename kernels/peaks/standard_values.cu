// Images less their mean and over their largest deviation from it (xcorr_app/correlation/standardize.py), from what
// peaks/image_ranges.cu found of their parts: in double precision, then rounded. Flat images, whose values are equal up to
// ROUNDING, become zero, and are marked. Every warp of a block puts the parts together for itself, in the same order; a
// thread then takes PER_THREAD values THREADS apart. Floor: one read of the images and one write.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#ifndef OUT_TYPE
#define OUT_TYPE float
#endif
#ifndef ROUNDING
#define ROUNDING 4.76837158203125e-07
#endif
#define THREADS 256
#define PER_THREAD 8

extern "C" __global__ void __launch_bounds__(THREADS)
    standard_values(const Right* images, const double* ranges, OUT_TYPE* values, bool* flat, int pixels, int parts,
                    int blocks_per_image) {
    const int lane = (int)threadIdx.x % WARP, image = (int)blockIdx.x / blocks_per_image;
    const int block = (int)blockIdx.x - image * blocks_per_image;
    const double* of_parts = ranges + 3 * (long long)image * parts;
    double low = of_parts[0], high = of_parts[1], sum = 0.0;
    for (int part = lane; part < parts; part += WARP) {
        low = fmin(low, of_parts[3 * part]);
        high = fmax(high, of_parts[3 * part + 1]);
        sum += of_parts[3 * part + 2];
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        low = fmin(low, __shfl_xor_sync(ALL_LANES, low, distance));
        high = fmax(high, __shfl_xor_sync(ALL_LANES, high, distance));
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    }
    const double mean = sum / pixels;
    const bool is_flat = high / 2 - low / 2 <= ROUNDING * (fmax(fabs(low), fabs(high)) / 2);
    const double scale = is_flat ? 0.0 : 1.0 / fmax(high - mean, mean - low);
    if (block == 0 && threadIdx.x == 0) flat[image] = is_flat;
    const Right* from = images + (long long)image * pixels;
    OUT_TYPE* to = values + (long long)image * pixels;
    const int first = block * THREADS * PER_THREAD + (int)threadIdx.x;
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int k = first + i * THREADS;
        if (k < pixels) to[k] = (OUT_TYPE)(((double)from[k] - mean) * scale);
    }
}
