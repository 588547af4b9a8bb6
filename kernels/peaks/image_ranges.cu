// Smallest and largest value and sum of parts of images, in double precision, which holds every type read: what
// standardising needs to know of an image (xcorr_app/correlation/standardize.py). A block takes one of the `parts` equal
// stretches of an image's pixels, so that few large images keep a device busy too; peaks/standard_values.cu puts them
// together. The order is fixed. Floor: one read of the images.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
    image_ranges(const Right* images, double* ranges, int pixels, int parts) {
    SHARED_FLOATS(shared);
    double(*const of_warps)[3] = reinterpret_cast<double(*)[3]>(shared);  // [THREADS / WARP]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int image = (int)blockIdx.x / parts, part = (int)blockIdx.x - image * parts, size = ceil_div(pixels, parts);
    const Right* values = images + (long long)image * pixels;
    const int first = part * size, last = min(pixels, first + size);
    Right lowest = values[0], highest = lowest;
    double sum = 0.0;
#pragma unroll 4
    for (int k = first + (int)threadIdx.x; k < last; k += THREADS) {
        const Right value = values[k];
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
        sum += (double)value;
    }
    double low = (double)lowest, high = (double)highest;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        low = fmin(low, __shfl_xor_sync(ALL_LANES, low, distance));
        high = fmax(high, __shfl_xor_sync(ALL_LANES, high, distance));
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    }
    if (lane == 0) {
        of_warps[warp][0] = low;
        of_warps[warp][1] = high;
        of_warps[warp][2] = sum;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < THREADS / WARP; ++w) {
        low = fmin(low, of_warps[w][0]);
        high = fmax(high, of_warps[w][1]);
        sum += of_warps[w][2];
    }
    double* range = ranges + 3 * (long long)blockIdx.x;
    range[0] = low;
    range[1] = high;
    range[2] = sum;
}
