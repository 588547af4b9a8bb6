// What brings images to zero mean, and the variance of what is not noise in them to one (xcorr_app/registration/parts/tiles.py):
// level, gain, and the variance of the noise of a bin of 2 x 2 pixels, three doubles an image. By sums over rows
// (row_sums.cu) and over pixels next to each other (noise_sums.cu). A warp takes an image; the order is fixed. Floor: the
// time of a launch.
// Document: none.
#include "problem.cuh"
#include "clean_fraction.cuh"

#define WARPS 4
#ifndef MIN_CLEAN
#define MIN_CLEAN 1e-3
#endif

extern "C" __global__ void __launch_bounds__(WARPS * WARP)
    tile_levels(const double* row_sums, const double* noise_sums, double* levels, int count, int rows, int width, int groups,
                int parts) {
    const int lane = (int)threadIdx.x % WARP, image = (int)blockIdx.x * WARPS + (int)threadIdx.x / WARP;
    if (image >= count) return;
    double sum = 0.0, squares = 0.0;
    for (int row = lane; row < rows; row += WARP) {
        sum += row_sums[2 * ((long long)image * rows + row)];
        squares += row_sums[2 * ((long long)image * rows + row) + 1];
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
        squares += __shfl_xor_sync(ALL_LANES, squares, distance);
    }
    const double pixels = (double)rows * width, mean = sum / pixels, variance = squares / pixels - mean * mean;
    const double* own = noise_sums + (long long)image * parts * NOISE_SUMS;
    const double clean = fmax(clean_fraction(own, groups, parts, width, variance, lane), MIN_CLEAN);
    if (lane != 0) return;
    levels[3 * image] = mean;
    levels[3 * image + 1] = 1 / sqrt((variance > 0 ? variance : 1.0) * clean);
    levels[3 * image + 2] = (1 - clean) / clean / 4;
}
